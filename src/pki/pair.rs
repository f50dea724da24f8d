//! A certificate file and its key file: read, matched, and if not usable, told why in words an operator can act on.

use std::{fmt, time::SystemTime};

use rustls::sign::CertifiedKey;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::provider;

/// What is wrong with a certificate, a key, or the two together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PkiError {
    /// The certificate text holds no `CERTIFICATE` block.
    NoCertificate,
    /// The key text holds no private key block.
    NoKey,
    /// The key is protected by a passphrase; nobody is there to type it.
    EncryptedKey,
    /// A PEM block is broken; the text says where.
    Pem(String),
    /// The bytes in a block are not what its label says.
    Malformed(String),
    /// A key of a kind that cannot sign here.
    UnsupportedKey(String),
    /// Certificate and key are fine but not of one another.
    Mismatch,
    /// The certificate's time is over.
    Expired(SystemTime),
    /// The certificate's time is yet to come.
    NotYetValid(SystemTime),
    /// A file could not be read or written.
    Io { path: std::path::PathBuf, reason: String },
    /// A certificate could not be made.
    Making(String),
}

impl fmt::Display for PkiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("no PEM certificate in the text"),
            Self::NoKey => f.write_str("no PEM private key in the text"),
            Self::EncryptedKey => {
                f.write_str("the private key is encrypted with a passphrase; store it decrypted, mode 0600")
            }
            Self::Pem(why) => write!(f, "broken PEM: {why}"),
            Self::Malformed(why) => write!(f, "malformed certificate: {why}"),
            Self::UnsupportedKey(why) => write!(f, "unsupported private key: {why}"),
            Self::Mismatch => f.write_str("the private key does not belong to the certificate"),
            Self::Expired(at) => write!(f, "the certificate expired at {}", stamp(*at)),
            Self::NotYetValid(at) => write!(f, "the certificate is not valid before {}", stamp(*at)),
            Self::Io { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Making(why) => write!(f, "cannot make a certificate: {why}"),
        }
    }
}

impl std::error::Error for PkiError {}

fn stamp(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_else(|_| "an unknown time".to_owned())
}

/// Reads a certificate chain (end entity first) and its key and checks that they can serve now.
///
/// The key may be PKCS#8, PKCS#1 or SEC1, RSA, ECDSA up to P-521 or Ed25519; other blocks in either text are skipped, so
/// one file may hold both. A certificate out of its dates is refused; upstream serves it, which helps nobody.
pub fn check_pair(cert_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, PkiError> {
    let pair = read_pair(cert_pem, key_pem)?;
    let end_entity = pair.end_entity_cert().map_err(|_| PkiError::NoCertificate)?;
    let (_, parsed) = X509Certificate::from_der(end_entity).map_err(|error| PkiError::Malformed(error.to_string()))?;
    let (now, validity) = (jiff::Timestamp::now().as_second(), parsed.validity());
    let at = super::trust::time;
    if now > validity.not_after.timestamp() {
        return Err(PkiError::Expired(at(validity.not_after.timestamp())));
    }
    if now < validity.not_before.timestamp() {
        return Err(PkiError::NotYetValid(at(validity.not_before.timestamp())));
    }
    Ok(pair)
}

/// [`check_pair`] without the look at the calendar.
pub fn read_pair(cert_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, PkiError> {
    let chain = read_certificates(cert_pem)?;
    let key = read_key(key_pem)?;
    let signer =
        provider().key_provider.load_private_key(key).map_err(|error| PkiError::UnsupportedKey(error.to_string()))?;
    let pair = CertifiedKey::new(chain, signer);
    match pair.keys_match() {
        // `Unknown` is a key that cannot tell its public half; the first handshake would.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => Err(PkiError::Mismatch),
        Err(other) => Err(PkiError::Malformed(other.to_string())),
    }
}

/// Whether one certificate names the other as its issuer, which may be itself; signatures are not looked at.
pub fn issued(authority: &CertificateDer<'_>, certificate: &CertificateDer<'_>) -> bool {
    let (Ok((_, authority)), Ok((_, certificate))) =
        (X509Certificate::from_der(authority), X509Certificate::from_der(certificate))
    else {
        return false;
    };
    authority.subject().as_raw() == certificate.issuer().as_raw()
}

/// A certificate as text.
pub fn to_pem(certificate: &CertificateDer<'_>) -> String {
    const LINE: usize = 64;
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, certificate);
    let lines: Vec<&str> =
        (0..encoded.len()).step_by(LINE).filter_map(|at| encoded.get(at..encoded.len().min(at + LINE))).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Every certificate of a PEM text, at least one.
pub fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PkiError::Pem(error.to_string()))?;
    if certificates.is_empty() { Err(PkiError::NoCertificate) } else { Ok(certificates) }
}

/// The first private key of a PEM text.
pub fn read_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PkiError> {
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(_) if is_encrypted(pem) => Err(PkiError::EncryptedKey),
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if is_encrypted(pem) => Err(PkiError::EncryptedKey),
        Err(pem::Error::NoItemsFound) => Err(PkiError::NoKey),
        // A passphrase-protected key in the traditional form has header lines that are not base64.
        Err(_) if is_encrypted(pem) => Err(PkiError::EncryptedKey),
        Err(error) => Err(PkiError::Pem(error.to_string())),
    }
}

fn is_encrypted(pem: &[u8]) -> bool {
    let contains = |needle: &[u8]| pem.windows(needle.len()).any(|window| window == needle);
    contains(b"BEGIN ENCRYPTED PRIVATE KEY") || contains(b"Proc-Type: 4,ENCRYPTED")
}
