//! The certificates and the kubeconfig of someone who configured none.
//!
//! In `<directory>` (0700): `ca.crt`/`ca.key`, `apiserver.crt`/`.key`, `admin.crt`/`.key`, and where asked `sa.key`; the
//! kubeconfig where the caller wants it. All files are 0600 and appear whole or not at all. Everything is kept as long as
//! it is good: the serving certificate is made anew when a name is missing from it, all when their last thirty days have
//! begun. A serving pair that somebody else put there is served as it is, as kube-apiserver does with what it finds in its
//! `--cert-dir`; whoever put it there renews it. An authority that is there but unreadable, or lacks its key when a signature is needed, is an error: making
//! another would silently cut off everyone who trusts the first. All keys are ECDSA P-256: making RSA keys would cost
//! more than the whole start.

use std::{
    fs,
    io::Write as _,
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{PkiError, pair, trust};
use crate::api::hex;

/// What the names of all authorities made here begin with.
const AUTHORITY: &str = "kenter-ca-";
const DAY: Duration = Duration::from_secs(86_400);
const AUTHORITY_LIFE: Duration = Duration::from_secs(3650 * 86_400);
const LEAF_LIFE: Duration = Duration::from_secs(365 * 86_400);
/// What is left when a certificate is made anew.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// What to make, and for whom.
#[derive(Clone, Debug)]
pub struct NewcomerOptions {
    /// Where certificates and keys are kept.
    pub directory: PathBuf,
    /// Where the administrator's kubeconfig goes.
    pub kubeconfig: PathBuf,
    /// `https://host:port` as the kubeconfig shall say it.
    pub server_url: String,
    /// The machine's name; left out of the certificate where it is no DNS name.
    pub host_name: String,
    /// Bind and advertise addresses and the first service IP. Unspecified addresses are left out; loopback is always in.
    pub addresses: Vec<IpAddr>,
    /// DNS suffix of services, `cluster.local` by default.
    pub cluster_domain: String,
}

/// What is there now.
#[derive(Clone, Debug)]
pub struct Newcomer {
    pub authority_file: PathBuf,
    pub authority_pem: String,
    pub serving_pem: String,
    pub serving_key_pem: String,
    pub kubeconfig: PathBuf,
    /// Files written by this call, in order; empty on an ordinary start.
    pub written: Vec<PathBuf>,
    /// When [`ensure`] would make something anew.
    pub renew_at: SystemTime,
}

/// What [`prepare`] made, with the files that are not written yet.
pub struct Prepared {
    newcomer: Newcomer,
    directory: PathBuf,
    pending: Pending,
}

impl Prepared {
    /// What there will be: all of it can be used before it is written.
    pub fn newcomer(&self) -> &Newcomer {
        &self.newcomer
    }

    /// Writes what was made. Blocks on the disk; does nothing where all was there.
    pub fn write(self) -> Result<Newcomer, PkiError> {
        make_directory(&self.directory)?;
        for parent in self.pending.0.iter().filter_map(|(path, _)| path.parent()) {
            make_directory(parent)?;
        }
        let written = self.pending.write()?;
        Ok(Newcomer { written, ..self.newcomer })
    }
}

/// Makes what is missing, keeps what is good. Safe to call again at any time; blocks on the disk where it writes.
pub fn ensure(options: &NewcomerOptions) -> Result<Newcomer, PkiError> {
    prepare(options)?.write()
}

/// The first half of [`ensure`]: reads what is there and makes what is missing, in memory alone.
pub fn prepare(options: &NewcomerOptions) -> Result<Prepared, PkiError> {
    let now = SystemTime::now();
    let mut pending = Pending::default();
    let authority = Authority::load_or_make(&options.directory, now, &mut pending)?;

    let given = given(&options.directory, "apiserver", &authority);
    let trusted = given.as_ref().map_or_else(|| authority.pem.clone(), |given| authority.pem.clone() + &given.pem);
    let serving = match given {
        Some(given) => given,
        None => serving(options, &authority, now, &mut pending)?,
    };
    let admin = leaf(&options.directory, "admin", &authority, &[], now, &mut pending, || {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "kubernetes-admin");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params)
    })?;

    let config = kubeconfig(&options.server_url, &trusted, &admin.pem, &admin.key_pem);
    if fs::read_to_string(&options.kubeconfig).ok().as_deref() != Some(config.as_str()) {
        pending.0.push((options.kubeconfig.clone(), config));
    }
    let renew_at = authority.not_after.min(serving.not_after).min(admin.not_after) - RENEW_BEFORE;
    let newcomer = Newcomer {
        authority_file: options.directory.join("ca.crt"),
        authority_pem: authority.pem,
        serving_pem: serving.pem,
        serving_key_pem: serving.key_pem,
        kubeconfig: options.kubeconfig.clone(),
        written: Vec::new(),
        renew_at,
    };
    Ok(Prepared { newcomer, directory: options.directory.clone(), pending })
}

