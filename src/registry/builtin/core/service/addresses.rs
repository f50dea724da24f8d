//! Cluster IPs out of the ServiceCIDRs (kubernetes `pkg/registry/core/service/ipallocator`).
//!
//! An address is taken when its `IPAddress` object is made, so several servers over one store never take the same. What
//! is free is guessed from the cache; who guesses wrong tries the next.

use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    pin::Pin,
    sync::Arc,
};

use ipnet::IpNet;

use super::view::Family;
use crate::{
    api::{Meta, unique},
    object::Value,
    registry::reader::ObjectReader,
};

const NETWORKING: &str = "networking.k8s.io";

/// Why an `IPAddress` could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimError {
    Taken,
    /// In the words of whoever refused.
    Other(String),
}

pub type AddressFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes and removes `IPAddress` objects, as any client would.
pub trait Addresses: Send + Sync {
    /// Makes the object of `ip` for a Service.
    fn claim<'a>(&'a self, ip: IpAddr, namespace: &'a str, name: &'a str) -> AddressFuture<'a, Result<(), ClaimError>>;

    /// Removes it; one that is gone already is fine.
    fn release(&self, ip: IpAddr) -> AddressFuture<'_, ()>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    Full,
    Taken,
    /// No ServiceCIDR holds the address.
    Mismatched,
    NotReady,
    NotInRange(IpAddr, IpNet),
    Other(String),
}

impl std::fmt::Display for AddressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("range is full"),
            Self::Taken => f.write_str("provided IP is already allocated"),
            Self::Mismatched => f.write_str("the provided network does not match the current range"),
            Self::NotReady => f.write_str("allocator not ready"),
            Self::NotInRange(ip, net) => {
                write!(f, "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {net}")
            }
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl From<ClaimError> for AddressError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Taken => Self::Taken,
            ClaimError::Other(why) => Self::Other(why),
        }
    }
}

/// Whether a Service may have this address of the network: not its first, and not the last of an IPv4 one.
pub fn contains(net: &IpNet, ip: IpAddr) -> bool {
    ip != net.network() && !(ip.is_ipv4() && ip == net.broadcast()) && net.contains(&ip)
}

/// The addresses of one network that can be taken, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub net: IpNet,
    first: u128,
    last: u128,
    /// How many at the beginning are left for those who ask for an address.
    band: u64,
}

impl Range {
    /// `None`: too large a network (IPv6 shorter than /64), or one without a usable address.
    pub fn of(net: IpNet) -> Option<Self> {
        let bits = net.max_prefix_len() - net.prefix_len();
        if bits > 64 {
            return None;
        }
        let first = to_number(net.network()) + 1;
        let last = to_number(net.broadcast()) - u128::from(net.addr().is_ipv4());
        let band = match 1u128 << bits {
            ..=16 => 0,
            size => (size / 16).clamp(16, 256) as u64,
        };
        (first <= last).then_some(Self { net, first, last, band })
    }

    fn family(&self) -> Family {
        Family::of(self.net.addr())
    }

    fn ip(&self, number: u128) -> IpAddr {
        match self.family() {
            Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(number)),
        }
    }

    /// All addresses from a random one on: the upper part first.
    fn starting_anywhere(&self) -> impl Iterator<Item = IpAddr> {
        let middle = self.first + u128::from(self.band);
        let low = (self.band > 0).then(|| (self.first, middle - 1));
        let range = *self;
        [Some((middle, self.last)), low].into_iter().flatten().flat_map(anywhere).map(move |number| range.ip(number))
    }
}

/// The numbers of a part, both ends included, from a random one on.
fn anywhere((low, high): (u128, u128)) -> impl Iterator<Item = u128> {
    let size = u64::try_from(high.saturating_sub(low)).unwrap_or(u64::MAX).saturating_add(1);
    let start = low + u128::from(unique::below(size));
    (start..=high).chain(low..start)
}

fn to_number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// A ServiceCIDR's network, and whether addresses may be taken from it.
struct Network {
    net: IpNet,
    ready: bool,
}

/// Takes addresses for one write.
pub struct AddressPool {
    pub reader: Arc<dyn ObjectReader>,
    pub addresses: Arc<dyn Addresses>,
}

