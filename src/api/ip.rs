//! IP addresses and CIDRs as Kubernetes reads them: the lenient parser that old fields are kept with (leading
//! zeros, IPv4-mapped IPv6) and the strict one, told apart so that validation can say what is wrong.
//!
//! Mirrors k8s.io/utils `net/parse.go` (Go's parser before 1.17) and Go's `net/netip`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, IPv4-mapped ones as IPv4; lenient about leading zeros. No zones, no surrounding space.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    match text.bytes().find(|b| matches!(b, b'.' | b':'))? {
        b'.' => parse_v4(text.as_bytes()).map(IpAddr::V4),
        _ => parse_v6(text.as_bytes()).map(unmapped),
    }
}

/// The same address as IPv4 where it is a mapped one.
fn unmapped(ip: Ipv6Addr) -> IpAddr {
    ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
}

/// An address as Go's netip reads it: no leading zeros, mapped addresses stay IPv6.
pub fn parse_ip_strict(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// An address and a prefix length, read leniently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// As written, IPv4-mapped addresses as IPv4.
    pub ip: IpAddr,
    /// The first address of the network.
    pub network: IpAddr,
    /// Of `network`'s family.
    pub prefix: u8,
    /// Bits in the mask as written: 32 or 128. 128 with an IPv4 `network` means that it was written as IPv6.
    pub mask_bits: u8,
}

impl Cidr {
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = match ip {
            IpAddr::V6(ip) => unmapped(ip),
            v4 => v4,
        };
        match (self.network, ip) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => masked_v4(ip, self.prefix) == net,
            (IpAddr::V6(net), IpAddr::V6(ip)) => masked_v6(ip, self.prefix) == net,
            _ => false,
        }
    }
}

/// `network/prefix`, canonical.
impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn masked_v4(ip: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(ip.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0))
}

fn masked_v6(ip: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits(ip.to_bits() & u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0))
}

/// A CIDR, lenient about leading zeros and bits beyond the prefix.
pub fn parse_cidr(text: &str) -> Option<Cidr> {
    let (address, length) = text.split_once('/')?;
    let prefix = u8::try_from(number(length.as_bytes(), 10).filter(|n| n.1.is_empty())?.0).ok()?;
    if let Some(ip) = parse_v4(address.as_bytes()) {
        let network = IpAddr::V4(masked_v4(ip, prefix));
        return (prefix <= 32).then_some(Cidr { ip: ip.into(), network, prefix, mask_bits: 32 });
    }
    let ip = parse_v6(address.as_bytes()).filter(|_| prefix <= 128)?;
    let network = unmapped(masked_v6(ip, prefix));
    // A mapped network is told as the IPv4 network it is.
    let shown = if network.is_ipv4() { prefix.saturating_sub(96) } else { prefix };
    Some(Cidr { ip: unmapped(ip), network, prefix: shown, mask_bits: 128 })
}

/// A prefix as Go's netip reads it: address, and length without leading zeros.
pub fn parse_cidr_strict(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.rsplit_once('/')?;
    let ip = parse_ip_strict(address)?;
    let fine = length == "0" || (length.bytes().all(|b| b.is_ascii_digit()) && !length.starts_with('0'));
    let prefix: u8 = length.parse().ok().filter(|_| fine)?;
    (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, prefix))
}

/// Whether `ip` has no bits beyond `prefix`.
pub fn is_masked(ip: IpAddr, prefix: u8) -> bool {
    match ip {
        IpAddr::V4(ip) => masked_v4(ip, prefix) == ip,
        IpAddr::V6(ip) => masked_v6(ip, prefix) == ip,
    }
}

/// Digits at the beginning, below 0xFFFFFF, and what follows them.
fn number(text: &[u8], radix: u32) -> Option<(u32, &[u8])> {
    let length = text.iter().position(|b| !char::from(*b).is_digit(radix)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    let mut value = 0;
    for digit in digits {
        value = value * radix + char::from(*digit).to_digit(radix)?;
        if value >= 0xff_ffff {
            return None;
        }
    }
    (length > 0).then_some((value, rest))
}

fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut rest = text;
    for (at, octet) in octets.iter_mut().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (value, after) = number(rest, 10)?;
        *octet = u8::try_from(value).ok()?;
        rest = after;
    }
    rest.is_empty().then(|| Ipv4Addr::from(octets))
}

fn parse_v6(text: &[u8]) -> Option<Ipv6Addr> {
    let mut bytes: Vec<u8> = Vec::with_capacity(16);
    let mut ellipsis = None;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(b"::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Some(Ipv6Addr::UNSPECIFIED);
        }
    }
    while bytes.len() < 16 {
        let (value, after) = number(rest, 16)?;
        if after.first() == Some(&b'.') {
            if (ellipsis.is_none() && bytes.len() != 12) || bytes.len() > 12 {
                return None;
            }
            bytes.extend(parse_v4(rest)?.octets());
            rest = &[];
            break;
        }
        bytes.extend(u16::try_from(value).ok()?.to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(b":").filter(|r| !r.is_empty())?;
        if let Some(after) = rest.strip_prefix(b":") {
            if ellipsis.replace(bytes.len()).is_some() {
                return None;
            }
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return None;
    }
    match ellipsis {
        // An ellipsis stands for at least one group.
        Some(at) if bytes.len() < 16 => {
            let missing = 16 - bytes.len();
            bytes.splice(at..at, std::iter::repeat_n(0, missing));
        }
        None if bytes.len() == 16 => {}
        _ => return None,
    }
    <[u8; 16]>::try_from(bytes).ok().map(Ipv6Addr::from)
}
