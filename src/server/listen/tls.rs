//! The TLS side of a listener: one immutable `ServerConfig` per configuration, swapped whole.
//!
//! A swap inside a living config would be bypassed by session resumption; a new config has its own session store, so a
//! client that resumes does a full handshake after every swap.

use std::{collections::BTreeMap, fmt, sync::Arc};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    server::{
        ClientHello, ResolvesServerCert,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{
    options::completed::{Tls, TlsVersion},
    pki::{self, PkiError},
};

/// A config that shows `tls.certificate`, or `own` where none is configured.
///
/// Fails where neither is there (as [`PkiError::NoCertificate`]), where a pair is unusable, or where the chosen suites and
/// versions leave nothing to speak.
pub fn server_config(tls: &Tls, own: Option<&CertifiedKey>, http2: bool) -> Result<Arc<ServerConfig>, PkiError> {
    let default = match (&tls.certificate, own) {
        (Some(pair), _) => pki::check_pair(&pair.cert_pem, pair.key_pem.reveal())?,
        (None, Some(own)) => own.clone(),
        (None, None) => return Err(PkiError::NoCertificate),
    };
    let mut certificates = Certificates::new(Arc::new(default));
    for sni in &tls.sni {
        let pair = Arc::new(pki::check_pair(&sni.pair.cert_pem, sni.pair.key_pem.reveal())?);
        certificates.add(pair, &sni.names);
    }
    let versions: &[_] = if tls.min_version == TlsVersion::Tls13 { &[&TLS13] } else { &[&TLS13, &TLS12] };
    let provider = restricted(tls);
    let verifier = Arc::new(AskForCertificate { algorithms: provider.signature_verification_algorithms });
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .map_err(|error| PkiError::Making(format!("TLS settings leave nothing to speak: {error}")))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    // One, as Go: clients that resume take one at a time, and each costs time in the handshake.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The provider with only the wanted TLS 1.2 suites and key exchange groups. TLS 1.3 suites are not configurable, as
/// with Go.
fn restricted(tls: &Tls) -> CryptoProvider {
    let mut provider = (*pki::provider()).clone();
    if !tls.cipher_suites.is_empty() {
        let mut suites: Vec<_> =
            provider.cipher_suites.iter().filter(|suite| suite.tls13().is_some()).copied().collect();
        let wanted = |id| provider.cipher_suites.iter().find(|suite| suite.suite() == id && suite.tls13().is_none());
        suites.extend(tls.cipher_suites.iter().filter_map(|id| wanted(*id)));
        provider.cipher_suites = suites;
    }
    if !tls.curve_preferences.is_empty() {
        let named = |group| provider.kx_groups.iter().find(|known| known.name() == group).copied();
        provider.kx_groups = tls.curve_preferences.iter().filter_map(|group| named(*group)).collect();
    }
    provider
}

/// Certificates by name. A name that was configured beats one read from a certificate, the first certificate beats a
/// later one, an exact name beats a wildcard (apiserver `pkg/server/options/serving.go`, `BuildNamedCertificates`).
struct Certificates {
    default: Arc<CertifiedKey>,
    configured: BTreeMap<String, Arc<CertifiedKey>>,
    read: BTreeMap<String, Arc<CertifiedKey>>,
}

impl Certificates {
    fn new(default: Arc<CertifiedKey>) -> Self {
        Self { default, configured: BTreeMap::new(), read: BTreeMap::new() }
    }

    fn add(&mut self, pair: Arc<CertifiedKey>, names: &[String]) {
        let (names, map) =
            if names.is_empty() { (names_of(&pair), &mut self.read) } else { (names.to_vec(), &mut self.configured) };
        for name in names {
            map.entry(name.to_ascii_lowercase()).or_insert_with(|| pair.clone());
        }
    }

    fn named(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let find = |name: &str| self.configured.get(name).or_else(|| self.read.get(name));
        find(&name).or_else(|| wildcard.as_deref().and_then(find))
    }
}

/// DNS names and the common name, where they are names.
fn names_of(pair: &CertifiedKey) -> Vec<String> {
    let Some((_, parsed)) = pair.cert.first().and_then(|der| X509Certificate::from_der(der).ok()) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    if let Ok(Some(alternative)) = parsed.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            x509_parser::extensions::GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names.extend(parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok()).map(str::to_owned));
    names
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("names", &(self.configured.len() + self.read.len())).finish()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let usable = |pair: &&Arc<CertifiedKey>| pair.key.choose_scheme(hello.signature_schemes()).is_some();
        let named = hello.server_name().and_then(|name| self.named(name)).filter(usable);
        Some(named.unwrap_or(&self.default).clone())
    }
}

/// Asks for a certificate, takes any, and makes sure that the client holds its key.
#[derive(Debug)]
struct AskForCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AskForCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Go clients send nothing where none of their certificates fits the hint; without a hint they send what they have.
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
