//! Whom a client certificate names and whether to believe it.
//!
//! The handshake proves that the client holds the key and judges nothing else, so that a change of the trusted
//! authorities counts for connections that are already open and for resumed sessions. The judgement is made per
//! request with a [`TrustBundle`] of the current generation, and remembered per connection in a [`VerdictCache`].

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use rustls::{
    CertificateError, RootCertStore,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{PkiError, provider};
use crate::api::hex;

/// The subject attribute that carries a user's UID (apiserver `pkg/authentication/request/x509`).
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// What a client certificate says of its holder. Says nothing of whether it may be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The last common name of the subject; empty where there is none.
    pub common_name: String,
    /// Every organization of the subject, in the order of the certificate.
    pub organizations: Vec<String>,
    /// Every UID attribute, in order. More than one, or an empty one, is for the authenticator to refuse.
    pub uids: Vec<String>,
    /// DNS, e-mail, URI and IP names in the order of the certificate, as text.
    pub alternative_names: Vec<String>,
    /// Lower-case hex of the SHA-256 of the certificate.
    pub fingerprint: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// `SN=<decimal>, SKID=<hex>, AKID=<hex>`, as upstream's log lines name a certificate.
    pub identifier: String,
}

/// Reads the subject of a certificate. Fails where it is not a certificate, or a name in it is not text.
pub fn parse_client_identity(certificate: &CertificateDer<'_>) -> Result<ClientIdentity, PkiError> {
    let malformed = |what: &dyn fmt::Display| PkiError::Malformed(what.to_string());
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| malformed(&error))?;
    let (mut common_name, mut organizations, mut uids) = (String::new(), Vec::new(), Vec::new());
    for attribute in parsed.subject().iter_attributes() {
        let oid = attribute.attr_type().to_id_string();
        let text = || attribute.as_str().map(str::to_owned).map_err(|error| malformed(&error));
        match oid.as_str() {
            "2.5.4.3" => common_name = text()?,
            "2.5.4.10" => organizations.push(text()?),
            UID_ATTRIBUTE => uids.push(text()?),
            _ => {}
        }
    }
    Ok(ClientIdentity {
        common_name,
        organizations,
        uids,
        alternative_names: alternative_names(&parsed),
        fingerprint: hex::encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, certificate).as_ref()),
        not_before: time(parsed.validity().not_before.timestamp()),
        not_after: time(parsed.validity().not_after.timestamp()),
        identifier: identifier(&parsed),
    })
}

pub(super) fn time(seconds: i64) -> SystemTime {
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds),
        Err(_) => UNIX_EPOCH,
    }
}

pub(super) fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    use x509_parser::extensions::GeneralName;
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|octets| std::net::IpAddr::from(octets).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|octets| std::net::IpAddr::from(octets).to_string()),
        },
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

fn identifier(certificate: &X509Certificate<'_>) -> String {
    use x509_parser::extensions::ParsedExtension;
    let (mut subject, mut authority) = (String::new(), String::new());
    for extension in certificate.iter_extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => subject = colons(id.0),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                authority = id.key_identifier.as_ref().map(|id| colons(id.0)).unwrap_or_default();
            }
            _ => {}
        }
    }
    format!("SN={}, SKID={subject}, AKID={authority}", certificate.serial)
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// A set of authorities that client certificates may come from. Immutable; a reload makes a new one.
pub struct TrustBundle {
    /// Tells bundles apart in verdict caches; never reused within a process.
    id: u64,
    verifier: Arc<dyn ClientCertVerifier>,
    subjects: Vec<Vec<u8>>,
}

impl fmt::Debug for TrustBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustBundle").field("id", &self.id).field("authorities", &self.subjects.len()).finish()
    }
}

