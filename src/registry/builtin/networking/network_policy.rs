//! NetworkPolicy (kubernetes `pkg/registry/networking/networkpolicy`, `pkg/apis/networking/validation`).

use crate::{
    api::{
        ErrorList, FieldError, Path,
        ip::parse_cidr,
        names::{is_valid_port_name, is_valid_port_num},
    },
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions,
            address::{cidr_warnings, validate_cidr_for_legacy_field},
            declarative,
            object_meta::push_messages,
            validate_label_selector,
        },
    },
};

/// The lists of rules, and what each calls its peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const TYPES: [&str; 2] = ["Ingress", "Egress"];

pub struct NetworkPolicy;

/// What an object that is older than a rule may keep.
struct Loose<'a> {
    selector: LabelSelectorOptions,
    cidrs: Vec<&'a str>,
}

impl Own for NetworkPolicy {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let loose = looseness(old);
        let selector = spec.get("podSelector").unwrap_or(&empty);
        validate_label_selector(Some(selector), loose.selector, &path.child("podSelector"), errors);
        for (direction, peers) in DIRECTIONS {
            let at = path.child(direction);
            for (index, rule) in spec.array_at(&[direction]).iter().enumerate() {
                let (rule_at, list) = (at.index(index), rule.array_at(&[peers]));
                let (ports_at, peers_at) = (rule_at.child("ports"), rule_at.child(peers));
                for (index, port) in rule.array_at(&["ports"]).iter().enumerate() {
                    validate_port(port, &ports_at.index(index), errors);
                }
                for (index, peer) in list.iter().enumerate() {
                    validate_peer(peer, &loose, &peers_at.index(index), errors);
                }
            }
        }
        validate_types(spec, &path.child("policyTypes"), errors);
        let mut declared = ErrorList::new();
        // A block without a network was refused when it came.
        each_block(new, &mut |block, path| {
            declarative::required(block.get("cidr"), &path.child("cidr"), &mut declared);
        });
        declarative::merge(errors, declared);
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        each_block(new, &mut |block, path| {
            warnings.extend(cidr_warnings(block.str_at(&["cidr"]), &path.child("cidr")));
            let at = path.child("except");
            for (index, except) in block.array_at(&["except"]).iter().enumerate() {
                warnings.extend(cidr_warnings(except.as_str().unwrap_or(""), &at.index(index)));
            }
        });
        warnings
    }
}

/// All blocks of addresses of a policy.
fn each_block<'a>(policy: &'a Value, visit: &mut dyn FnMut(&'a Value, &Path<'_>)) {
    let spec = Path::new("spec");
    for (direction, peers) in DIRECTIONS {
        let at = spec.child(direction);
        for (index, rule) in policy.array_at(&["spec", direction]).iter().enumerate() {
            let rule_at = at.index(index);
            let peers_at = rule_at.child(peers);
            for (index, peer) in rule.array_at(&[peers]).iter().enumerate() {
                if let Some(block) = peer.get("ipBlock").filter(|it| !it.is_null()) {
                    visit(block, &peers_at.index(index).child("ipBlock"));
                }
            }
        }
    }
}

fn looseness(old: Option<&Value>) -> Loose<'_> {
    let Some(old) = old else { return Loose { selector: LabelSelectorOptions::default(), cidrs: Vec::new() } };
    let mut errors = ErrorList::new();
    let selector = old.at(&["spec", "podSelector"]);
    validate_label_selector(selector, LabelSelectorOptions::default(), &Path::ROOT, &mut errors);
    let mut cidrs = Vec::new();
    each_block(old, &mut |block, _| {
        cidrs.push(block.str_at(&["cidr"]));
        cidrs.extend(block.array_at(&["except"]).iter().filter_map(Value::as_str));
    });
    let selector = LabelSelectorOptions { allow_invalid_values: !errors.is_empty(), ..Default::default() };
    Loose { selector, cidrs }
}

fn validate_port(it: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(protocol) = it.get("protocol").and_then(Value::as_str).filter(|it| !PROTOCOLS.contains(it)) {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &PROTOCOLS));
    }
    let (at, end_at) = (path.child("port"), path.child("endPort"));
    let end = it.i64_at(&["endPort"]);
    let refuse_end = |why: &str, errors: &mut ErrorList| {
        if let Some(end) = end {
            errors.push(FieldError::invalid(&end_at, end, why));
        }
    };
    match it.get("port").filter(|it| !it.is_null()) {
        None => refuse_end("may not be specified when `port` is not specified", errors),
        Some(Value::Str(name)) => {
            refuse_end("may not be specified when `port` is non-numeric", errors);
            push_messages(is_valid_port_name(name), name, &at, errors);
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or(0);
            for why in is_valid_port_num(number) {
                errors.push(FieldError::invalid(&at, number, &why));
            }
            if end.is_some_and(|end| end < number) {
                refuse_end("must be greater than or equal to `port`", errors);
            }
            for why in end.map(is_valid_port_num).unwrap_or_default() {
                refuse_end(&why, errors);
            }
        }
    }
}

fn validate_peer(peer: &Value, loose: &Loose<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let given = |member: &str| peer.get(member).filter(|it| !it.is_null());
    let mut peers = 0;
    for member in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = given(member) {
            peers += 1;
            validate_label_selector(Some(selector), loose.selector, &path.child(member), errors);
        }
    }
    let block = given("ipBlock");
    if let Some(block) = block {
        validate_block(block, loose, &path.child("ipBlock"), errors);
    }
    match (peers, block) {
        (0, None) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., Some(_)) => errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn validate_block(block: &Value, loose: &Loose<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let (cidr, at) = (block.str_at(&["cidr"]), path.child("cidr"));
    if cidr.is_empty() {
        errors.push(FieldError::required(&at, "").covered_by_declarative());
        return;
    }
    validate_cidr_for_legacy_field(cidr, true, &loose.cidrs, &at, errors);
    let Some(network) = parse_cidr(cidr) else { return };
    let at = path.child("except");
    for (index, except) in block.array_at(&["except"]).iter().enumerate() {
        let (text, at) = (except.as_str().unwrap_or(""), at.index(index));
        validate_cidr_for_legacy_field(text, true, &loose.cidrs, &at, errors);
        let Some(except) = parse_cidr(text) else { continue };
        if !network.contains(except.ip) || network.prefix >= except.prefix {
            errors.push(FieldError::invalid(&at, text, "must be a strict subset of `cidr`"));
        }
    }
}

fn validate_types(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let types = spec.array_at(&["policyTypes"]);
    if types.len() > TYPES.len() {
        let shown = spec.get("policyTypes").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid_ref(path, shown, "may not specify more than two policyTypes"));
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        let kind = kind.as_str().unwrap_or("");
        if !TYPES.contains(&kind) {
            errors.push(FieldError::not_supported(&path.index(index), kind, &TYPES));
        }
    }
}
