use jiff::Timestamp;

use super::printer;
use crate::{
    object::{Value, parse, to_string},
    registry::{builtin::table::tests::columns_of_kinds, printer::PrintedRow},
};

fn row(group: &str, kind: &str, object: &str) -> PrintedRow {
    printer(group, kind).row(&parse(object.as_bytes()).expect("test JSON"))
}

/// The cells an hour after 2024-01-01, as JSON.
fn cells(group: &str, kind: &str, object: &str) -> String {
    let now: Timestamp = "2024-01-01T01:00:00Z".parse().expect("a time");
    let cells = row(group, kind, object).cells;
    to_string(&Value::Array(cells.iter().map(|cell| cell.value(now)).collect()))
}

const MADE: &str = r#""metadata":{"name":"o","creationTimestamp":"2024-01-01T00:00:00Z"}"#;

#[test]
fn every_kind_has_as_many_cells_as_columns_even_when_it_is_empty() {
    for (group, kind, columns) in columns_of_kinds() {
        let cells = row(&group, &kind, "{}").cells.len();
        // Upstream's printer of addresses gives one more than its table has columns.
        let more = usize::from(kind == "IPAddress");
        assert_eq!(cells, columns + more, "{group} {kind}");
    }
}

#[test]
fn a_pod_that_crashes_says_so_and_when_it_did_last() {
    let pod = format!(
        r#"{{{MADE},"spec":{{"nodeName":"n","containers":[{{}},{{}}]}},"status":{{"phase":"Running","podIPs":[{{"ip":"10.0.0.1"}}],
        "containerStatuses":[
          {{"restartCount":4,"state":{{"waiting":{{"reason":"CrashLoopBackOff"}}}},"lastState":{{"terminated":{{"finishedAt":"2024-01-01T00:55:00Z"}}}}}},
          {{"restartCount":1,"ready":true,"state":{{"running":{{}}}}}}]}}}}"#
    );
    assert_eq!(
        cells("", "Pod", &pod),
        r#"["o","1/2","CrashLoopBackOff","5 (5m ago)","60m","10.0.0.1","n","\u003cnone\u003e","\u003cnone\u003e"]"#
    );
}

#[test]
fn init_containers_that_stay_count_as_containers() {
    let pod = r#"{"spec":{"containers":[{}],"initContainers":[{"name":"a"},{"name":"s","restartPolicy":"Always"}]},
        "status":{"phase":"Pending","initContainerStatuses":[
          {"name":"a","state":{"terminated":{"exitCode":0}}},
          {"name":"s","started":false,"restartCount":2,"state":{"running":{}}}]}}"#;
    let shown = cells("", "Pod", pod);
    assert!(shown.starts_with(r#"["","0/2","Init:1/2","2","#), "{shown}");
}

#[test]
fn a_finished_pod_has_a_condition_on_its_row() {
    assert_eq!(row("", "Pod", r#"{"status":{"phase":"Failed"}}"#).completed.expect("one").message, "The pod failed.");
    assert_eq!(row("", "Pod", r#"{"status":{"phase":"Running"}}"#).completed, None);
}

#[test]
fn long_lists_end_in_a_count() {
    let slice = r#"{"ports":[{"port":1},{"name":"x"},{},{"port":4}],"endpoints":[{"addresses":["a","b"]},{"addresses":["c"]}]}"#;
    assert_eq!(
        cells("discovery.k8s.io", "EndpointSlice", slice),
        r#"["","","1,x,* + 1 more...","a,b,c","\u003cunknown\u003e"]"#
    );
    let ingress = r#"{"spec":{"rules":[{"host":"a"},{},{"host":"b"},{"host":"c"},{"host":"d"}]}}"#;
    assert!(cells("networking.k8s.io", "Ingress", ingress).contains("a,b,c + 2 more..."));
}

#[test]
fn one_default_class_is_marked_in_lists_the_newest() {
    let printer = printer("storage.k8s.io", "StorageClass");
    let class = |name: &str, made: &str, default: bool| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"{made}","annotations":{{"storageclass.kubernetes.io/is-default-class":"{default}"}}}}}}"#
        );
        let object = parse(text.as_bytes()).expect("test JSON");
        let row = printer.row(&object);
        (object, row)
    };
    let mut rows = vec![
        class("a", "2024-01-01T00:00:00Z", true),
        class("c", "2024-01-02T00:00:00Z", true),
        class("b", "2024-01-02T00:00:00Z", true),
        class("d", "2024-01-03T00:00:00Z", false),
    ];
    printer.arrange.expect("lists of classes are arranged")(&mut rows);
    let names: Vec<Value> = rows.iter().map(|(_, row)| row.cells[0].value(Timestamp::UNIX_EPOCH)).collect();
    assert_eq!(names, ["a".into(), "c".into(), "b (default)".into(), Value::from("d")]);
}

#[test]
fn metrics_show_what_is_over_what_should_be() {
    let autoscaler = r#"{"spec":{"metrics":[
        {"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}},
        {"type":"Pods","pods":{"target":{"averageValue":"10"}}},
        {"type":"Nope"}]},
        "status":{"currentMetrics":[{"type":"Resource","resource":{"current":{"averageUtilization":50}}}]}}"#;
    let shown = cells("autoscaling", "HorizontalPodAutoscaler", autoscaler);
    assert!(shown.contains(r#""cpu: 50%/80%, \u003cunknown\u003e/10 + 1 more...""#), "{shown}");
}

#[test]
fn a_selector_is_shown_as_go_prints_it() {
    let binding = r#"{"spec":{"policyName":"p","paramRef":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["x","y"]}]}}}}"#;
    let shown = cells("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", binding);
    let go = "LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}";
    assert!(shown.contains(go), "{shown}");
}

#[test]
fn subjects_are_listed_by_their_kind() {
    let binding = r#"{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"},
        {"kind":"Group","name":"g"},{"kind":"ServiceAccount","name":"s","namespace":"n"},{"kind":"User","name":"w"}]}"#;
    assert_eq!(
        cells("rbac.authorization.k8s.io", "RoleBinding", binding),
        r#"["b","ClusterRole/r","\u003cunknown\u003e","u, w","g","n/s"]"#
    );
}
