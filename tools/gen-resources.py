#!/usr/bin/env python3
"""Makes src/registry/data/resources.json, the rows of the built-in resources, out of the facts.

Usage: tools/gen-resources.py FACTS > src/registry/data/resources.json
FACTS is the folder with resources.json, columns.json and selectable-fields.json (dumped from a live server of the
release that is served). One row a line, so that diffs are readable.
"""
import json, os, sys

facts = sys.argv[1]
load = lambda name: json.load(open(os.path.join(facts, name)))
resources, columns, fields = load("resources.json"), load("columns.json")["kinds"], load("selectable-fields.json")["kinds"]
default = {(r["group"], r["version"], r["plural"]) for r in resources["default"]}

# How a kind words a field selector it does not know; %s is the label.
KNOWN_ONLY = "known-only"
def unsupported(kind):
    status = (fields.get(kind) or {}).get("unsupported_status") or {}
    message = status.get("message", "")
    return KNOWN_ONLY if "is not a known field selector" in message or not message else message.replace("spec.bogus", "%s")

rows = []
for r in resources["api-all"]:
    gv = r["version"] if not r["group"] else r["group"] + "/" + r["version"]
    kind = gv + "/" + r["kind"]
    row = {"group": r["group"], "version": r["version"], "kind": r["kind"], "plural": r["plural"], "singular": r["singular"],
           "namespaced": r["namespaced"], "verbs": r["verbs"], "default": (r["group"], r["version"], r["plural"]) in default}
    for key in ("short_names", "categories", "subresources", "storage_version_hash", "storage_group_version", "storage_kind"):
        if r.get(key): row[key] = r[key]
    if r.get("etcd_prefix"): row["prefix"] = r["etcd_prefix"] + "/"
    if r.get("table"):
        row["columns"] = columns.get(kind) or []
    if kind in fields:
        row["selectable"] = [l["label"] for l in fields[kind]["labels"]]
        row["unsupported"] = unsupported(kind)
    rows.append(row)
print("[")
print(",\n".join(json.dumps(r, separators=(",", ":")) for r in rows))
print("]")
