#!/usr/bin/env python3
"""Writes src/registry/builtin/rbac/data/bootstrap.jsonl, the roles and bindings every cluster starts with.

Usage: tools/gen-rbac.py FACTS/rbac-bootstrap.json

One object a line, without what all have in common (API version, the bootstrap label, the autoupdate annotation):

    {"ClusterRole": name, "labels": ["edit"], "aggregate": "view", "rules": [rule, ...]}
    {"Role": name, "namespace": namespace, "rules": [rule, ...]}
    {"ClusterRoleBinding": name, "role": "ClusterRole/name", "subjects": ["User/name", "ServiceAccount/namespace/name"]}

A rule is "verbs|groups|resources" or "verbs|groups|resources|names", lists joined by commas; "verbs|paths" is about
paths. A label "edit" stands for rbac.authorization.k8s.io/aggregate-to-edit=true, so does "aggregate" for the selector.
"""
import json
import pathlib
import sys

PREFIX = "rbac.authorization.k8s.io/aggregate-to-"
COMMON_LABEL = ("kubernetes.io/bootstrapping", "rbac-defaults")
COMMON_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
GROUP = "rbac.authorization.k8s.io"


def joined(items):
    assert all("," not in item and "|" not in item for item in items), items
    return ",".join(items)


def rule_text(rule):
    if "nonResourceURLs" in rule:
        assert set(rule) == {"verbs", "nonResourceURLs"}, rule
        return "|".join([joined(rule["verbs"]), joined(rule["nonResourceURLs"])])
    parts = [joined(rule[key]) for key in ("verbs", "apiGroups", "resources")]
    if "resourceNames" in rule:
        parts.append(joined(rule["resourceNames"]))
    return "|".join(parts)


def subject_text(subject):
    kind = subject["kind"]
    if kind == "ServiceAccount":
        assert set(subject) == {"kind", "name", "namespace"}, subject
        return "/".join([kind, subject["namespace"], subject["name"]])
    assert subject["apiGroup"] == GROUP, subject
    return f"{kind}/{subject['name']}"


def line(item):
    metadata, kind = item["metadata"], item["kind"]
    out = {kind: metadata["name"]}
    if "namespace" in metadata:
        out["namespace"] = metadata["namespace"]
    labels = dict(metadata["labels"])
    assert labels.pop(COMMON_LABEL[0]) == COMMON_LABEL[1], item
    assert metadata["annotations"] == COMMON_ANNOTATIONS, item
    assert all(key.startswith(PREFIX) and value == "true" for key, value in labels.items()), item
    if labels:
        out["labels"] = [key[len(PREFIX):] for key in labels]
    if "aggregationRule" in item:
        [selector] = item["aggregationRule"]["clusterRoleSelectors"]
        [(key, value)] = selector["matchLabels"].items()
        assert key.startswith(PREFIX) and value == "true" and not item["rules"], item
        out["aggregate"] = key[len(PREFIX):]
    elif kind.endswith("Role"):
        out["rules"] = [rule_text(rule) for rule in item["rules"] or []]
    else:
        assert item["roleRef"]["apiGroup"] == GROUP, item
        out["role"] = f"{item['roleRef']['kind']}/{item['roleRef']['name']}"
        out["subjects"] = [subject_text(subject) for subject in item.get("subjects", [])]
    return json.dumps(out, ensure_ascii=False)


def main():
    facts = json.loads(pathlib.Path(sys.argv[1]).read_text())
    lines = [line(item) for key in ("clusterroles", "clusterrolebindings", "roles", "rolebindings") for item in facts[key]]
    root = pathlib.Path(__file__).resolve().parent.parent
    (root / "src/registry/builtin/rbac/data/bootstrap.jsonl").write_text("\n".join(lines) + "\n")


main()
