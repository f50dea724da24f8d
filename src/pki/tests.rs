use std::{fs, net::IpAddr, os::unix::fs::PermissionsExt, path::Path, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::*;

fn options(directory: &Path) -> NewcomerOptions {
    NewcomerOptions {
        directory: directory.join("pki"),
        kubeconfig: directory.join("conf/admin.conf"),
        server_url: "https://192.0.2.7:6443".into(),
        host_name: "Node-1".into(),
        addresses: vec!["192.0.2.7".parse().unwrap(), "0.0.0.0".parse().unwrap(), "10.0.0.1".parse().unwrap()],
        cluster_domain: "cluster.local".into(),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_newcomer_gets_everything_once_and_privately() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let first = newcomer::ensure(&options).unwrap();
    assert_eq!(first.written.len(), 7);
    for path in &first.written {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    assert_eq!((mode(&options.directory), mode(&directory.path().join("conf"))), (0o700, 0o700));
    assert_eq!(fs::read_dir(&options.directory).unwrap().count(), 6, "nothing staged is left over");

    let second = newcomer::ensure(&options).unwrap();
    assert_eq!(second.written, Vec::<std::path::PathBuf>::new());
    assert_eq!((second.authority_pem, second.serving_pem), (first.authority_pem, first.serving_pem));
    assert!(second.renew_at > SystemTime::now());
}

#[test]
fn the_serving_certificate_carries_every_name_and_is_made_anew_when_one_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let first = newcomer::ensure(&options).unwrap();
    let names = |pem: &str| {
        parse_client_identity(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap().alternative_names
    };
    assert_eq!(
        names(&first.serving_pem),
        [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "node-1",
            "127.0.0.1",
            "::1",
            "192.0.2.7",
            "10.0.0.1"
        ]
    );
    options.addresses.push("192.0.2.8".parse::<IpAddr>().unwrap());
    let second = newcomer::ensure(&options).unwrap();
    assert_eq!(second.authority_pem, first.authority_pem);
    assert!(names(&second.serving_pem).contains(&"192.0.2.8".to_owned()));
    assert_eq!(second.written, [options.directory.join("apiserver.key"), options.directory.join("apiserver.crt")]);
}

#[test]
fn a_serving_pair_that_somebody_put_there_is_served_as_it_is_and_trusted_by_the_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let (now, day) = (SystemTime::now(), std::time::Duration::from_secs(86_400));
    let (pem, key) = self_signed(now - day, now + day);
    fs::create_dir(&options.directory).unwrap();
    fs::write(options.directory.join("apiserver.crt"), &pem).unwrap();
    fs::write(options.directory.join("apiserver.key"), key.serialize_pem()).unwrap();
    for _ in 0..2 {
        let made = newcomer::ensure(&options).unwrap();
        assert_eq!((&made.serving_pem, &made.serving_key_pem), (&pem, &key.serialize_pem()));
        assert!(made.renew_at > now + 300 * day, "nobody waits for another's certificate");
        let config = fs::read_to_string(&options.kubeconfig).unwrap();
        let trusted = STANDARD.encode(made.authority_pem + &pem);
        assert!(config.contains(&trusted));
    }
}

#[test]
fn the_administrator_is_believed_by_the_bundle_and_a_server_certificate_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let made = newcomer::ensure(&options).unwrap();
    let bundle = TrustBundle::from_pem(made.authority_pem.as_bytes()).unwrap();
    let chain = |path: &Path| pair::read_certificates(&fs::read(path).unwrap()).unwrap();
    let admin = chain(&options.directory.join("admin.crt"));
    assert_eq!(bundle.verify(&admin), Ok(()));
    let identity = bundle.judge(&admin, &VerdictCache::default()).unwrap();
    assert_eq!(
        (identity.common_name.as_str(), &identity.organizations[..]),
        ("kubernetes-admin", &["system:masters".to_owned()][..])
    );
    let serving = chain(&options.directory.join("apiserver.crt"));
    assert_eq!(bundle.verify(&serving).unwrap_err(), "x509: certificate specifies an incompatible key usage");
    assert_eq!(bundle.verify(&[]).unwrap_err(), "no certificate");
}

#[test]
fn a_verdict_is_remembered_for_its_bundle_alone() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (options(first.path()), options(second.path()));
    let bundles = [&first, &second]
        .map(|options| TrustBundle::from_pem(newcomer::ensure(options).unwrap().authority_pem.as_bytes()).unwrap());
    let chain = pair::read_certificates(&fs::read(first.directory.join("admin.crt")).unwrap()).unwrap();
    let cache = VerdictCache::default();
    let known = bundles[0].judge(&chain, &cache).unwrap();
    assert!(bundles[1].judge(&chain, &cache).is_err());
    assert!(Arc::ptr_eq(&known, &bundles[0].judge(&chain, &cache).unwrap()));
}