/// The serving pair made here.
fn serving(
    options: &NewcomerOptions,
    authority: &Authority,
    now: SystemTime,
    pending: &mut Pending,
) -> Result<Leaf, PkiError> {
    let names = serving_names(options);
    leaf(&options.directory, "apiserver", authority, &names, now, pending, || {
        let mut params = CertificateParams::new(names.clone()).map_err(making)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(params)
    })
}

/// The key that signs service account tokens: `<directory>/sa.key`, ECDSA P-256 in PKCS#8 PEM, made where it is missing.
pub fn ensure_service_account_key(directory: &Path) -> Result<PathBuf, PkiError> {
    make_directory(directory)?;
    let path = directory.join("sa.key");
    match fs::read(&path) {
        Ok(pem) => {
            pair::read_key(&pem).map_err(|error| io(&path, &error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Pending(vec![(path.clone(), new_key()?.serialize_pem())]).write()?;
        }
        Err(error) => return Err(io(&path, &error)),
    }
    Ok(path)
}

/// Every name and address the serving certificate has to carry, in a fixed order.
fn serving_names(options: &NewcomerOptions) -> Vec<String> {
    let mut names: Vec<String> =
        ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].iter().map(|name| (*name).to_owned()).collect();
    names.push(format!("kubernetes.default.svc.{}", options.cluster_domain));
    names.push("localhost".to_owned());
    if is_dns_name(&options.host_name) {
        names.push(options.host_name.to_ascii_lowercase());
    }
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    names.extend(
        options
            .addresses
            .iter()
            .filter(|address| !address.is_unspecified())
            .map(|address| address.to_canonical().to_string()),
    );
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn is_dns_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
        && name.parse::<IpAddr>().is_err()
}

struct Authority {
    directory: PathBuf,
    pem: String,
    subject: Vec<u8>,
    not_after: SystemTime,
    /// Present where it was made just now and is not on the disk yet.
    fresh_key: Option<String>,
}

impl Authority {
    fn load_or_make(directory: &Path, now: SystemTime, pending: &mut Pending) -> Result<Self, PkiError> {
        let path = directory.join("ca.crt");
        match fs::read_to_string(&path) {
            Ok(pem) => {
                let authority = Self::parse(directory, pem, None).map_err(|error| io(&path, &error))?;
                if authority.not_after > now + RENEW_BEFORE {
                    Ok(authority)
                } else {
                    Self::make(directory, now, pending)
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::make(directory, now, pending),
            Err(error) => Err(io(&path, &error)),
        }
    }

    fn parse(directory: &Path, pem: String, fresh_key: Option<String>) -> Result<Self, PkiError> {
        let chain = pair::read_certificates(pem.as_bytes())?;
        let first = chain.first().ok_or(PkiError::NoCertificate)?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| PkiError::Malformed(error.to_string()))?;
        let not_after = trust::time(parsed.validity().not_after.timestamp());
        let subject = parsed.subject().as_raw().to_vec();
        Ok(Self { directory: directory.to_owned(), subject, not_after, pem, fresh_key })
    }

    fn make(directory: &Path, now: SystemTime, pending: &mut Pending) -> Result<Self, PkiError> {
        let key = new_key()?;
        let mut params = CertificateParams::default();
        // A name of its own, so that two authorities are never taken for one another in a bundle.
        let number = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key.public_key_raw());
        let number = hex::encode(number.as_ref().get(..4).unwrap_or_default());
        params.distinguished_name.push(DnType::CommonName, format!("{AUTHORITY}{number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        dates(&mut params, now, AUTHORITY_LIFE);
        let pem = params.self_signed(&key).map_err(making)?.pem();
        let key = key.serialize_pem();
        pending.0.push((directory.join("ca.key"), key.clone()));
        pending.0.push((directory.join("ca.crt"), pem.clone()));
        Self::parse(directory, pem, Some(key))
    }

    fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Result<String, PkiError> {
        let path = self.directory.join("ca.key");
        let text = match &self.fresh_key {
            Some(text) => text.clone(),
            None => fs::read_to_string(&path).map_err(|error| io(&path, &error))?,
        };
        let signer = KeyPair::from_pem(&text).map_err(|error| io(&path, &error))?;
        let issuer = Issuer::from_ca_cert_pem(&self.pem, signer).map_err(making)?;
        Ok(params.signed_by(key, &issuer).map_err(making)?.pem())
    }
}

struct Leaf {
    pem: String,
    key_pem: String,
    not_after: SystemTime,
}

/// The pair called `name` where it is there and no authority of kenter's made it. It is never renewed, so that it ends
/// with the authority.
fn given(directory: &Path, name: &str, authority: &Authority) -> Option<Leaf> {
    let [pem, key_pem] =
        ["crt", "key"].map(|end| fs::read_to_string(directory.join(format!("{name}.{end}"))).unwrap_or_default());
    let pair = pair::check_pair(pem.as_bytes(), key_pem.as_bytes()).ok()?;
    let (_, parsed) = X509Certificate::from_der(pair.end_entity_cert().ok()?).ok()?;
    let mut issuers = parsed.issuer().iter_common_name();
    let is_own = issuers.any(|name| name.as_str().is_ok_and(|name| name.starts_with(AUTHORITY)));
    (!is_own).then_some(Leaf { pem, key_pem, not_after: authority.not_after })
}

/// The pair called `name`: the one on disk if it still does, else a new one.
fn leaf(
    directory: &Path,
    name: &str,
    authority: &Authority,
    names: &[String],
    now: SystemTime,
    pending: &mut Pending,
    params: impl FnOnce() -> Result<CertificateParams, PkiError>,
) -> Result<Leaf, PkiError> {
    let (cert_path, key_path) = (directory.join(format!("{name}.crt")), directory.join(format!("{name}.key")));
    if let (Ok(pem), Ok(key_pem)) = (fs::read_to_string(&cert_path), fs::read_to_string(&key_path))
        && let Some(not_after) = still_good(&pem, &key_pem, authority, names, now)
    {
        return Ok(Leaf { pem, key_pem, not_after });
    }
    let key = new_key()?;
    let mut params = params()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let life = LEAF_LIFE.min(authority.not_after.duration_since(now).unwrap_or_default());
    dates(&mut params, now, life);
    let leaf = Leaf { pem: authority.sign(&params, &key)?, key_pem: key.serialize_pem(), not_after: now + life };
    pending.0.push((key_path, leaf.key_pem.clone()));
    pending.0.push((cert_path, leaf.pem.clone()));
    Ok(leaf)
}

/// The end of a pair that matches, comes from `authority`, carries `names` and is not in its last days.
fn still_good(
    pem: &str,
    key_pem: &str,
    authority: &Authority,
    names: &[String],
    now: SystemTime,
) -> Option<SystemTime> {
    let pair = pair::check_pair(pem.as_bytes(), key_pem.as_bytes()).ok()?;
    let (_, parsed) = X509Certificate::from_der(pair.end_entity_cert().ok()?).ok()?;
    let not_after = trust::time(parsed.validity().not_after.timestamp());
    let there = trust::alternative_names(&parsed);
    let good = parsed.issuer().as_raw() == authority.subject.as_slice()
        && not_after > now + RENEW_BEFORE
        && names.iter().all(|name| there.contains(name));
    good.then_some(not_after)
}

fn dates(params: &mut CertificateParams, now: SystemTime, life: Duration) {
    // An hour back, for clients whose clock is behind.
    params.not_before = (now - DAY / 24).into();
    params.not_after = (now + life).into();
}

fn new_key() -> Result<KeyPair, PkiError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(making)
}

fn making(error: rcgen::Error) -> PkiError {
    PkiError::Making(error.to_string())
}

fn io(path: &Path, reason: &dyn std::fmt::Display) -> PkiError {
    PkiError::Io { path: path.to_owned(), reason: reason.to_string() }
}

/// A kubeconfig with everything inside, in the order kubectl writes it.
fn kubeconfig(server: &str, authority: &str, certificate: &str, key: &str) -> String {
    let [authority, certificate, key] = [authority, certificate, key].map(|pem| STANDARD.encode(pem));
    format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: {server}\n  \
         name: kubernetes\ncontexts:\n- context:\n    cluster: kubernetes\n    user: kubernetes-admin\n  \
         name: kubernetes-admin@kubernetes\ncurrent-context: kubernetes-admin@kubernetes\nkind: Config\n\
         users:\n- name: kubernetes-admin\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n"
    )
}

fn make_directory(path: &Path) -> Result<(), PkiError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| io(path, &error))
}

