//! Client certificates: common name → user, organizations → groups
//! (apiserver `pkg/authentication/request/x509`).

use std::{collections::BTreeMap, sync::Arc};

use super::{Authenticated, Outcome};
use crate::auth::user::{CREDENTIAL_ID, UserInfo};
use crate::pki::{ClientIdentity, TrustBundle};
use crate::server::http::ConnInfo;

pub(super) fn authenticate(bundle: &TrustBundle, conn: Option<&ConnInfo>) -> Outcome {
    let Some(conn) = conn.filter(|conn| !conn.certificates.is_empty()) else { return Ok(None) };
    let identity = bundle.judge(&conn.certificates, &conn.verdict).map_err(|reason| reason.to_string())?;
    if identity.common_name.is_empty() {
        return Ok(None);
    }
    let user = user_of(&identity)?;
    Ok(Some(Authenticated { user: Arc::new(user), audiences: Vec::new() }))
}

fn user_of(identity: &ClientIdentity) -> Result<UserInfo, String> {
    let uid = match identity.uids.as_slice() {
        [] => String::new(),
        [uid] if uid.is_empty() => return Err("UID cannot be an empty string".to_owned()),
        [uid] => uid.clone(),
        many => return Err(format!("expected 1 UID, but found multiple: [{}]", many.join(" "))),
    };
    let credential = vec![format!("X509SHA256={}", identity.fingerprint)];
    Ok(UserInfo {
        name: identity.common_name.clone(),
        uid,
        groups: identity.organizations.clone(),
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), credential)]),
    })
}
