//! Signatures of JSON web tokens, and the public keys that verify them (RFC 7515, 7517, 7518, 8037).
//!
//! Only algorithms with a public key exist here: none is no algorithm, and one with a shared secret would make anybody an
//! issuer who has the published key.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

/// Algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl SignatureAlgorithm {
    /// Every algorithm, with its word in headers.
    const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// Returns the algorithm of a word; `None`: there is none with a public key.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, algorithm)| *algorithm)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }
}

/// Public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VerifyingKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerifyingKey {
    /// Reads a key of a key set; `None`: it is none that verifies signatures here.
    pub(super) fn read(key: &Value) -> Option<Self> {
        let text = |member: &str| key.get(member).and_then(Value::as_str);
        let bytes = |member: &str| BASE64_URL_SAFE_NO_PAD.decode(text(member)?).ok();
        // An uncompressed point, as SEC 1 writes it.
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4], &x[..], &y[..]].concat())
        };
        match (text("kty")?, text("crv")) {
            ("RSA", _) => Some(Self::Rsa { modulus: bytes("n")?, exponent: bytes("e")? }),
            ("EC", Some("P-256")) => point(32).map(Self::P256),
            ("EC", Some("P-384")) => point(48).map(Self::P384),
            ("OKP", Some("Ed25519")) => bytes("x").filter(|x| x.len() == 32).map(Self::Ed25519),
            _ => None,
        }
    }

    /// Returns whether the key has signed a message. A key of another kind than the algorithm has signed nothing.
    pub(super) fn has_signed(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, algorithm) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                algorithm.rsa().is_some_and(|parameters| key.verify(parameters, message, signature).is_ok())
            }
            (Self::P256(point), SignatureAlgorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::P384(point), SignatureAlgorithm::Es384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::Ed25519(point), SignatureAlgorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature).is_ok()
            }
            (Self::P256(_) | Self::P384(_) | Self::Ed25519(_), _) => false,
        }
    }
}
