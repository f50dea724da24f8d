#!/usr/bin/env python3
"""Writes src/schema/data/types.txt: the type table of built-in kinds.

    tools/gen-types/gen_types.py facts/types.json > src/schema/data/types.txt

The input is what reflection over the Go types of a Kubernetes release says (see README.md here); the output is
read by src/schema/builtin.rs, which describes its format too. Same input, same output.
"""

import json
import sys

SCALARS = {
    "string": ("string", "string"),
    "bool": ("bool", "bool"),
    "int32": ("int32", "int32"),
    "int64": ("int64", "int64"),
    "float64": ("double", "float64"),
    "bytes": ("bytes", "[]uint8"),
    "quantity": ("quantity", "resource.Quantity"),
    "time": ("time", "v1.Time"),
    "microtime": ("microtime", "v1.MicroTime"),
    "duration": ("duration", "v1.Duration"),
    "intorstring": ("intorstring", "intstr.IntOrString"),
    "rawextension": ("rawextension", "runtime.RawExtension"),
    "unknown": ("unknown", "runtime.Unknown"),
    "fieldsv1": ("fieldsv1", "v1.FieldsV1"),
    "json": ("json", "v1.JSON"),
    "any": ("json", "interface {}"),
}
# Lists and maps for which upstream's defaulting functions tell empty from missing.
NIL_DIFFERS = {("v2.HPAScalingRules", "policies"), ("v1.NodeStatus", "allocatable")}
# An object of any kind in an envelope.
UNKNOWN = "io.k8s.apimachinery.pkg.runtime.Unknown"


def short_go(path):
    """k8s.io/api/core/v1.Pod -> v1.Pod, the name reflect prints."""
    return path.rsplit("/", 1)[-1]


def short_model(name):
    """io.k8s.api.core.v1.ResourceList -> v1.ResourceList."""
    return ".".join(name.split(".")[-2:])