impl TrustBundle {
    /// Reads one or more certificates in PEM. Refuses a text with none and a certificate that cannot be an anchor,
    /// naming its place (from 1).
    pub fn from_pem(pem: &[u8]) -> Result<Self, PkiError> {
        let certificates = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| PkiError::Pem(error.to_string()))?;
        Self::new(certificates)
    }

    /// See [`Self::from_pem`].
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, PkiError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if certificates.is_empty() {
            return Err(PkiError::NoCertificate);
        }
        let mut roots = RootCertStore::empty();
        for (index, certificate) in certificates.into_iter().enumerate() {
            roots
                .add(certificate)
                .map_err(|error| PkiError::Malformed(format!("certificate {} of the bundle: {error}", index + 1)))?;
        }
        let subjects = roots.subjects().iter().map(|name| name.as_ref().to_vec()).collect();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| PkiError::Malformed(error.to_string()))?;
        Ok(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), verifier, subjects })
    }

    /// The encoded subjects of the authorities.
    pub fn subjects(&self) -> &[Vec<u8>] {
        &self.subjects
    }

    /// Whether `chain` (end entity first) leads to an authority of this bundle, is within its dates and is meant for
    /// client authentication. The error is Go's text where Go has one, so that logs read as upstream's.
    pub fn verify(&self, chain: &[CertificateDer<'static>]) -> Result<(), String> {
        let Some((end_entity, intermediates)) = chain.split_first() else {
            return Err("no certificate".to_owned());
        };
        self.verifier
            .verify_client_cert(end_entity, intermediates, UnixTime::now())
            .map(drop)
            .map_err(|error| reason(&error))
    }

    /// [`Self::verify`] and [`parse_client_identity`] in one, remembered in `cache` for this bundle. A remembered
    /// "yes" ends with the certificate's own end, a remembered "no" with its beginning where that is ahead.
    pub fn judge(&self, chain: &[CertificateDer<'static>], cache: &VerdictCache) -> Verdict {
        let now = SystemTime::now();
        if let Some(known) = cache.get(self.id, now) {
            return known;
        }
        let (verdict, until) = self.judge_now(chain, now);
        cache.put(Remembered { bundle: self.id, until, verdict: verdict.clone() });
        verdict
    }

    fn judge_now(&self, chain: &[CertificateDer<'static>], now: SystemTime) -> (Verdict, SystemTime) {
        let short = now + Duration::from_secs(60);
        let Some(end_entity) = chain.first() else { return (Err("no certificate".into()), short) };
        let identity = match parse_client_identity(end_entity) {
            Ok(identity) => Arc::new(identity),
            Err(error) => return (Err(error.to_string().into()), short),
        };
        match self.verify(chain) {
            // Intermediates may end sooner than the end entity: ask again every few minutes.
            Ok(()) => {
                let until = identity.not_after.min(now + Duration::from_secs(300));
                (Ok(identity), until)
            }
            Err(reason) => {
                (Err(format!("verifying certificate {} failed: {reason}", identity.identifier).into()), short)
            }
        }
    }
}

/// Whom a chain names, or why it is not believed.
pub type Verdict = Result<Arc<ClientIdentity>, Arc<str>>;

/// The last verdict on a connection's certificates. Empty at first.
#[derive(Default)]
pub struct VerdictCache(Mutex<Vec<Remembered>>);

#[derive(Clone)]
struct Remembered {
    bundle: u64,
    until: SystemTime,
    verdict: Verdict,
}

/// One for client certificates, one for front proxies, and one more of each during a change.
const REMEMBERED: usize = 4;

impl VerdictCache {
    fn get(&self, bundle: u64, now: SystemTime) -> Option<Verdict> {
        self.0
            .lock()
            .iter()
            .find(|known| known.bundle == bundle && now < known.until)
            .map(|known| known.verdict.clone())
    }

    fn put(&self, verdict: Remembered) {
        let mut known = self.0.lock();
        known.retain(|old| old.bundle != verdict.bundle);
        if known.len() >= REMEMBERED {
            known.remove(0);
        }
        known.push(verdict);
    }
}

impl fmt::Debug for VerdictCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VerdictCache").field(&self.0.lock().len()).finish()
    }
}

fn reason(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(certificate) = error else { return error.to_string() };
    match certificate {
        // A signature that fails is that of another authority of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "x509: certificate specifies an incompatible key usage".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("x509: certificate has expired or is not yet valid: {certificate}")
        }
        other => format!("x509: {other}"),
    }
}
