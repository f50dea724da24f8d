//! Warnings about pods and templates (kubernetes `pkg/api/pod/warnings.go`).

use std::collections::{HashMap, HashSet};

use super::{
    annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, app_armor_of},
    quantities::amount,
    view::{self, annotation, given, items, map, text, texts, visit_containers},
};
use crate::{
    api::{
        Meta, Path,
        field::quote,
        names::{is_dns1123_label, is_valid_label_value},
        quantity::Quantity,
    },
    object::{Map, Value},
    registry::validation::address::ip_warnings,
};

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// Sources of volumes that nobody serves any more: the member, its name in the warning, the text.
const DEPRECATED_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// What is old about the label of a node.
pub fn deprecated_node_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, message)| *message)
}

/// Of a new pod.
pub fn pod_warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let messages = is_dns1123_label(Meta::of(pod).name());
    if !messages.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            messages.join(" ")
        ));
    }
    warnings.extend(Warnings::of(pod, &Path::ROOT, false));
    warnings
}

/// Of a pod template at `path` (`spec.template`).
pub fn template_warnings(template: &Value, path: &Path<'_>) -> Vec<String> {
    Warnings::of(template, path, true)
}

/// About the name of what makes pods (Deployments, ReplicaSets, ReplicationControllers, Jobs, CronJobs).
pub fn workload_name_warning(object: &Value) -> Option<String> {
    let messages = is_dns1123_label(Meta::of(object).name());
    (!messages.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{}]",
            messages.join(" ")
        )
    })
}

/// About one term of node affinity; `values`: whether its values should be label values.
pub fn node_selector_term_warnings(term: &Value, values: bool, path: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = path.child("matchExpressions");
    for (index, expression) in items(term, "matchExpressions").iter().enumerate() {
        let at = path.index(index);
        let key = text(expression, "key");
        if let Some(message) = deprecated_node_label(key) {
            warnings.push(format!("{}: {key} is {message}", at.child("key")));
        }
        let at = at.child("values");
        for (index, value) in texts(expression, "values").enumerate().filter(|_| values) {
            for message in is_valid_label_value(value) {
                warnings.push(format!("{}: {value} is invalid, {message}", at.index(index)));
            }
        }
    }
    warnings
}

struct Warnings<'v> {
    spec: &'v Value,
    annotations: Option<&'v Map>,
    template: bool,
    texts: Vec<String>,
}

impl<'v> Warnings<'v> {
    fn of(owner: &'v Value, path: &Path<'_>, template: bool) -> Vec<String> {
        let Some(spec) = owner.get("spec") else { return Vec::new() };
        let mut warnings = Self { spec, annotations: view::annotations(owner), template, texts: Vec::new() };
        let metadata = path.child("metadata");
        let (spec_at, annotations_at) = (path.child("spec"), metadata.child("annotations"));
        warnings.node_labels(&spec_at);
        warnings.spread(&spec_at.child("topologySpreadConstraints"));
        for (key, message) in DEPRECATED_ANNOTATIONS {
            if annotation(warnings.annotations, key).is_some() {
                warnings.say(&annotations_at.key(key), message);
            }
        }
        warnings.volumes(&spec_at.child("volumes"));
        warnings.overlapping_files();
        warnings.repetitions(&spec_at);
        warnings.fractions(map(spec, "overhead"), &spec_at.child("overhead"));
        if spec.at(&["securityContext", "seccompProfile"]).is_none() {
            warnings.seccomp(SECCOMP_POD, &annotations_at);
        }
        visit_containers(spec, &spec_at, &mut |container, path| warnings.container(container, path, &annotations_at));
        warnings.ports(&spec_at);
        if spec.i64_at(&["terminationGracePeriodSeconds"]).is_some_and(|it| it < 0) {
            let why = "must be >= 0; negative values are invalid and will be treated as 1";
            warnings.say(&spec_at.child("terminationGracePeriodSeconds"), why);
        }
        warnings.pod_affinity(&spec_at.child("affinity"));
        warnings.addresses(&spec_at);
        warnings.texts
    }

    fn say(&mut self, path: &Path<'_>, what: &str) {
        self.texts.push(format!("{path}: {what}"));
    }

    fn node_labels(&mut self, path: &Path<'_>) {
        let at = path.child("nodeSelector");
        for key in map(self.spec, "nodeSelector").into_iter().flat_map(Map::keys) {
            if let Some(message) = deprecated_node_label(key) {
                self.say(&at.key(key), message);
            }
        }
        let at = path.child("affinity");
        let at = at.child("nodeAffinity");
        let Some(affinity) = self.spec.at(&["affinity", "nodeAffinity"]) else { return };
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        let required = at.child(REQUIRED);
        let required = required.child("nodeSelectorTerms");
        for (index, term) in affinity.array_at(&[REQUIRED, "nodeSelectorTerms"]).iter().enumerate() {
            self.texts.extend(node_selector_term_warnings(term, false, &required.index(index)));
        }
        let preferred = at.child(PREFERRED);
        for (index, term) in items(affinity, PREFERRED).iter().enumerate() {
            if let Some(preference) = term.get("preference") {
                let at = preferred.index(index);
                self.texts.extend(node_selector_term_warnings(preference, true, &at.child("preference")));
            }
        }
    }

