//! What others need to verify service account tokens: the issuer's OpenID configuration and its public keys
//! (kubernetes `pkg/serviceaccount/openidmetadata.go`).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, pem::PemObject};
use x509_parser::{prelude::FromDer, public_key::PublicKey, x509::SubjectPublicKeyInfo};

use crate::{
    json,
    object::{Map, Value, to_vec},
    pki::{SigningKey, key_id},
};

/// The two documents, made once a generation.
pub struct OpenId {
    pub configuration: Vec<u8>,
    pub keys: Vec<u8>,
}

impl OpenId {
    /// `None` where the issuer is no https URL or where no key can be read: upstream serves neither document then.
    ///
    /// `pems`: public or private keys. `keys_url`: where clients reach `/openid/v1/jwks`.
    pub fn new<'a>(issuer: &str, pems: impl Iterator<Item = &'a [u8]>, keys_url: &str) -> Option<Self> {
        if !issuer.starts_with("https://") {
            return None;
        }
        let mut keys: Vec<Map> = Vec::new();
        for key in pems.flat_map(public_keys).filter_map(|der| web_key(&der)) {
            // A signing key is often among those that verify as well.
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut algorithms: Vec<&str> = keys.iter().filter_map(|key| key.get("alg")?.as_str()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        if algorithms.is_empty() {
            return None;
        }
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms
        });
        Some(Self { configuration: to_vec(&configuration), keys: to_vec(&json!({"keys": keys})) })
    }
}

/// The public keys in a PEM file, or those of its private keys, as SubjectPublicKeyInfo.
fn public_keys(pem: &[u8]) -> Vec<Vec<u8>> {
    let public = SubjectPublicKeyInfoDer::pem_slice_iter(pem).flatten().map(|der| der.to_vec());
    let private = PrivateKeyDer::pem_slice_iter(pem).flatten().filter_map(|der| SigningKey::from_der(&der).ok());
    let private = private.map(|key| key.public().to_vec());
    public.chain(private).collect()
}

/// The JSON web key of a SubjectPublicKeyInfo; its id is the hash of that.
fn web_key(der: &[u8]) -> Option<Map> {
    let (_, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
    let text = |bytes: &[u8]| Value::from(URL_SAFE_NO_PAD.encode(bytes));
    let mut key = match info.parsed().ok()? {
        PublicKey::RSA(rsa) => Map::from([
            ("kty", Value::from("RSA")),
            ("alg", Value::from("RS256")),
            ("n", text(without_zeros(rsa.modulus))),
            ("e", text(without_zeros(rsa.exponent))),
        ]),
        PublicKey::EC(point) => {
            // 4, then both coordinates.
            let (_, coordinates) = point.data().split_first()?;
            let (curve, algorithm) = match coordinates.len() {
                64 => ("P-256", "ES256"),
                96 => ("P-384", "ES384"),
                132 => ("P-521", "ES512"),
                _ => return None,
            };
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            Map::from([
                ("kty", Value::from("EC")),
                ("alg", Value::from(algorithm)),
                ("crv", Value::from(curve)),
                ("x", text(x)),
                ("y", text(y)),
            ])
        }
        _ => return None,
    };
    key.insert("use", "sig");
    key.insert("kid", key_id(der));
    Some(key)
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::parse;

    #[test]
    fn the_keys_are_those_of_the_pem_whether_private_or_public() {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let (private, public) = (pair.serialize_pem(), pair.public_key_pem());
        let both = [private.as_bytes(), public.as_bytes(), b"no key"];
        let made = OpenId::new("https://kubernetes.default.svc", both.into_iter(), "https://h/openid/v1/jwks").unwrap();
        let keys = parse(&made.keys).unwrap();
        let [key] = keys.array_at(&["keys"]) else { panic!("one key: {keys:?}") };
        assert_eq!((key.str_at(&["kty"]), key.str_at(&["crv"]), key.str_at(&["alg"])), ("EC", "P-256", "ES256"));
        assert_eq!(key.str_at(&["kid"]), key_id(&rcgen::PublicKeyData::subject_public_key_info(&pair)));
        let configuration = parse(&made.configuration).unwrap();
        let algorithms = configuration.array_at(&["id_token_signing_alg_values_supported"]);
        assert_eq!(algorithms, [Value::from("ES256")]);
    }

    #[test]
    fn nothing_is_served_without_an_issuer_that_is_a_url_or_without_keys() {
        assert!(OpenId::new("kubernetes/serviceaccount", [b"".as_slice()].into_iter(), "").is_none());
        assert!(OpenId::new("https://issuer", [b"".as_slice()].into_iter(), "").is_none());
    }
}
