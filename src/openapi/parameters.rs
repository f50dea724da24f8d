//! Query and path parameters of operations.
//!
//! OpenAPI v2 keeps parameters that many operations have in one place. Their names there end in a mark, which upstream
//! makes out of the parameter's text; the marks are kept, since they are part of the documents' structure, the texts
//! are our own.

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Path,
    Query,
}

impl Place {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub place: Place,
    /// `string`, `integer`, `boolean`.
    pub kind: &'static str,
    /// What its shared name ends in (v2); `None`: it is written out everywhere.
    pub mark: Option<&'static str>,
    pub description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, mark: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind, mark: Some(mark), description }
}

const fn path(name: &'static str, mark: Option<&'static str>, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, kind: "string", mark, description }
}

const fn unshared(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind: "string", mark: None, description }
}

pub const NAME: Parameter = path("name", None, "The name of the object.");
pub const NAMESPACE: Parameter = path("namespace", Some("vgWSWtn3"), "The namespace the object is in.");
pub const REST_OF_PATH: Parameter = path("path", Some("z6Ciiujn"), "The path at the other end.");

pub const PRETTY: Parameter = query(
    "pretty",
    "string",
    "tJGM1-ng",
    "Whether the answer is indented. By default it is for browsers, curl and wget.",
);

const BOOKMARKS: Parameter = query(
    "allowWatchBookmarks",
    "boolean",
    "HC2hJt-J",
    "Asks for BOOKMARK events, which tell how far the watch has come. Ignored where this is no watch.",
);
const CONTINUE: Parameter = query(
    "continue",
    "string",
    "QfD61s0i",
    "The token of the previous page; all other parameters have to be the same.",
);
const FIELD_SELECTOR: Parameter =
    query("fieldSelector", "string", "xIcQKXFG", "Restricts the answer to objects whose fields match. Default: all.");
const LABEL_SELECTOR: Parameter =
    query("labelSelector", "string", "5Zw57w4C", "Restricts the answer to objects whose labels match. Default: all.");
const LIMIT: Parameter = query(
    "limit",
    "integer",
    "1NfNmdNH",
    "The most objects of one page; where there are more, the answer has a continue token.",
);
pub const RESOURCE_VERSION: Parameter = query(
    "resourceVersion",
    "string",
    "5WAnf1kx",
    "How recent the answer has to be: empty for the latest, 0 for any, a version for one not older.",
);
const RESOURCE_VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "t8XhRHeC", "How resourceVersion is meant: Exact or NotOlderThan.");
const SEND_INITIAL_EVENTS: Parameter = query(
    "sendInitialEvents",
    "boolean",
    "rLXlEK_k",
    "Whether a watch begins with what exists, followed by a bookmark that ends it.",
);
const SHARD_SELECTOR: Parameter = query(
    "shardSelector",
    "string",
    "Kgyki_3_",
    "Restricts the answer to a part of all objects, for clients that share the work.",
);
const TIMEOUT_SECONDS: Parameter = query(
    "timeoutSeconds",
    "integer",
    "yvYezaOC",
    "The longest the call may take, whether there is anything to tell or not.",
);
const WATCH: Parameter = query("watch", "boolean", "XNNPZGbK", "Asks for changes as they happen instead of a list.");

const DRY_RUN: Parameter = unshared("dryRun", "With All the request is judged in full and nothing is kept.");
const FIELD_VALIDATION: Parameter =
    unshared("fieldValidation", "What happens with unknown and repeated fields: Ignore, Warn (the default) or Strict.");
const MANAGER_TEXT: &str =
    "The name under which the fields written here are owned. Default: the first part of the user agent.";
const FIELD_MANAGER: Parameter = query("fieldManager", "string", "Qy4HdaTW", MANAGER_TEXT);
const PATCH_MANAGER: Parameter = query(
    "fieldManager",
    "string",
    "7c6nTn1T",
    "The name under which the fields written here are owned; required for apply.",
);
const FORCE: Parameter = query("force", "boolean", "tOGGb0Yi", "Takes over fields that others own. Only for apply.");
const GRACE: Parameter =
    query("gracePeriodSeconds", "integer", "-K5HaBOS", "How long the object may take to end; 0 means at once.");