    fn spread(&mut self, path: &Path<'_>) {
        for (index, constraint) in items(self.spec, "topologySpreadConstraints").iter().enumerate() {
            let at = path.index(index);
            let key = text(constraint, "topologyKey");
            if let Some(message) = deprecated_node_label(key) {
                self.say(&at.child("topologyKey"), &format!("{key} is {message}"));
            }
            if given(constraint, "labelSelector").is_none() {
                self.say(&at.child("labelSelector"), NO_SELECTOR);
            }
        }
    }

    fn volumes(&mut self, path: &Path<'_>) {
        for (index, volume) in items(self.spec, "volumes").iter().enumerate() {
            let at = path.index(index);
            for (member, name, message) in DEPRECATED_VOLUMES {
                if member == "cephfs" {
                    self.claim(volume, &at);
                }
                if given(volume, member).is_some() {
                    self.say(&at.child(name), message);
                }
            }
        }
    }

    fn claim(&mut self, volume: &Value, path: &Path<'_>) {
        let Some(spec) = volume.at(&["ephemeral", "volumeClaimTemplate", "spec"]) else { return };
        let at = path.child("ephemeral");
        let at = at.child("volumeClaimTemplate");
        self.texts.extend(claim_warnings(spec, &at.child("spec")));
    }

    fn repetitions(&mut self, path: &Path<'_>) {
        for (list, member, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
            let at = path.child(list);
            let mut seen = HashSet::new();
            for (index, item) in items(self.spec, list).iter().enumerate() {
                let value = text(item, member);
                if !seen.insert(value) {
                    self.say(&at.index(index).child(member), &format!("duplicate {what} {}", quote(value)));
                }
            }
        }
        let at = path.child("imagePullSecrets");
        for (index, secret) in items(self.spec, "imagePullSecrets").iter().enumerate() {
            if text(secret, "name").is_empty() {
                self.say(&at.index(index).child("name"), "invalid empty name \"\"");
            }
        }
    }

    fn fractions(&mut self, amounts: Option<&Map>, path: &Path<'_>) {
        for name in ["memory", "ephemeral-storage"] {
            self.fraction(amounts, name, path);
        }
    }

    fn fraction(&mut self, amounts: Option<&Map>, name: &str, path: &Path<'_>) {
        if let Some(message) = amount(amounts, name).as_ref().and_then(fraction_message) {
            self.say(&path.key(name), &message);
        }
    }

    fn seccomp(&mut self, key: &str, path: &Path<'_>) {
        if annotation(self.annotations, key).is_some() {
            self.say(&path.key(key), "non-functional in v1.27+; use the \"seccompProfile\" field instead");
        }
    }

