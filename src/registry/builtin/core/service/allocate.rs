//! Around a Service's write: what the client means with its cluster IPs and families, and the addresses and ports it
//! gets (kubernetes `pkg/registry/core/service/storage/{storage,alloc}.go`).

mod ips;
mod nodeports;

use std::sync::Arc;

use self::ips::AddressChange;
use super::{
    Allocation,
    addresses::AddressPool,
    ports::{self, PortOperation},
    view::{self, Family, NONE, cluster_ips, is_external_name, spec, text},
};
use crate::{
    api::{ApiError, ErrorList, FieldError, Meta},
    object::Value,
    registry::{
        reader::ObjectReader,
        strategy::{Lifecycle, LifecycleFuture, Released, Undo},
    },
};

/// The lifecycle of Services.
pub struct Allocators {
    allocation: Allocation,
    families: Vec<Family>,
    pool: Arc<AddressPool>,
    services: Arc<dyn Fn() -> Vec<Arc<Value>> + Send + Sync>,
}

impl Allocators {
    pub fn new(allocation: Allocation, reader: Arc<dyn ObjectReader>) -> Self {
        let pool = AddressPool { reader: reader.clone(), addresses: allocation.addresses.clone() };
        Self {
            families: allocation.families(),
            allocation,
            pool: Arc::new(pool),
            services: Arc::new(move || reader.list("", "services", None)),
        }
    }

    fn default_family(&self) -> Family {
        self.families.first().copied().unwrap_or(Family::V4)
    }

    async fn run(&self, new: &mut Value, old: Option<&Value>, dry_run: bool) -> Result<Undo, ApiError> {
        let old = old.cloned().map(|mut old| {
            default_on_read(&mut old, self.default_family());
            old
        });
        if let Some(old) = &old {
            patch_allocated_values(new, old);
        }
        normalise_cluster_ips(new, old.as_ref());
        self.init_families(new, old.as_ref())?;
        let mut change = AddressChange::new(self.pool.clone(), dry_run);
        let mut ports = PortOperation::new(
            self.allocation.ports.clone(),
            self.services.clone(),
            self.allocation.node_ports.clone(),
            dry_run,
        );
        let result = match change.run(new, old.as_ref()).await {
            Ok(()) => nodeports::allocate(new, old.as_ref(), &mut ports),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            ports.finish(false);
            change.finish(false).await;
            return Err(error);
        }
        // Where this is dropped, nobody knows how the write ended: what was taken is left to the repair.
        Ok(Box::new(move |success| {
            Box::pin(async move {
                ports.finish(success);
                change.finish(success).await;
            })
        }))
    }
}

impl Lifecycle for Allocators {
    fn begin<'a>(&'a self, new: &'a mut Value, old: Option<&'a Value>, dry_run: bool) -> LifecycleFuture<'a> {
        Box::pin(self.run(new, old, dry_run))
    }

    fn after_delete<'a>(&'a self, object: &'a Value) -> Released<'a> {
        Box::pin(async move {
            let mut gone = object.clone();
            default_on_read(&mut gone, self.default_family());
            self.allocation.ports.release(ports::of_deleted(&gone));
            if view::takes_address(&gone) {
                for ip in cluster_ips(&gone).into_iter().filter_map(crate::api::ip::parse_ip) {
                    self.allocation.addresses.release(ip).await;
                }
            }
        })
    }
}

/// A refusal of the Service as a whole.
fn invalid(service: &Value, errors: ErrorList) -> ApiError {
    ApiError::invalid("", "Service", Meta::of(service).name(), &errors)
}

fn invalid_one(service: &Value, error: FieldError) -> ApiError {
    invalid(service, ErrorList::from_iter([error]))
}

/// Fills what Services that were stored by older servers lack, so that every Service looks the same.
pub fn default_on_read(service: &mut Value, default_family: Family) {
    normalise_cluster_ips(service, None);
    if is_external_name(service) {
        spec(service).remove("internalTrafficPolicy");
        return;
    }
    if !service.array_at(&["spec", "ipFamilies"]).is_empty() {
        return;
    }
    let (policy, families) = if text(service, "clusterIP") == NONE {
        // Without a selector nobody knows what addresses there are behind it: both kinds.
        match view::has_selector(service) {
            false => ("RequireDualStack", vec![default_family, default_family.other()]),
            true => ("SingleStack", vec![default_family]),
        }
    } else {
        let families: Vec<Family> = cluster_ips(service).into_iter().map(Family::of_text).collect();
        (if families.len() > 1 { "RequireDualStack" } else { "SingleStack" }, families)
    };
    if !families.is_empty() {
        spec(service).insert("ipFamilyPolicy", policy);
        set_families(service, &families);
    }
}

fn set_families(service: &mut Value, families: &[Family]) {
    let names: Vec<&str> = families.iter().map(|family| family.as_str()).collect();
    spec(service).insert("ipFamilies", names);
}

/// Brings `clusterIPs` in line with `clusterIP` for clients that know but one of them.
fn normalise_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let one = text(new, "clusterIP").to_owned();
    let Some(old) = old else {
        if !one.is_empty() && cluster_ips(new).is_empty() {
            spec(new).insert("clusterIPs", vec![one]);
        }
        return;
    };
    let same_one = text(old, "clusterIP") == one;
    if !cluster_ips(old).is_empty() && cluster_ips(new).is_empty() && same_one {
        spec(new).insert("clusterIPs", view::shown(old, "clusterIPs"));
    }
    if same_one || !view::same_list(old, new, "clusterIPs") {
        return;
    }
    if one.is_empty() {
        spec(new).remove("clusterIPs");
    } else {
        spec(new).insert("clusterIPs", vec![one]);
    }
}

/// Puts back what the server had given and the client left out, so that the same manifest can be applied again.
fn patch_allocated_values(new: &mut Value, old: &Value) {
    if !is_external_name(old) && !is_external_name(new) {
        if text(new, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            spec(new).insert("clusterIP", text(old, "clusterIP"));
        }
        if cluster_ips(new).is_empty() && !cluster_ips(old).is_empty() {
            spec(new).insert("clusterIPs", view::shown(old, "clusterIPs"));
        }
    }
    nodeports::patch(new, old);
}