#[test]
fn an_authority_that_cannot_be_read_is_an_error_and_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    newcomer::ensure(&options).unwrap();
    fs::remove_file(options.directory.join("ca.key")).unwrap();
    // As long as nothing has to be signed the key is not missed.
    assert!(newcomer::ensure(&options).unwrap().written.is_empty());
    options.addresses.push("192.0.2.9".parse::<IpAddr>().unwrap());
    let before = fs::read(options.directory.join("ca.crt")).unwrap();
    assert!(newcomer::ensure(&options).unwrap_err().to_string().contains("ca.key"));
    fs::write(options.directory.join("ca.crt"), "garbage").unwrap();
    assert!(newcomer::ensure(&options).unwrap_err().to_string().contains("ca.crt: no PEM certificate in the text"));
    assert_ne!(before, fs::read(options.directory.join("ca.crt")).unwrap());
}

#[test]
fn the_service_account_key_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = newcomer::ensure_service_account_key(directory.path()).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(newcomer::ensure_service_account_key(directory.path()).unwrap(), path);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(pair::read_key(&before).is_ok());
}

fn self_signed(from: SystemTime, to: SystemTime) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["server".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (from.into(), to.into());
    (params.self_signed(&key).unwrap().pem(), key)
}

#[test]
fn every_way_a_pair_can_be_unusable_has_its_own_words() {
    let (now, day) = (SystemTime::now(), std::time::Duration::from_secs(86_400));
    let (pem, key) = self_signed(now - day, now + day);
    let key_pem = key.serialize_pem();
    assert!(check_pair(pem.as_bytes(), key_pem.as_bytes()).is_ok());
    let both = format!("{key_pem}{pem}");
    assert!(check_pair(both.as_bytes(), both.as_bytes()).is_ok(), "one file may hold both");

    let other = KeyPair::generate().unwrap().serialize_pem();
    assert_eq!(check_pair(pem.as_bytes(), other.as_bytes()).unwrap_err(), PkiError::Mismatch);
    assert_eq!(check_pair(b"", key_pem.as_bytes()).unwrap_err(), PkiError::NoCertificate);
    assert_eq!(check_pair(key_pem.as_bytes(), key_pem.as_bytes()).unwrap_err(), PkiError::NoCertificate);
    assert_eq!(check_pair(pem.as_bytes(), pem.as_bytes()).unwrap_err(), PkiError::NoKey);
    let encrypted = key_pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    assert_eq!(check_pair(pem.as_bytes(), encrypted.as_bytes()).unwrap_err(), PkiError::EncryptedKey);
    let traditional = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    assert_eq!(check_pair(pem.as_bytes(), traditional.as_bytes()).unwrap_err(), PkiError::EncryptedKey);
    assert!(matches!(check_pair(pem.replace("MII", "M!I").as_bytes(), key_pem.as_bytes()), Err(PkiError::Pem(_))));

    let (old, key) = self_signed(now - 2 * day, now - day);
    assert!(matches!(check_pair(old.as_bytes(), key.serialize_pem().as_bytes()), Err(PkiError::Expired(_))));
    let (early, key) = self_signed(now + day, now + 2 * day);
    assert!(matches!(check_pair(early.as_bytes(), key.serialize_pem().as_bytes()), Err(PkiError::NotYetValid(_))));
}

/// CN=jane, O=zebras, O=admins, UID attribute u-1, made with openssl so that an attribute can come twice:
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -config ...`.
const TWO_GROUPS: &str = include_str!("two_groups.pem");

#[test]
fn groups_keep_their_order_and_the_uid_attribute_is_read() {
    let identity = parse_client_identity(&CertificateDer::from_pem_slice(TWO_GROUPS.as_bytes()).unwrap()).unwrap();
    assert_eq!(identity.common_name, "jane");
    assert_eq!(identity.organizations, ["zebras", "admins"]);
    assert_eq!(identity.uids, ["u-1"]);
    assert_eq!(identity.fingerprint.len(), 64);
    assert!(identity.identifier.starts_with("SN="));
    assert!(parse_client_identity(&CertificateDer::from(vec![1, 2, 3])).is_err());
}

#[test]
fn intermediates_the_client_sends_are_used_and_missing_ones_missed() {
    let root_key = KeyPair::generate().unwrap();
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params
    };
    let root = authority("root");
    let root_pem = root.self_signed(&root_key).unwrap();
    let root = Issuer::new(root, root_key);
    let middle_key = KeyPair::generate().unwrap();
    let middle = authority("middle");
    let middle_der = middle.signed_by(&middle_key, &root).unwrap().der().clone();
    let middle = Issuer::new(middle, middle_key);
    let mut leaf = CertificateParams::default();
    leaf.distinguished_name.push(DnType::CommonName, "leaf");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &middle).unwrap().der().clone();
    let bundle = TrustBundle::new(vec![root_pem.der().clone()]).unwrap();
    assert_eq!(bundle.verify(&[leaf.clone(), middle_der]), Ok(()));
    assert_eq!(bundle.verify(&[leaf]).unwrap_err(), "x509: certificate signed by unknown authority");
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    assert_eq!(TrustBundle::from_pem(b"").unwrap_err(), PkiError::NoCertificate);
}