    fn container(&mut self, container: &Value, path: &Path<'_>, annotations: &Path<'_>) {
        let name = text(container, "name");
        if container.at(&["securityContext", "seccompProfile"]).is_none() {
            self.seccomp(&format!("{SECCOMP_CONTAINER}{name}"), annotations);
        }
        if self.template && container.at(&["securityContext", "appArmorProfile"]).is_none() {
            let key = format!("{APP_ARMOR}{name}");
            if let Some(said) = annotation(self.annotations, &key) {
                let pod = self.spec.at(&["securityContext", "appArmorProfile"]);
                if pod.is_none() || pod != app_armor_of(said).as_ref() {
                    self.say(
                        &annotations.key(&key),
                        "deprecated since v1.30; use the \"appArmorProfile\" field instead",
                    );
                }
            }
        }
        let at = path.child("resources");
        for resource in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                self.fraction(container.object_at(&["resources", list]), resource, &at.child(list));
            }
        }
        let at = path.child("env");
        let mut seen = HashSet::new();
        for (index, variable) in items(container, "env").iter().enumerate() {
            let (name, value) = (text(variable, "name"), text(variable, "value"));
            if seen.insert(name) {
                continue;
            }
            let reference = format!("$({name})");
            let extends = value != reference && value.contains(&reference) && given(variable, "valueFrom").is_none();
            if !extends {
                let what =
                    format!("hides previous definition of {}, which may be dropped when using apply", quote(name));
                self.say(&at.index(index), &what);
            }
        }
    }

    fn ports(&mut self, path: &Path<'_>) {
        let mut by_number: HashMap<(i64, &str), Vec<(String, &Value)>> = HashMap::new();
        let mut texts = Vec::new();
        visit_containers(self.spec, path, &mut |container, path| {
            let path = path.child("ports");
            for (index, port) in items(container, "ports").iter().enumerate() {
                let at = path.index(index).to_string();
                if !text(port, "hostIP").is_empty() && number(port, "hostPort") == 0 {
                    texts.push(format!("{at}: hostIP set without hostPort: {}", port_struct(port)));
                }
                let others = by_number.entry((number(port, "containerPort"), text(port, "protocol"))).or_default();
                for (place, other) in others.iter() {
                    if let Some(relation) = relation(port, other) {
                        texts.push(format!("{at}: {relation} port definition with {place}"));
                    }
                }
                others.push((at, port));
            }
        });
        let mut names: HashMap<&str, String> = HashMap::new();
        visit_containers(self.spec, path, &mut |container, path| {
            let path = path.child("ports");
            for (index, port) in items(container, "ports").iter().enumerate() {
                let (name, at) = (text(port, "name"), path.index(index).to_string());
                if name.is_empty() {
                    continue;
                }
                match names.get(name) {
                    Some(other) => texts.push(format!(
                        "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                        quote(name)
                    )),
                    None => {
                        names.insert(name, at);
                    }
                }
            }
        });
        self.texts.extend(texts);
    }

    fn pod_affinity(&mut self, path: &Path<'_>) {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let path = path.child(kind);
            for (list, weighted) in [
                ("requiredDuringSchedulingIgnoredDuringExecution", false),
                ("preferredDuringSchedulingIgnoredDuringExecution", true),
            ] {
                let at = path.child(list);
                for (index, term) in self.spec.array_at(&["affinity", kind, list]).iter().enumerate() {
                    let at = at.index(index);
                    let inner = if weighted { term.get("podAffinityTerm").unwrap_or(term) } else { term };
                    if given(inner, "labelSelector").is_some() {
                        continue;
                    }
                    if weighted {
                        self.say(&at.child("podAffinityTerm").child("labelSelector"), NO_SELECTOR);
                    } else {
                        self.say(&at.child("labelSelector"), NO_SELECTOR);
                    }
                }
            }
        }
    }

    fn addresses(&mut self, path: &Path<'_>) {
        let at = path.child("dnsConfig");
        let at = at.child("nameservers");
        for (index, server) in self.spec.array_at(&["dnsConfig", "nameservers"]).iter().enumerate() {
            self.texts.extend(ip_warnings(server.as_str().unwrap_or(""), &at.index(index)));
        }
        let at = path.child("hostAliases");
        for (index, alias) in items(self.spec, "hostAliases").iter().enumerate() {
            self.texts.extend(ip_warnings(text(alias, "ip"), &at.index(index).child("ip")));
        }
    }

    /// Files of one volume of which one lies where the other is.
    fn overlapping_files(&mut self) {
        for volume in items(self.spec, "volumes") {
            let name = quote(text(volume, "name"));
            for (member, kind, key) in [
                ("configMap", "ConfigMap", "name"),
                ("secret", "Secret", "secretName"),
                ("downwardAPI", "DownwardAPI", ""),
            ] {
                let Some(source) = given(volume, member) else { continue };
                let label =
                    if key.is_empty() { kind.to_owned() } else { format!("{kind} {}", quote(text(source, key))) };
                let mut files = Files::default();
                for item in items(source, "items") {
                    for collision in files.add(text(item, "path"), "") {
                        self.texts.push(format!("volume {name} ({label}): overlapping paths: {collision}"));
                    }
                }
            }
            let mut files = Files::default();
            for source in volume.array_at(&["projected", "sources"]) {
                if source.as_object().is_none_or(Map::is_empty) {
                    self.texts.push(format!("volume {name} (Projected) has no sources provided"));
                }
                for (path, from) in projected_files(source) {
                    for collision in files.add(path, &from) {
                        self.texts.push(format!("volume {name} (Projected): overlapping paths: {collision}"));
                    }
                }
            }
        }
    }
}

/// About the amounts of a claim's spec.
pub fn claim_warnings(spec: &Value, path: &Path<'_>) -> Vec<String> {
    let path = path.child("resources");
    let lists = ["requests", "limits"].into_iter();
    lists
        .filter_map(|list| {
            let storage = amount(spec.object_at(&["resources", list]), "storage")?;
            let message = fraction_message(&storage)?;
            Some(format!("{}: {message}", path.child(list).key("storage")))
        })
        .collect()
}

fn fraction_message(value: &Quantity) -> Option<String> {
    (value.milli_value() % 1000 != 0)
        .then(|| format!("fractional byte value {} is invalid, must be an integer", quote(&value.to_string())))
}

fn number(port: &Value, key: &str) -> i64 {
    port.i64_at(&[key]).unwrap_or(0)
}

