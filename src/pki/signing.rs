//! Keys that sign service account tokens (kubernetes `pkg/serviceaccount/jwt.go`): RSA with RS256, ECDSA over P-256,
//! P-384 and P-521 with ES256, ES384 and ES512.

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
        EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};

use super::PkiError;

/// A private key and what others need to verify what it signs. Shows nothing of itself.
pub struct SigningKey {
    pair: Pair,
    algorithm: &'static str,
    public: Vec<u8>,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl SigningKey {
    /// The first private key of a PEM text.
    ///
    /// # Errors
    /// No key in the text, or one of a kind that does not sign tokens.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PkiError> {
        let key = PrivateKeyDer::pem_slice_iter(pem).flatten().next().ok_or(PkiError::NoKey)?;
        Self::from_der(&key)
    }

    /// # Errors
    /// A key of a kind that does not sign tokens.
    pub fn from_der(key: &PrivateKeyDer<'_>) -> Result<Self, PkiError> {
        let rsa = match key {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok(),
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok(),
            _ => None,
        };
        let unusable = || PkiError::UnsupportedKey("neither RSA nor ECDSA over P-256, P-384 or P-521".to_owned());
        if let Some(pair) = rsa {
            let public = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).map_err(|_| unusable())?;
            let public = public.as_ref().to_vec();
            return Ok(Self { pair: Pair::Rsa(pair), algorithm: "RS256", public });
        }
        let curves: [(&'static EcdsaSigningAlgorithm, &'static str); 3] = [
            (&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256"),
            (&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384"),
            (&ECDSA_P521_SHA512_FIXED_SIGNING, "ES512"),
        ];
        let found = curves.into_iter().find_map(|(curve, algorithm)| {
            let pair = match key {
                PrivateKeyDer::Sec1(der) => EcdsaKeyPair::from_private_key_der(curve, der.secret_sec1_der()).ok(),
                PrivateKeyDer::Pkcs8(der) => EcdsaKeyPair::from_pkcs8(curve, der.secret_pkcs8_der()).ok(),
                _ => None,
            };
            Some((pair?, algorithm))
        });
        let (pair, algorithm) = found.ok_or_else(unusable)?;
        let public = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).map_err(|_| unusable())?;
        let public = public.as_ref().to_vec();
        Ok(Self { pair: Pair::Ecdsa(pair), algorithm, public })
    }

    /// The public half as SubjectPublicKeyInfo.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// `claims`, which are JSON, as a signed token (JWS, compact).
    ///
    /// # Errors
    /// The signature could not be made.
    pub fn sign(&self, claims: &[u8]) -> Result<String, PkiError> {
        let header = format!(r#"{{"alg":"{}","kid":"{}"}}"#, self.algorithm, key_id(&self.public));
        let mut token = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let failed = |_| PkiError::Making("the token could not be signed".to_owned());
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature).map_err(failed)?;
                URL_SAFE_NO_PAD.encode(signature)
            }
            Pair::Ecdsa(pair) => {
                URL_SAFE_NO_PAD.encode(pair.sign(&SystemRandom::new(), token.as_bytes()).map_err(failed)?)
            }
        };
        token.push('.');
        token.push_str(&signature);
        Ok(token)
    }
}

/// What tokens and key sets call a public key: it tells nothing of it.
pub fn key_id(public: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, public).as_ref())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
        VerificationAlgorithm,
    };

    use super::*;

    fn signed_by(pem: &str, algorithm: &'static dyn VerificationAlgorithm) -> String {
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        let token = key.sign(br#"{"sub":"a"}"#).unwrap();
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(algorithm, key.public()).verify(message.as_bytes(), &signature).unwrap();
        String::from_utf8(URL_SAFE_NO_PAD.decode(message.split_once('.').unwrap().0).unwrap()).unwrap()
    }

    #[test]
    fn what_is_signed_can_be_verified_with_the_public_key_and_names_it() {
        let p256 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let header = signed_by(&p256.serialize_pem(), &ECDSA_P256_SHA256_FIXED);
        let id = key_id(&rcgen::PublicKeyData::subject_public_key_info(&p256));
        assert_eq!(header, format!(r#"{{"alg":"ES256","kid":"{id}"}}"#));
        let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        assert!(signed_by(&p384.serialize_pem(), &ECDSA_P384_SHA384_FIXED).contains("ES384"));
        let rsa = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
        assert!(signed_by(&rsa.serialize_pem(), &RSA_PKCS1_2048_8192_SHA256).contains("RS256"));
    }

    #[test]
    fn other_keys_do_not_sign() {
        let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        assert!(matches!(SigningKey::from_pem(ed25519.serialize_pem().as_bytes()), Err(PkiError::UnsupportedKey(_))));
        assert!(matches!(SigningKey::from_pem(b"nothing"), Err(PkiError::NoKey)));
    }
}
