//! ServiceAccount: pods run as an account of their namespace and find its token
//! (kubernetes `plugin/pkg/admission/serviceaccount`).

use std::sync::Arc;

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    api::{ApiError, Meta, unique},
    json,
    object::Value,
    registry::reader::ObjectReader,
};

const DEFAULT_ACCOUNT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour, and a bit so that it does not look like a configured one.
const TOKEN_SECONDS: i64 = 3607;

pub struct ServiceAccount {
    pub reader: Arc<dyn ObjectReader>,
}

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn phases(&self) -> Phases {
        Phases::Both
    }

    fn admit<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        let created = request.operation == Operation::Create && request.is("", "pods", "");
        let pod = object.filter(|_| created);
        Box::pin(async move {
            match pod {
                Some(pod) => self.complete(request, pod).await,
                None => Ok(()),
            }
        })
    }

    fn validate<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        let concerned = match request.operation {
            Operation::Create => request.is("", "pods", ""),
            Operation::Update => request.is("", "pods", "ephemeralcontainers"),
            _ => false,
        };
        let pod = object.filter(|_| concerned);
        Box::pin(async move {
            match pod {
                Some(pod) => self.judge(request, pod).await,
                None => Ok(()),
            }
        })
    }
}

fn is_mirror(pod: &Value) -> bool {
    Meta::of(pod).annotation(MIRROR).is_some()
}

impl ServiceAccount {
    async fn complete(&self, request: &Attributes<'_>, pod: &mut Value) -> Result<(), ApiError> {
        if is_mirror(pod) {
            return Ok(());
        }
        if pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
            pod.set(&["spec", "serviceAccountName"], DEFAULT_ACCOUNT);
        }
        let name = pod.str_at(&["spec", "serviceAccountName"]).to_owned();
        // The deprecated alias always says the same.
        pod.set(&["spec", "serviceAccount"], name.as_str());
        let account = self.account(request, &name).await?;
        if mounts_token(pod, &account) {
            mount_token(pod);
        }
        let secrets = account.array_at(&["imagePullSecrets"]);
        if pod.array_at(&["spec", "imagePullSecrets"]).is_empty() && !secrets.is_empty() {
            pod.set(&["spec", "imagePullSecrets"], Value::Array(secrets.to_vec()));
        }
        Ok(())
    }

    /// An account that was made a moment ago may not have reached the cache yet.
    async fn account(&self, request: &Attributes<'_>, name: &str) -> Result<Arc<Value>, ApiError> {
        let get = || self.reader.get("", "serviceaccounts", request.namespace, name);
        let mut found = get();
        if found.is_none() {
            self.reader.caught_up("", "serviceaccounts").await;
            found = get();
        }
        found.ok_or_else(|| {
            request.forbidden(&format!(
                "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
                request.namespace
            ))
        })
    }

    async fn judge(&self, request: &Attributes<'_>, pod: &Value) -> Result<(), ApiError> {
        if is_mirror(pod) && request.operation == Operation::Create {
            return judge_mirror(request, pod);
        }
        let name = pod.str_at(&["spec", "serviceAccountName"]);
        if name.is_empty() {
            let text = format!("no service account specified for pod {}/{}", request.namespace, Meta::of(pod).name());
            return Err(request.forbidden(&text));
        }
        let account = self.account(request, name).await?;
        let enforced = Meta::of(&account)
            .annotation(ENFORCE)
            .is_some_and(|text| matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"));
        if enforced { judge_secrets(request, &account, pod) } else { Ok(()) }
    }
}

/// The pod decides, else the account, else yes.
fn mounts_token(pod: &Value, account: &Value) -> bool {
    let said = |object: &Value, path: &[&str]| object.at(path).and_then(Value::as_bool);
    said(pod, &["spec", "automountServiceAccountToken"])
        .or_else(|| said(account, &["automountServiceAccountToken"]))
        .unwrap_or(true)
}

fn mount_token(pod: &mut Value) {
    let volumes = pod.array_at(&["spec", "volumes"]);
    let existing = volumes.iter().map(|volume| volume.str_at(&["name"])).find(|name| name.starts_with(VOLUME_PREFIX));
    let name =
        existing.map_or_else(|| format!("{VOLUME_PREFIX}{}", unique::suffix(unique::SUFFIX_LENGTH)), str::to_owned);
    let there = existing.is_some();
    let mut mounted = false;
    for containers in ["initContainers", "containers"] {
        for container in pod.at_mut(&["spec", containers]).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = container.array_at(&["volumeMounts"]);
            if mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == MOUNT_PATH) {
                continue;
            }
            let mut mounts = mounts.to_vec();
            mounts.push(json!({ "name": (name.as_str()), "readOnly": true, "mountPath": MOUNT_PATH }));
            container.set(&["volumeMounts"], Value::Array(mounts));
            mounted = true;
        }
    }
    if mounted && !there {
        let mut volumes = pod.array_at(&["spec", "volumes"]).to_vec();
        volumes.push(token_volume(&name));
        pod.set(&["spec", "volumes"], Value::Array(volumes));
    }
}

/// The token, the cluster's CA and the namespace, as one volume.
fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [{
                    "path": "namespace",
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }
                }] } }
            ]
        }
    })
}