/// As Go's `%+v` prints the struct.
fn port_struct(port: &Value) -> String {
    let [name, protocol, ip] = ["name", "protocol", "hostIP"].map(|key| text(port, key));
    let (host, container) = (number(port, "hostPort"), number(port, "containerPort"));
    format!("{{Name:{name} HostPort:{host} ContainerPort:{container} Protocol:{protocol} HostIP:{ip}}}")
}

/// How two ports of the same number and protocol get into each other's way.
fn relation(port: &Value, other: &Value) -> Option<&'static str> {
    let (ip, other_ip) = (text(port, "hostIP"), text(other, "hostIP"));
    let (host, other_host) = (number(port, "hostPort"), number(other, "hostPort"));
    if ip == other_ip && host == other_host {
        Some("duplicate")
    } else if host == 0 || other_host == 0 {
        Some("overlapping")
    } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// The files a source of a projected volume makes, and how it is called.
fn projected_files(source: &Value) -> Vec<(&str, String)> {
    let listed = |source: &'_ Value| -> usize { items(source, "items").len() };
    for (member, kind) in [("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")] {
        let Some(it) = given(source, member).filter(|it| listed(it) > 0) else { continue };
        let label =
            if member == "downwardAPI" { kind.to_owned() } else { format!("{kind} {}", quote(text(it, "name"))) };
        return items(it, "items").iter().map(|item| (text(item, "path"), label.clone())).collect();
    }
    if let Some(token) = given(source, "serviceAccountToken") {
        return vec![(text(token, "path"), "ServiceAccountToken".to_owned())];
    }
    if let Some(bundle) = given(source, "clusterTrustBundle") {
        let name = if given(bundle, "name").is_some() { text(bundle, "name") } else { text(bundle, "signerName") };
        return vec![(text(bundle, "path"), format!("ClusterTrustBundle {}", quote(name)))];
    }
    let Some(certificate) = given(source, "podCertificate") else { return Vec::new() };
    let parts = [("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle")];
    let files = parts.map(|(key, part)| (text(certificate, key), format!("PodCertificate {part}")));
    files.into_iter().filter(|(path, _)| !path.is_empty()).collect()
}

/// Files so far, by path: those that lie in the way of a new one are found by walking its parents and its children.
#[derive(Default)]
struct Files(std::collections::BTreeMap<String, Vec<(usize, String)>>, usize);

impl Files {
    /// Adds a file; answers its collisions in the order in which the others came.
    fn add(&mut self, path: &str, from: &str) -> Vec<String> {
        let path = path.trim_end_matches('/');
        let mut found: Vec<(usize, String)> = Vec::new();
        if !path.is_empty() {
            let mut parents: Vec<&str> = path.match_indices('/').filter_map(|(at, _)| path.get(..at)).collect();
            parents.push(path);
            for parent in parents {
                found.extend(self.0.get(parent).into_iter().flatten().cloned());
            }
            let below = format!("{path}/");
            let children = self.0.range(below.clone()..).take_while(|(other, _)| other.starts_with(&below));
            found.extend(children.flat_map(|(_, files)| files.iter().cloned()));
            found.sort();
            let shown = shown_file(path, from);
            self.0.entry(path.to_owned()).or_default().push((self.1, shown.clone()));
            self.1 += 1;
            return found.into_iter().map(|(_, other)| format!("{shown} with {other}")).collect();
        }
        Vec::new()
    }
}

fn shown_file(path: &str, from: &str) -> String {
    if from.is_empty() { quote(path) } else { format!("{} ({from})", quote(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn files_collide_with_equals_parents_and_children() {
        let mut files = Files::default();
        assert!(files.add("a/b", "").is_empty());
        assert!(files.add("a/bc", "").is_empty());
        assert_eq!(files.add("a/b", ""), [r#""a/b" with "a/b""#]);
        assert_eq!(files.add("a", ""), [r#""a" with "a/b""#, r#""a" with "a/bc""#, r#""a" with "a/b""#]);
        assert_eq!(
            files.add("a/b/c/", "x"),
            [r#""a/b/c" (x) with "a/b""#, r#""a/b/c" (x) with "a/b""#, r#""a/b/c" (x) with "a""#]
        );
    }

    #[test]
    fn ports_are_compared_by_number_and_protocol() {
        let spec = json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 80, "protocol": "TCP"},
            {"containerPort": 80, "protocol": "TCP", "hostPort": 1},
            {"containerPort": 80, "protocol": "UDP", "hostIP": "1.1.1.1"}
        ]}]});
        let warnings = template_warnings(&json!({"spec": spec}), &Path::new("t"));
        assert_eq!(
            warnings,
            [
                "t.spec.containers[0].ports[1]: overlapping port definition with t.spec.containers[0].ports[0]",
                "t.spec.containers[0].ports[2]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:UDP HostIP:1.1.1.1}",
            ]
        );
    }
}
