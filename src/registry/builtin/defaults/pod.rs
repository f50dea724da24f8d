//! Pods, and what is in the templates of everything that makes pods.

use super::{Hooks, image::image_tag, set};
use crate::{
    api::quantity::Quantity,
    json,
    object::{Key, Map, Value},
    schema::defaults::Context,
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.core.v1.Container", |it, _| container(it)),
    ("io.k8s.api.core.v1.EphemeralContainer", |it, _| container(it)),
    ("io.k8s.api.core.v1.Pod", pod),
    ("io.k8s.api.core.v1.PodSpec", |it, _| pod_spec(it)),
    ("io.k8s.api.core.v1.PodStatus", |it, _| pod_status(it)),
    ("io.k8s.api.core.v1.Probe", |it, _| probe(it)),
    ("io.k8s.api.core.v1.HTTPGetAction", |it, _| http_get(it)),
    ("io.k8s.api.core.v1.ObjectFieldSelector", |it, _| set::empty(it, "apiVersion", "v1")),
    ("io.k8s.api.core.v1.PodLogOptions", |it, context| {
        if (context.gates)("PodLogsQuerySplitStreams") {
            set::nil(it, "stream", "All");
        }
    }),
    ("io.k8s.api.core.v1.Volume", |it, _| volume(it)),
    ("io.k8s.api.core.v1.SecretVolumeSource", |it, _| default_mode(it)),
    ("io.k8s.api.core.v1.ConfigMapVolumeSource", |it, _| default_mode(it)),
    ("io.k8s.api.core.v1.DownwardAPIVolumeSource", |it, _| default_mode(it)),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", |it, _| default_mode(it)),
    ("io.k8s.api.core.v1.HostPathVolumeSource", |it, _| set::nil(it, "type", "")),
    ("io.k8s.api.core.v1.ServiceAccountTokenProjection", |it, _| set::nil(it, "expirationSeconds", 3600)),
    ("v1.ResourceList", |it, _| resource_list(it)),
];

const DEFAULT_MODE: i64 = 0o644;

fn default_mode(it: &mut Map) {
    set::nil(it, "defaultMode", DEFAULT_MODE);
}

/// Amounts are rounded up to thousandths, which is all that upstream ever stored.
fn resource_list(it: &mut Map) {
    const MILLI: i32 = -3;
    for value in it.values_mut() {
        let Value::Str(text) = value else { continue };
        // Canonical text says whether there is anything finer: nano, micro, or a negative exponent.
        if !text.ends_with(['n', 'u']) && !text.contains("e-") {
            continue;
        }
        if let Ok(mut quantity) = Quantity::parse(text) {
            quantity.round_up(MILLI);
            *text = quantity.to_string();
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image_tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

fn container(it: &mut Map) {
    let policy = pull_policy(set::text(it, "image"));
    set::empty(it, "imagePullPolicy", policy);
    set::empty(it, "terminationMessagePath", "/dev/termination-log");
    set::empty(it, "terminationMessagePolicy", "File");
}

fn volume(it: &mut Map) {
    let has_source = it.iter().any(|(name, source)| name.as_str() != "name" && !source.is_null());
    if !has_source {
        it.insert(Key::from_static("emptyDir"), Value::object());
    }
    if let Some(image) = set::some_child(it, "image") {
        let policy = pull_policy(set::text(image, "reference"));
        set::empty(image, "pullPolicy", policy);
    }
}

fn probe(it: &mut Map) {
    set::zero(it, "timeoutSeconds", 1);
    set::zero(it, "periodSeconds", 10);
    set::zero(it, "successThreshold", 1);
    set::zero(it, "failureThreshold", 3);
}

fn http_get(it: &mut Map) {
    set::empty(it, "path", "/");
    set::empty(it, "scheme", "HTTP");
}

fn pod_spec(it: &mut Map) {
    // The older name is an alias; the newer one wins.
    let account = match set::text(it, "serviceAccountName") {
        "" => set::text(it, "serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = account.to_owned();
        it.insert(Key::from_static("serviceAccount"), account.as_str());
        it.insert(Key::from_static("serviceAccountName"), account);
    }
    set::empty(it, "dnsPolicy", "ClusterFirst");
    set::empty(it, "restartPolicy", "Always");
    set::nil(it, "securityContext", Value::object());
    set::nil(it, "terminationGracePeriodSeconds", 30);
    set::empty(it, "schedulerName", "default-scheduler");
}

fn pod_status(it: &mut Map) {
    let first = |it: &Map| Some(it.get("podIPs")?.as_array()?.first()?.str_at(&["ip"]).to_owned());
    let ip = set::text(it, "podIP").to_owned();
    match (ip.is_empty(), first(it)) {
        (true, Some(first)) if first.is_empty() => {}
        (true, Some(first)) => {
            it.insert(Key::from_static("podIP"), first);
        }
        (false, first) if first.as_ref() != Some(&ip) => {
            it.insert(Key::from_static("podIPs"), json!([{"ip": ip}]));
        }
        _ => {}
    }
}

/// What holds for pods and not for templates.
fn pod(it: &mut Map, context: &Context) {
    let spec = set::child(it, "spec");
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|it| it < 0) {
        spec.insert(Key::from_static("terminationGracePeriodSeconds"), 1);
    }
    for list in ["containers", "initContainers"] {
        for container in set::items(spec, list) {
            requests_from_limits(container);
        }
    }
    set::nil(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for list in ["containers", "initContainers"] {
            set::items(spec, list).for_each(host_ports);
        }
    }
    if (context.gates)("H2CContainerProbe") {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            set::items(spec, list).for_each(probe_protocols);
        }
    }
}

/// Whoever limits without requesting requests what is the limit.
fn requests_from_limits(container: &mut Map) {
    let Some(resources) = set::some_child(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).filter(|it| !it.is_empty()) else { return };
    let limits = limits.clone();
    let requests = resources.entry_or(Key::from_static("requests"), Value::object).make_object();
    for (name, limit) in limits {
        requests.entry_or(name, || limit);
    }
}

fn host_ports(container: &mut Map) {
    for port in set::items(container, "ports") {
        if let Some(number) = port.get("containerPort").and_then(Value::as_i64).filter(|it| *it != 0) {
            set::zero(port, "hostPort", number);
        }
    }
}

fn probe_protocols(container: &mut Map) {
    let mut protocol = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        let action = container.get_mut(first)?.at_mut(rest)?.as_object_mut()?;
        set::nil(action, "protocol", "HTTP1");
        Some(())
    };
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        protocol(&[probe, "httpGet"]);
    }
    for hook in ["postStart", "preStop"] {
        protocol(&["lifecycle", hook, "httpGet"]);
    }
}
