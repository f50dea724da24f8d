//! Families and cluster IPs of one write.

use std::{net::IpAddr, sync::Arc};

use super::{
    super::{
        addresses::{AddressError, AddressPool},
        families::{CLUSTER_IPS, IP_FAMILIES, IP_FAMILY_POLICY, validate_related},
        view::{self, Family, cluster_ips, is_external_name, is_headless, same_list, shown, spec, text, texts},
    },
    Allocators, invalid, invalid_one, set_families,
};
use crate::{
    api::{ApiError, ErrorList, FieldError, Meta, ip::parse_ip},
    object::Value,
};

/// Whether both prefer two families and nothing about that changes: such a Service gets and loses no address, even where
/// the cluster has other families now.
fn keeps_preferred(new: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    let policy = |service: &Value| text(service, "ipFamilyPolicy") == "PreferDualStack";
    view::set(new, "ipFamilyPolicy").is_some()
        && view::kind(old) == view::kind(new)
        && matches!(view::kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
        && policy(new)
        && (view::set(old, "ipFamilyPolicy").is_none() || policy(old))
        && same_list(old, new, "clusterIPs")
        && same_list(old, new, "ipFamilies")
}

fn families(service: &Value) -> Vec<&str> {
    texts(service, "ipFamilies")
}

impl Allocators {
    /// Decides policy and families where the client left them open, and refuses what this cluster has not.
    pub(super) fn init_families(&self, new: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if is_external_name(new) || keeps_preferred(new, old) {
            return Ok(());
        }
        default_policy(new, old);
        let mut errors = ErrorList::new();
        validate_related(new, old, &mut errors);
        if !errors.is_empty() {
            return Err(invalid(new, errors));
        }
        if let Some(old) = old {
            shrink(new, old, &mut errors);
        }
        check_policy(new, &mut errors);
        self.infer_families(new, &mut errors);
        if !errors.is_empty() {
            return Err(invalid(new, errors));
        }
        if text(new, "clusterIP") == view::NONE && !view::has_selector(new) {
            self.open_families(new);
            return Ok(());
        }
        self.check_families(new)?;
        if families(new).is_empty() {
            set_families(new, &[self.default_family()]);
        }
        if text(new, "ipFamilyPolicy") != "SingleStack" && self.families.len() == 2 {
            add_second_family(new);
        }
        Ok(())
    }

    /// A headless Service without a selector may have families that the cluster has not.
    fn open_families(&self, new: &mut Value) {
        if families(new).is_empty() {
            set_families(new, &[self.default_family()]);
        }
        if text(new, "ipFamilyPolicy") != "SingleStack" {
            add_second_family(new);
        }
    }

    fn has(&self, family: &str) -> bool {
        Family::named(family).is_some_and(|family| self.families.contains(&family))
    }

    fn infer_families(&self, new: &mut Value, errors: &mut ErrorList) {
        let ips: Vec<String> = cluster_ips(new).into_iter().map(str::to_owned).collect();
        for (index, ip) in ips.iter().enumerate().take_while(|(_, ip)| *ip != view::NONE) {
            if index < families(new).len() {
                continue;
            }
            let family = Family::of_text(ip);
            if self.families.contains(&family) {
                let list = spec(new).entry_or("ipFamilies", || Value::Array(Vec::new()));
                match list.as_array_mut() {
                    Some(list) => list.push(family.as_str().into()),
                    None => *list = vec![family.as_str()].into(),
                }
            } else {
                let why = format!("{} is not configured on this cluster", family.as_str());
                errors.push(FieldError::invalid(&CLUSTER_IPS.index(index), shown(new, "clusterIPs"), &why));
            }
        }
    }

    fn check_families(&self, new: &Value) -> Result<(), ApiError> {
        let mut errors = ErrorList::new();
        if text(new, "ipFamilyPolicy") == "RequireDualStack" && self.families.len() < 2 {
            let why = "this cluster is not configured for dual-stack services";
            errors.push(FieldError::invalid(&IP_FAMILY_POLICY, shown(new, "ipFamilyPolicy"), why));
        }
        for (index, family) in families(new).into_iter().enumerate().filter(|(_, family)| !self.has(family)) {
            errors.push(FieldError::invalid(&IP_FAMILIES.index(index), family, "not configured on this cluster"));
        }
        if errors.is_empty() { Ok(()) } else { Err(invalid(new, errors)) }
    }
}

fn default_policy(new: &mut Value, old: Option<&Value>) {
    if view::set(new, "ipFamilyPolicy").is_some() {
        return;
    }
    let before = old.and_then(|old| view::set(old, "ipFamilyPolicy")).cloned();
    let policy = before.unwrap_or_else(|| {
        let open = text(new, "clusterIP") == view::NONE && !view::has_selector(new);
        if open { "RequireDualStack" } else { "SingleStack" }.into()
    });
    spec(new).insert("ipFamilyPolicy", policy);
}

/// Going back to one family takes away what the client left as it was; any other way of losing one is refused.
fn shrink(new: &mut Value, old: &Value, errors: &mut ErrorList) {
    const LISTS: [(&str, &str); 2] = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    for (list, what) in LISTS {
        let (before, after) = (old.array_at(&["spec", list]).len(), new.array_at(&["spec", list]).len());
        if text(new, "ipFamilyPolicy") != "SingleStack" {
            if after > 0 && after < before {
                let why = format!("must be 'SingleStack' to release the secondary {what}");
                errors.push(FieldError::invalid(&IP_FAMILY_POLICY, shown(new, "ipFamilyPolicy"), &why));
            }
        } else if same_list(old, new, list)
            && let Some(items) = new.at_mut(&["spec", list]).and_then(Value::as_array_mut)
        {
            items.truncate(1);
        }
    }
}

fn check_policy(new: &Value, errors: &mut ErrorList) {
    if text(new, "ipFamilyPolicy") != "SingleStack" {
        return;
    }
    for (list, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if new.array_at(&["spec", list]).len() == 2 {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(FieldError::invalid(&IP_FAMILY_POLICY, shown(new, "ipFamilyPolicy"), &why));
        }
    }
}

fn add_second_family(new: &mut Value) {
    if let [only] = families(new)[..]
        && let Some(family) = Family::named(only)
    {
        set_families(new, &[family, family.other()]);
    }
}

/// The addresses that one write takes and gives up. Until [`AddressChange::finish`] nothing is given back.
pub(super) struct AddressChange {
    pool: Arc<AddressPool>,
    dry_run: bool,
    taken: Vec<IpAddr>,
    given_up: Vec<IpAddr>,
}

impl AddressChange {
    pub fn new(pool: Arc<AddressPool>, dry_run: bool) -> Self {
        Self { pool, dry_run, taken: Vec::new(), given_up: Vec::new() }
    }

    pub async fn run(&mut self, new: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        let Some(old) = old else { return self.take_all(new).await };
        if keeps_preferred(new, Some(old)) {
            return Ok(());
        }
        match (is_external_name(old), is_external_name(new)) {
            (true, false) => return self.take_all(new).await,
            (true, true) => return Ok(()),
            _ => {}
        }
        if cluster_ips(old).first() == Some(&view::NONE) {
            return Ok(());
        }
        let old_ips = cluster_ips(old);
        if is_external_name(new) {
            self.given_up.extend(old_ips.into_iter().filter_map(parse_ip));
            return Ok(());
        }
        match (families(old).len(), families(new).len()) {
            (1, 2) => self.take_second(new).await,
            (2, 1) => {
                self.given_up.extend(old_ips.get(1).and_then(|ip| parse_ip(ip)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An address for every family.
    async fn take_all(&mut self, new: &mut Value) -> Result<(), ApiError> {
        if is_external_name(new) || is_headless(new) || cluster_ips(new).first() == Some(&view::NONE) {
            return Ok(());
        }
        let mut ips: Vec<String> = cluster_ips(new).into_iter().map(str::to_owned).collect();
        let wanted: Vec<Option<Family>> = families(new).into_iter().map(Family::named).collect();
        ips.resize(ips.len().max(wanted.len()), String::new());
        for (ip, family) in ips.iter_mut().zip(wanted) {
            // Others were refused when the families were checked.
            let Some(family) = family else { continue };
            *ip = self.take(new, family, ip).await?;
        }
        if let Some(first) = ips.first() {
            spec(new).insert("clusterIP", first.clone());
        }
        spec(new).insert("clusterIPs", ips);
        Ok(())
    }

    async fn take_second(&mut self, new: &mut Value) -> Result<(), ApiError> {
        let mut ips: Vec<String> = cluster_ips(new).into_iter().map(str::to_owned).collect();
        let Some(family) = families(new).get(1).and_then(|name| Family::named(name)) else { return Ok(()) };
        ips.resize(ips.len().max(2), String::new());
        if let Some(second) = ips.get_mut(1) {
            *second = self.take(new, family, second).await?;
        }
        spec(new).insert("clusterIPs", ips);
        Ok(())
    }

    /// Takes `wanted`, or any where it is empty; answers the address as the Service shows it.
    async fn take(&mut self, service: &Value, family: Family, wanted: &str) -> Result<String, ApiError> {
        let meta = Meta::of(service);
        let (namespace, name) = (meta.namespace(), meta.name());
        if wanted.is_empty() {
            let found = match self.dry_run {
                true => self.pool.any(family),
                false => self.pool.take_any(family, namespace, name).await,
            };
            let ip = found.map_err(|error| match error {
                AddressError::Full => {
                    ApiError::internal(format!("failed to allocate a serviceIP for Service \"{name}\": {error}"))
                }
                error => refuse(service, &format!("failed to allocate IP: {error}")),
            })?;
            self.taken.push(ip);
            return Ok(ip.to_string());
        }
        let Some(ip) = parse_ip(wanted) else {
            return Err(ApiError::internal(format!("failed to parse service IP \"{wanted}\"")));
        };
        let result = match self.dry_run {
            true => self.pool.check(ip),
            false => self.pool.take(ip, namespace, name).await,
        };
        result.map_err(|error| refuse(service, &format!("failed to allocate IP {wanted}: {error}")))?;
        self.taken.push(ip);
        Ok(wanted.to_owned())
    }

    /// Gives back what was taken where the write failed, and what was given up where it succeeded.
    pub async fn finish(self, success: bool) {
        if self.dry_run {
            return;
        }
        for ip in if success { self.given_up } else { self.taken } {
            self.pool.addresses.release(ip).await;
        }
    }
}

fn refuse(service: &Value, why: &str) -> ApiError {
    invalid_one(service, FieldError::invalid(&CLUSTER_IPS, shown(service, "clusterIPs"), why))
}