const IGNORE_READ_ERRORS: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "QbNkfIqj",
    "Removes an object that cannot be read, without finalizers or preconditions. What depended on it is left behind.",
);
const ORPHAN: Parameter =
    query("orphanDependents", "boolean", "uRB25kX5", "Deprecated, use propagationPolicy: whether dependents are kept.");
const PROPAGATION: Parameter =
    query("propagationPolicy", "string", "6jk3prlO", "What becomes of dependents: Orphan, Background or Foreground.");

/// Of lists and watches.
pub const LIST: &[Parameter] = &[
    BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    WATCH,
];
/// Of what is deleted as a collection, besides [`DELETE`].
pub const SELECTION: &[Parameter] = &[
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];
pub const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
pub const PATCH: &[Parameter] = &[DRY_RUN, PATCH_MANAGER, FIELD_VALIDATION, FORCE];
pub const DELETE: &[Parameter] = &[DRY_RUN, GRACE, IGNORE_READ_ERRORS, ORPHAN, PROPAGATION];

const fn stream(name: &'static str, mark: &'static str, description: &'static str) -> Parameter {
    query(name, "boolean", mark, description)
}

const ATTACH: &[Parameter] = &[
    query("container", "string", "_Q-EJ3nR", "The container; needed where the pod has several."),
    stream("stderr", "26jJhFUR", "Whether standard error is sent. Default: true."),
    stream("stdin", "sEFnN3IS", "Whether standard input is taken. Default: false."),
    stream("stdout", "005YMKE6", "Whether standard output is sent. Default: true."),
    stream("tty", "g7MlET_l", "Whether there is a terminal. Default: false."),
];
const EXEC: &[Parameter] = &[
    query("command", "string", "Py3eQybp", "The program and its arguments, one parameter each; no shell is involved."),
    query("container", "string", "i5dOmRiM", "The container; needed where the pod has several."),
    stream("stderr", "W_1TNlWc", "Whether standard error is sent."),
    stream("stdin", "PSzNhyUC", "Whether standard input is taken. Default: false."),
    stream("stdout", "-EZLRwV1", "Whether standard output is sent."),
    stream("tty", "s0flW37O", "Whether there is a terminal. Default: false."),
];
const PORT_FORWARD: &[Parameter] = &[query("ports", "integer", "91KROJmm", "The ports; needed for WebSockets.")];
const POD_PROXY: &[Parameter] = &[query("path", "string", "oPbzgLUj", "The path at the pod.")];
const SERVICE_PROXY: &[Parameter] = &[query("path", "string", "QCf0eosM", "The path at the service.")];
const NODE_PROXY: &[Parameter] = &[query("path", "string", "rFDtV0x9", "The path at the kubelet.")];

/// Of subresources that lead somewhere else, by the kind of their options.
pub fn of_connect(kind: &str) -> &'static [Parameter] {
    match kind {
        "PodAttachOptions" => ATTACH,
        "PodExecOptions" => EXEC,
        "PodPortForwardOptions" => PORT_FORWARD,
        "PodProxyOptions" => POD_PROXY,
        "ServiceProxyOptions" => SERVICE_PROXY,
        "NodeProxyOptions" => NODE_PROXY,
        _ => &[],
    }
}

/// Of a pod's log.
pub const LOG: &[Parameter] = &[
    query("container", "string", "1GeXxFDC", "The container; needed where the pod has several."),
    query("follow", "boolean", "9OIXh_2R", "Goes on with what is written from now on. Default: false."),
    query(
        "insecureSkipTLSVerifyBackend",
        "boolean",
        "gM00jVbe",
        "Trusts the kubelet whatever certificate it has. What is sent may then come from anyone.",
    ),
    query("limitBytes", "integer", "zwd1RXuc", "The most bytes to send."),
    query("previous", "boolean", "1jxDPu3y", "The container before its last restart. Default: false."),
    query("sinceSeconds", "integer", "vE2NLdnP", "How far back to go, in seconds."),
    query("stream", "string", "l-48cgXv", "Which stream: All (the default), Stdout or Stderr."),
    query("tailLines", "integer", "9xQLWHMV", "How many lines from the end. Default: all."),
    query("timestamps", "boolean", "c17fW1w_", "Puts the time before each line. Default: false."),
];
