//! The flow schemas and priority levels that every cluster has (kubernetes `pkg/registry/flowcontrol/{rest,ensurer}`),
//! and what the status of flow schemas says of the level they name (apiserver `pkg/util/flowcontrol`).

use std::{collections::HashSet, sync::OnceLock, time::Duration};

use futures_util::future::join_all;

use super::{Cluster, every, until_done};
use crate::{
    api::{ApiError, Meta, clock::now_seconds, duration::format_time},
    json,
    object::{Value, parse},
};

/// Keeps the objects.
pub const PRODUCER_HOOK: &str = "priority-and-fairness-config-producer";
/// Reads them.
pub const CONSUMER_HOOK: &str = "priority-and-fairness-config-consumer";

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const PERIOD: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(5 * 60);

const LEVELS: &str = "prioritylevelconfigurations";
const SCHEMAS: &str = "flowschemas";

/// Kind, name, whether it is mandatory, and the spec with its defaults: those of Kubernetes 1.37.
const DATA: &str = include_str!("data/flowcontrol.json");

fn wanted() -> &'static [Value] {
    static OBJECTS: OnceLock<Vec<Value>> = OnceLock::new();
    OBJECTS.get_or_init(|| match parse(DATA.as_bytes()) {
        Ok(Value::Array(objects)) => objects,
        other => unreachable!("the data file is an array: {other:?}"),
    })
}

fn plural(object: &Value) -> &'static str {
    if object.str_at(&["kind"]) == "FlowSchema" { SCHEMAS } else { LEVELS }
}

fn path(plural: &str) -> String {
    format!("/apis/{GROUP}/v1/{plural}")
}

/// Ends when everything is as it must be.
pub async fn ready(cluster: &Cluster) -> Result<(), String> {
    let done = until_done(PATIENCE, PRODUCER_HOOK, || pass(cluster)).await;
    done.map_err(|error| format!("unable to initialize APF bootstrap configuration: {}", error.message))
}

pub async fn run(cluster: Cluster) {
    every(PERIOD, PRODUCER_HOOK, || pass(&cluster)).await;
}

async fn pass(cluster: &Cluster) -> Result<(), ApiError> {
    join_all(wanted().iter().map(|object| ensure(cluster, object))).await.into_iter().collect::<Result<(), _>>()?;
    for plural in [LEVELS, SCHEMAS] {
        let kept: HashSet<&str> =
            wanted().iter().filter(|it| self::plural(it) == plural).map(|it| it.str_at(&["name"])).collect();
        for object in cluster.reader.list(GROUP, plural, None) {
            // What an earlier version had and nobody has made their own.
            let ours = Meta::of(&object).annotation(AUTOUPDATE).and_then(parse_bool) == Some(true);
            if ours && !kept.contains(Meta::of(&object).name()) {
                cluster.delete(format!("{}/{}", path(plural), Meta::of(&object).name())).await?;
            }
        }
    }
    Ok(())
}

async fn ensure(cluster: &Cluster, wanted: &Value) -> Result<(), ApiError> {
    let (plural, name) = (plural(wanted), wanted.str_at(&["name"]));
    let spec = wanted.get("spec").cloned().unwrap_or_default();
    let Some(found) = cluster.reader.get(GROUP, plural, "", name) else {
        let mut object = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": (wanted.str_at(&["kind"])),
            "metadata": {"name": name},
            "spec": spec
        });
        object.set(&["metadata", "annotations", AUTOUPDATE], "true");
        return cluster.create(&format!("{}?fieldManager={PRODUCER}", path(plural)), object).await;
    };
    match revise(&found, &spec, wanted.bool_at(&["mandatory"])) {
        Some(object) => cluster.replace(format!("{}/{name}?fieldManager={PRODUCER}", path(plural)), object).await,
        None => Ok(()),
    }
}