impl AddressPool {
    fn networks(&self, family: Family) -> Vec<Network> {
        let of = |cidr: &Arc<Value>| {
            let ready = is_ready(cidr);
            let nets = cidr.array_at(&["spec", "cidrs"]).iter().filter_map(|it| it.as_str()?.parse::<IpNet>().ok());
            nets.map(|net| Network { net: net.trunc(), ready }).collect::<Vec<_>>()
        };
        let all = self.reader.list(NETWORKING, "servicecidrs", None);
        let mut networks: Vec<Network> =
            all.iter().flat_map(of).filter(|it| Family::of(it.net.addr()) == family).collect();
        // A network that several objects name is ready when one of them is.
        networks.sort_by_key(|it| (it.net, !it.ready));
        networks.dedup_by_key(|it| it.net);
        networks
    }

    /// Takes this address.
    pub async fn take(&self, ip: IpAddr, namespace: &str, name: &str) -> Result<(), AddressError> {
        let networks = self.networks(Family::of(ip));
        if !networks.iter().any(|it| it.ready && contains(&it.net, ip)) {
            return Err(AddressError::Mismatched);
        }
        Ok(self.addresses.claim(ip, namespace, name).await?)
    }

    /// Takes any address of a family.
    pub async fn take_any(&self, family: Family, namespace: &str, name: &str) -> Result<IpAddr, AddressError> {
        for network in self.networks(family).iter().filter(|it| it.ready) {
            let Some(range) = Range::of(network.net) else { continue };
            let free = |ip: &IpAddr| self.reader.get(NETWORKING, "ipaddresses", "", &ip.to_string()).is_none();
            for ip in range.starting_anywhere().filter(free) {
                match self.addresses.claim(ip, namespace, name).await {
                    Ok(()) => return Ok(ip),
                    // Somebody was quicker than the cache.
                    Err(ClaimError::Taken) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Err(AddressError::Full)
    }

    /// What a dry run finds wrong with an address that was asked for.
    pub fn check(&self, ip: IpAddr) -> Result<(), AddressError> {
        let networks = self.networks(Family::of(ip));
        let network = networks.iter().find(|it| contains(&it.net, ip)).or_else(|| networks.first());
        match network {
            Some(it) if !it.ready => Err(AddressError::NotReady),
            Some(it) if contains(&it.net, ip) => Ok(()),
            Some(it) => Err(AddressError::NotInRange(ip, it.net)),
            None => Err(AddressError::NotReady),
        }
    }

    /// What a dry run shows instead of an address: that of the network.
    pub fn any(&self, family: Family) -> Result<IpAddr, AddressError> {
        self.networks(family).iter().find(|it| it.ready).map(|it| it.net.network()).ok_or(AddressError::NotReady)
    }
}

/// Whether addresses may be taken: nobody said otherwise, and it is not being deleted.
fn is_ready(cidr: &Value) -> bool {
    let conditions = cidr.array_at(&["status", "conditions"]);
    let ready = conditions.iter().find(|it| it.str_at(&["type"]) == "Ready");
    ready.is_none_or(|it| it.str_at(&["status"]) == "True") && !Meta::of(cidr).is_being_deleted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(net: &str) -> Range {
        Range::of(net.parse().unwrap()).unwrap()
    }

    #[test]
    fn every_usable_address_comes_once_and_the_static_band_last() {
        let range = range("10.0.0.0/26");
        let all: Vec<IpAddr> = range.starting_anywhere().collect();
        assert_eq!(all.len(), 62);
        assert!(all[..46].iter().all(|ip| *ip > "10.0.0.16".parse::<IpAddr>().unwrap()), "{all:?}");
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), 62);
        assert!(!all.contains(&"10.0.0.0".parse().unwrap()) && !all.contains(&"10.0.0.63".parse().unwrap()));
    }

    #[test]
    fn ranges_have_upstreams_bands_and_limits() {
        assert_eq!(range("10.96.0.0/16").band, 256);
        assert_eq!(range("10.0.0.0/24").band, 16);
        assert_eq!(range("10.0.0.0/28").band, 0);
        assert_eq!(range("fd00::/64").band, 256);
        assert_eq!(range("fd00::/64").starting_anywhere().take(3).count(), 3);
        assert_eq!(Range::of("fd00::/63".parse().unwrap()), None);
        assert_eq!(Range::of("10.0.0.0/32".parse().unwrap()), None);
        assert!(contains(&"fd00::/120".parse().unwrap(), "fd00::ff".parse().unwrap()));
        assert!(!contains(&"10.0.0.0/24".parse().unwrap(), "10.0.0.255".parse().unwrap()));
    }
}
