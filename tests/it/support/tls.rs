//! Certificates for servers, and what a server shows.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// A key that certificates are made for.
pub struct Key(KeyPair);

impl Key {
    pub fn new() -> Self {
        Self(KeyPair::generate().expect("a key"))
    }

    pub fn pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// A certificate in PEM that says `name`, signed by itself.
    pub fn certificate(&self, name: &str) -> String {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.self_signed(&self.0).expect("a certificate").pem()
    }
}

/// Whether a new connection to the port is shown this certificate (PEM).
pub async fn shows(port: u16, certificate: &str) -> bool {
    let wanted = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    shown(port).await.is_some_and(|shown| shown == wanted)
}

async fn shown(port: u16) -> Option<CertificateDer<'static>> {
    let stream = connect(port).await?;
    stream.get_ref().1.peer_certificates()?.first().cloned().map(CertificateDer::into_owned)
}

/// A connection of HTTP/1.1 to be written by hand; `None` where there is none to be had.
pub async fn connect(port: u16) -> Option<TlsStream<TcpStream>> {
    connect_for(port, &[]).await
}

/// A connection for one of these protocols, as ALPN names them.
pub async fn connect_for(port: u16, protocols: &[&str]) -> Option<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything(provider)))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let name = ServerName::try_from("localhost").expect("a name");
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()
}

/// A request of which only the beginning was sent.
pub struct Begun {
    stream: TlsStream<TcpStream>,
    rest: Vec<u8>,
}

impl Begun {
    /// Sends the head of a POST and one byte of its body.
    pub async fn post(port: u16, path: &str, body: &str) -> Self {
        let mut stream = connect(port).await.expect("a connection");
        let (token, length) = (super::ADMIN, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let (first, rest) = body.as_bytes().split_at(1);
        stream.write_all(&[head.as_bytes(), first].concat()).await.expect("written");
        stream.flush().await.expect("sent");
        Self { stream, rest: rest.to_vec() }
    }

    /// Sends the rest; the answer's status.
    pub async fn finish(mut self) -> u16 {
        let rest = std::mem::take(&mut self.rest);
        self.stream.write_all(&rest).await.expect("written");
        self.stream.flush().await.expect("sent");
        self.answer().await
    }

    /// Waits for the answer; its status.
    pub async fn answer(mut self) -> u16 {
        let mut answer = Vec::new();
        // A server need not say goodbye after its answer.
        let reading = self.stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(super::PATIENCE, reading).await.expect("an answer in time");
        let text = String::from_utf8_lossy(&answer);
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {text:?}"))
    }
}

#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