/// Whether a volume names a secret anywhere (kubernetes `pkg/api/pod/util.go` VisitPodSecretNames).
fn names_secret(volume: &Value) -> bool {
    const PLACES: [&[&str]; 10] = [
        &["secret", "secretName"],
        &["azureFile", "secretName"],
        &["cephfs", "secretRef", "name"],
        &["cinder", "secretRef", "name"],
        &["flexVolume", "secretRef", "name"],
        &["iscsi", "secretRef", "name"],
        &["rbd", "secretRef", "name"],
        &["scaleIO", "secretRef", "name"],
        &["storageos", "secretRef", "name"],
        &["csi", "nodePublishSecretRef", "name"],
    ];
    let mut projected = volume.array_at(&["projected", "sources"]).iter();
    PLACES.iter().any(|place| !volume.str_at(place).is_empty())
        || projected.any(|source| !source.str_at(&["secret", "name"]).is_empty())
}

/// A mirror pod was made by its kubelet and may not point at what only the API hands out.
fn judge_mirror(request: &Attributes<'_>, pod: &Value) -> Result<(), ApiError> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Err(request.forbidden("a mirror pod may not reference service accounts"));
    }
    let volumes = pod.array_at(&["spec", "volumes"]);
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let in_env = containers.iter().flat_map(|kind| pod.array_at(&["spec", kind])).any(|container| {
        container.array_at(&["env"]).iter().any(|env| env.at(&["valueFrom", "secretKeyRef"]).is_some())
            || container.array_at(&["envFrom"]).iter().any(|env| env.at(&["secretRef"]).is_some())
    });
    let pulls = !pod.array_at(&["spec", "imagePullSecrets"]).is_empty();
    if in_env || pulls || volumes.iter().any(names_secret) {
        return Err(request.forbidden("a mirror pod may not reference secrets"));
    }
    let tokens = |volume: &Value| {
        volume.array_at(&["projected", "sources"]).iter().any(|it| it.at(&["serviceAccountToken"]).is_some())
    };
    if volumes.iter().any(tokens) {
        return Err(request.forbidden("a mirror pod may not use ServiceAccountToken volume projections"));
    }
    Ok(())
}

/// With the annotation, a pod may only use the secrets its account names.
fn judge_secrets(request: &Attributes<'_>, account: &Value, pod: &Value) -> Result<(), ApiError> {
    let account_name = Meta::of(account).name();
    let known = |name: &str| account.array_at(&["secrets"]).iter().any(|secret| secret.str_at(&["name"]) == name);
    let refuse = |what: String, name: &str| {
        request.forbidden(&format!(
            "{what} referencing secret.secretName=\"{name}\" is not allowed because service account {account_name} does not reference that secret"
        ))
    };
    for volume in pod.array_at(&["spec", "volumes"]) {
        let name = volume.str_at(&["secret", "secretName"]);
        if volume.at(&["secret"]).is_some() && !known(name) {
            return Err(request.forbidden(&format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {account_name} does not reference that secret"
            )));
        }
    }
    for (kind, word) in [
        ("initContainers", "init container"),
        ("containers", "container"),
        ("ephemeralContainers", "ephemeral container"),
    ] {
        for container in pod.array_at(&["spec", kind]) {
            let label = format!("{word} {}", container.str_at(&["name"]));
            for env in container.array_at(&["env"]) {
                let name = env.str_at(&["valueFrom", "secretKeyRef", "name"]);
                if env.at(&["valueFrom", "secretKeyRef"]).is_some() && !known(name) {
                    return Err(refuse(format!("{label} with envVar {}", env.str_at(&["name"])), name));
                }
            }
            for env in container.array_at(&["envFrom"]) {
                let name = env.str_at(&["secretRef", "name"]);
                if env.at(&["secretRef"]).is_some() && !known(name) {
                    return Err(refuse(format!("{label} with envFrom"), name));
                }
            }
        }
    }
    let pulls =
        |name: &str| account.array_at(&["imagePullSecrets"]).iter().any(|secret| secret.str_at(&["name"]) == name);
    for (at, secret) in pod.array_at(&["spec", "imagePullSecrets"]).iter().enumerate() {
        let name = secret.str_at(&["name"]);
        if !pulls(name) {
            return Err(request.forbidden(&format!(
                "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {account_name} does not reference that imagePullSecret"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_a_volume_can_name_one() {
        let volumes = [
            json!({ "secret": { "secretName": "s" } }),
            json!({ "azureFile": { "secretName": "s", "shareName": "x" } }),
            json!({ "cephfs": { "secretRef": { "name": "s" } } }),
            json!({ "cinder": { "secretRef": { "name": "s" } } }),
            json!({ "flexVolume": { "secretRef": { "name": "s" } } }),
            json!({ "iscsi": { "secretRef": { "name": "s" } } }),
            json!({ "rbd": { "secretRef": { "name": "s" } } }),
            json!({ "scaleIO": { "secretRef": { "name": "s" } } }),
            json!({ "storageos": { "secretRef": { "name": "s" } } }),
            json!({ "csi": { "nodePublishSecretRef": { "name": "s" } } }),
            json!({ "projected": { "sources": [{ "configMap": { "name": "c" } }, { "secret": { "name": "s" } }] } }),
        ];
        for volume in volumes {
            assert!(names_secret(&volume), "{volume:?}");
        }
        for volume in [json!({ "emptyDir": {} }), json!({ "csi": { "driver": "d" } })] {
            assert!(!names_secret(&volume), "{volume:?}");
        }
    }
}