/// The object as it must be, where it is not.
fn revise(found: &Value, spec: &Value, mandatory: bool) -> Option<Value> {
    let said = Meta::of(found).annotation(AUTOUPDATE).and_then(parse_bool);
    // Suggested objects are kept up to date until somebody changes them or says otherwise.
    let update = mandatory || said.unwrap_or(Meta::of(found).generation() == 1);
    let spec_differs = update && found.get("spec") != Some(spec);
    if said == Some(update) && !spec_differs {
        return None;
    }
    let mut object = found.clone();
    if spec_differs {
        object.set(&["spec"], spec.clone());
    }
    object.set(&["metadata", "annotations", AUTOUPDATE], update.to_string());
    Some(object)
}

/// Go's strconv.ParseBool.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Says in each flow schema's status whether the level it names is there.
pub async fn consume(cluster: Cluster) {
    // Levels are judged when schemas change, and schemas when levels do.
    let schemas = cluster.keep((GROUP, SCHEMAS), PERIOD, CONSUMER_HOOK, || sync_status(&cluster));
    let levels = cluster.keep((GROUP, LEVELS), PERIOD, CONSUMER_HOOK, || sync_status(&cluster));
    tokio::join!(schemas, levels);
}

async fn sync_status(cluster: &Cluster) -> Result<(), ApiError> {
    let schemas = cluster.reader.list(GROUP, SCHEMAS, None);
    let written = join_all(schemas.iter().filter_map(|schema| {
        let level = schema.str_at(&["spec", "priorityLevelConfiguration", "name"]);
        // The two mandatory levels are there even where their objects are not yet.
        let there = matches!(level, "exempt" | "catch-all") || cluster.reader.get(GROUP, LEVELS, "", level).is_some();
        let (status, reason, end) = match there {
            true => ("False", "Found", "and it exists"),
            false => ("True", "NotFound", "but there is no such object"),
        };
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" {end}");
        let conditions = schema.array_at(&["status", "conditions"]);
        let known = conditions.iter().find(|it| it.str_at(&["type"]) == "Dangling");
        let same = |it: &Value| {
            it.str_at(&["status"]) == status && it.str_at(&["reason"]) == reason && it.str_at(&["message"]) == message
        };
        if known.is_some_and(same) {
            return None;
        }
        let name = Meta::of(schema).name();
        let body = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": name},
            "status": {"conditions": [{
                "type": "Dangling",
                "status": status,
                "lastTransitionTime": (format_time(now_seconds())),
                "reason": reason,
                "message": message
            }]}
        });
        Some(cluster.client.apply(format!("{}/{name}/status?fieldManager={CONSUMER}&force=true", path(SCHEMAS)), body))
    }));
    written.await.into_iter().try_for_each(|result| result.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(annotation: Option<&str>, generation: i64, shares: i64) -> Value {
        let mut object = json!({"metadata": {"name": "x", "generation": generation}, "spec": {"shares": shares}});
        if let Some(text) = annotation {
            object.set(&["metadata", "annotations", AUTOUPDATE], text);
        }
        object
    }

    #[test]
    fn suggested_objects_follow_until_somebody_changes_them_and_mandatory_ones_always() {
        let spec = json!({"shares": 1});
        assert_eq!(revise(&found(Some("true"), 3, 1), &spec, false), None);
        assert_eq!(revise(&found(Some("true"), 3, 2), &spec, false).unwrap().get("spec"), Some(&spec));
        assert_eq!(revise(&found(Some("false"), 3, 2), &spec, false), None);
        // Changed without a word: it is theirs, and says so from now on.
        let theirs = revise(&found(None, 2, 2), &spec, false).unwrap();
        assert_eq!(Meta::of(&theirs).annotation(AUTOUPDATE), Some("false"));
        assert_eq!(theirs.at(&["spec", "shares"]), Some(&Value::Int(2)));
        let mandatory = revise(&found(Some("false"), 2, 2), &spec, true).unwrap();
        assert_eq!(Meta::of(&mandatory).annotation(AUTOUPDATE), Some("true"));
        assert_eq!(mandatory.get("spec"), Some(&spec));
    }

    #[test]
    fn the_data_has_upstreams_objects() {
        let count = |plural| wanted().iter().filter(|it| self::plural(it) == plural).count();
        assert_eq!((count(LEVELS), count(SCHEMAS)), (8, 11));
        assert_eq!(wanted().iter().filter(|it| it.bool_at(&["mandatory"])).count(), 4);
    }
}