class Generator:
    def __init__(self, facts):
        self.facts = facts["types"]
        self.kinds = facts["kinds"]
        self.lines = []  # of all types, in order of their ids; a type may take several lines
        self.ids = {}  # what makes a type -> id

    def new(self, key):
        self.ids[key] = len(self.lines) + 1  # 0 is "anything"
        self.lines.append(None)
        return self.ids[key]

    def put(self, at, *lines):
        self.lines[at - 1] = lines

    def simple(self, *columns):
        key = tuple(columns)
        if key not in self.ids:
            self.put(self.new(key), "\t".join(columns))
        return self.ids[key]

    def go_name(self, at):
        """Column 2 of every type line is Go's name."""
        return self.lines[at - 1][0].split("\t")[1]

    def scalar(self, primitive, alias=None):
        name, go = SCALARS[primitive]
        return self.simple("S", short_model(alias) if alias else go, name)

    def base(self, field):
        """The type of a field below its list and map shapes."""
        name, alias, shape = field["type"], field.get("alias"), field.get("shape")
        if name in SCALARS:
            if shape and alias and self.facts.get(alias, {}).get("shape") != "string":
                alias = None  # it names the list or map
            return self.scalar(name, alias)
        fact = self.facts[name]
        if name == UNKNOWN:
            return self.scalar("unknown")
        if fact.get("primitive"):
            return self.scalar(fact["primitive"])
        if fact["shape"] == "list":
            item = self.scalar(fact["elem"])
            # "m": a message of its own, whose items have tag 1
            return self.simple("L", short_go(fact["go"]), str(item), "-", "", "m")
        return self.named(name)

    def field_type(self, field):
        at = self.base(field)
        shapes = field.get("shape", [])
        for depth, shape in enumerate(reversed(shapes)):
            outermost = depth == len(shapes) - 1
            alias = field.get("alias") if outermost else None
            named = alias and self.facts.get(alias, {}).get("shape") != "string"
            if shape == "list":
                go = short_model(alias) if named else "[]" + self.go_name(at)
                kind = field.get("list_type", "-") if outermost else "-"
                keys = ",".join(field.get("list_map_keys", [])) if outermost else ""
                at = self.simple("L", go, str(at), kind, keys, "")
            else:
                key = short_model(field["map_key"]) if field.get("map_key") else "string"
                go = short_model(alias) if named else f"map[{key}]{self.go_name(at)}"
                at = self.simple("M", go, str(at), field.get("map_type", "-"))
        return at

    def named(self, name):
        if name not in self.ids:
            fact = self.facts[name]
            at = self.new(name)
            self.lines[at - 1] = (f"?\t{short_go(fact['go'])}",)  # known before its members are
            lines = self.one_of(name, fact) if fact.get("custom_json") else self.struct(name, fact)
            self.put(at, *lines)
        return self.ids[name]

    def one_of(self, name, fact):
        yield "\t".join(["O", short_go(fact["go"]), name])
        for field in fact.get("fields", []):
            yield f" {self.field_type(field)}\t{self.wire(field)}"

    def struct(self, name, fact):
        extensions = fact.get("extensions", {})
        flags = "o" if fact.get("openapi") else ""
        flags += "a" if extensions.get("x-kubernetes-map-type") == "atomic" else ""
        unions = extensions.get("x-kubernetes-unions")
        fields, embedded = {}, []
        self.members(fact, fields, embedded, [])
        head = ["T", short_go(fact["go"]), name, flags, compact(unions) if unions else ""]
        head += self.required_order(fields)
        yield "\t".join(head)
        order = sorted(fields, key=lambda json_name: json_name.encode())
        for json_name in order:
            yield self.field_line(short_go(fact["go"]), *fields[json_name])
        for tag, at in sorted(embedded):
            yield f" @\t{at}\t{tag}"

    def required_order(self, fields):
        """The order in which OpenAPI lists required members (Go's), where it is not that of the protobuf tags."""
        required = [field for field, _ in fields.values() if field.get("required")]
        tag = lambda field: field.get("proto", {}).get("tag", 0)
        by_tag = sorted(required, key=lambda field: (tag(field), field["json"].encode()))
        return [] if by_tag == required else [",".join(field["json"] for field in required)]

    def members(self, fact, fields, embedded, embedding):
        """Flattens embedded structs; only the outermost level speaks of protobuf."""
        later = []
        for field in fact.get("fields", []):
            if field["json"] == "-":
                continue
            if field.get("inline"):
                inner = field["type"]
                if field.get("proto") and not embedding:
                    embedded.append((field["proto"]["tag"], self.named(inner)))
                later.append((inner, field["go"]))
            elif field["json"] not in fields:
                fields[field["json"]] = (field, embedding)
        for inner, go in later:
            self.members(self.facts[inner], fields, embedded, embedding + [go])

    def field_line(self, owner, field, embedding):
        flags = "".join(
            letter
            for letter, on in [
                ("p", field.get("pointer")),
                ("e", field.get("omitempty")),
                ("z", field.get("omitzero")),
                ("r", field.get("required")),
                ("m", "merge" in field.get("patch_strategy", "")),
                ("k", "retainKeys" in field.get("patch_strategy", "")),
                ("x", field.get("patch_strategy") == "replace"),
                ("n", (owner, field["json"]) in NIL_DIFFERS),
                ("G", not field.get("shape") and field.get("map_type") == "granular"),
            ]
            if on
        )
        columns = [" " + field["json"], str(self.field_type(field)), flags, "-" if embedding else self.wire(field)]
        if embedding:
            columns.append("i=" + ".".join(embedding))
        if field.get("patch_merge_key"):
            columns.append("k=" + field["patch_merge_key"])
        gates = sorted({gate for tag in field.get("tags", []) if tag.startswith("+featureGate=") for gate in tag[13:].split(",")})
        if gates:
            columns.append("g=" + ",".join(gates))
        if field.get("enum"):
            columns.append("e=" + "|".join(field["enum"]))
        if "default" in field:
            shown = field["default"]
            # A default that defaulting sets is marked in the source; OpenAPI also shows zero values.
            real = any(tag.startswith("+default=") for tag in field.get("tags", []))
            real = real and (field.get("pointer") or shown not in ("", 0, False))
            columns.append(("D=" if real else "d=") + compact(shown))
        return "\t".join(columns)

    def wire(self, field):
        proto = field.get("proto")
        return str(proto["tag"]) if proto else "-"

    def run(self, out):
        kinds = sorted({(k["group"], k["version"], k["kind"], k["type"]) for k in self.kinds})
        for *_, name in kinds:
            self.named(name)
        for name in sorted(self.facts):
            fact = self.facts[name]
            if fact["shape"] == "struct" and not fact.get("primitive") and name != UNKNOWN:
                self.named(name)
        print("# Made by tools/gen-types/gen_types.py; edit that.", file=out)
        for lines in self.lines:
            print("\n".join(lines), file=out)
        for group, version, kind, name in kinds:
            print("\t".join(["K", group, version, kind, str(self.ids[name])]), file=out)


def compact(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as facts:
        Generator(json.load(facts)).run(sys.stdout)