/// Files to be written, in the order they shall appear.
#[derive(Default)]
struct Pending(Vec<(PathBuf, String)>);

impl Pending {
    /// Writes all of them beside their places, makes them durable at the same time, then moves them in order.
    fn write(self) -> Result<Vec<PathBuf>, PkiError> {
        let staged: Vec<PathBuf> = self.0.iter().map(|(path, _)| staging_name(path)).collect();
        let results: Vec<Result<(), PkiError>> = std::thread::scope(|scope| {
            let writers: Vec<_> = self
                .0
                .iter()
                .zip(&staged)
                .map(|((path, text), staged)| {
                    scope.spawn(move || stage(staged, text).map_err(|error| io(path, &error)))
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap_or_else(|_| Err(PkiError::Making("writer failed".into()))))
                .collect()
        });
        if let Some(error) = results.into_iter().find_map(Result::err) {
            staged.iter().for_each(|path| drop(fs::remove_file(path)));
            return Err(error);
        }
        for ((path, _), staged) in self.0.iter().zip(&staged) {
            fs::rename(staged, path).map_err(|error| io(path, &error))?;
        }
        let mut directories: Vec<&Path> = self.0.iter().filter_map(|(path, _)| path.parent()).collect();
        directories.dedup();
        for directory in directories.into_iter().filter(|path| !path.as_os_str().is_empty()) {
            fs::File::open(directory).and_then(|handle| handle.sync_all()).map_err(|error| io(directory, &error))?;
        }
        Ok(self.0.into_iter().map(|(path, _)| path).collect())
    }
}

fn staging_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn stage(path: &Path, text: &str) -> std::io::Result<()> {
    // One left behind by a process of the same number that was killed here.
    drop(fs::remove_file(path));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
