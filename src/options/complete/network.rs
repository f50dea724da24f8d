//! `[network]`: addresses of the cluster and the ways to kubelets and aggregated servers.

use std::{net::IpAddr, ops::RangeInclusive};

use ipnet::IpNet;

use super::{Completer, secs};
use crate::options::{
    completed::{EndpointReconciler, Kubelet, Network, Serving},
    raw,
};

const DEFAULT_SERVICE_RANGE: &str = "10.0.0.0/24";
const ADDRESS_TYPES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

impl Completer<'_> {
    pub(super) fn network(&mut self, raw: &mut raw::Network, serving: &Serving) -> Network {
        let service_cluster_ip_range = self.service_ranges(raw);
        let service_node_port_range = self.node_ports(raw);
        let kubernetes_service_node_port = self.service_node_port(raw, &service_node_port_range);
        let endpoint_reconciler = self.endpoint_reconciler(raw);
        let advertise_address = self.advertise_address(raw, serving, endpoint_reconciler);
        self.families(&service_cluster_ip_range, advertise_address, endpoint_reconciler);
        let external_hostname = raw.external_hostname.get_or_insert_with(|| match advertise_address {
            Some(address) => address.to_string(),
            None => "localhost".to_owned(),
        });
        Network {
            service_cluster_ip_range,
            service_node_port_range,
            kubernetes_service_node_port,
            advertise_address,
            external_hostname: external_hostname.clone(),
            endpoint_reconciler,
            kubelet: self.kubelet(raw),
            proxy_client: self.cert_pair(
                ("network.proxy_client_cert_file", &raw.proxy_client_cert_file),
                ("network.proxy_client_key_file", &raw.proxy_client_key_file),
                "aggregator proxy client",
            ),
        }
    }

    /// kubernetes cmd/kube-apiserver/app/options: getServiceIPAndRanges and validateClusterIPFlags.
    fn service_ranges(&mut self, raw: &mut raw::Network) -> Vec<IpNet> {
        const KEY: &str = "network.service_cluster_ip_range";
        if raw.service_cluster_ip_range.as_ref().is_none_or(Vec::is_empty) {
            raw.service_cluster_ip_range = Some(vec![DEFAULT_SERVICE_RANGE.to_owned()]);
        }
        let texts = raw.service_cluster_ip_range.clone().unwrap_or_default();
        if texts.len() > 2 {
            self.problem(KEY, "--service-cluster-ip-range must not contain more than two entries");
        }
        let mut ranges = Vec::new();
        for (i, text) in texts.iter().take(2).enumerate() {
            let Ok(range) = text.trim().parse::<IpNet>() else {
                let what = if i == 0 { "a valid cidr" } else { "an ip net" };
                let problem = self.problem_about(KEY, format!("service-cluster-ip-range[{i}] is not {what}"));
                self.problems.push(problem.hint("an address and the length of its prefix, such as 10.0.0.0/24"));
                continue;
            };
            // kubernetes pkg/controlplane/apiserver: the range of the first must hold 8 addresses.
            if range.max_prefix_len() - range.prefix_len() < 3 && i == 0 {
                let reason = "error determining service IP ranges for primary service cidr: the service cluster IP range \
                              must be at least 8 IP addresses";
                self.problem(KEY, reason);
            }
            ranges.push(range.trunc());
        }
        if let [first, second] = ranges.as_slice()
            && first.addr().is_ipv4() == second.addr().is_ipv4()
        {
            let reason =
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family";
            self.problem(KEY, reason);
        }
        ranges
    }

    fn node_ports(&mut self, raw: &mut raw::Network) -> RangeInclusive<u16> {
        let text = raw.service_node_port_range.get_or_insert_with(|| "30000-32767".to_owned());
        let default = 30000..=32767;
        match port_range(text) {
            Ok(Some(range)) => range,
            Ok(None) => default,
            Err(reason) => {
                self.misfit("network.service_node_port_range", reason);
                default
            }
        }
    }

    fn service_node_port(&mut self, raw: &mut raw::Network, range: &RangeInclusive<u16>) -> u16 {
        const KEY: &str = "network.kubernetes_service_node_port";
        let port = *raw.kubernetes_service_node_port.get_or_insert(0);
        let valid = u16::try_from(port).ok();
        if valid.is_none() {
            let reason = format!(
                "--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. If 0, the Kubernetes \
                 master service will be of type ClusterIP"
            );
            self.problem(KEY, reason);
        }
        if port > 0 && !valid.is_some_and(|port| range.contains(&port)) {
            let (low, high) = (range.start(), range.end());
            let reason = format!("kubernetes service node port range {low}-{high} doesn't contain {port}");
            self.problem(KEY, reason);
        }
        valid.unwrap_or(0)
    }

    fn endpoint_reconciler(&mut self, raw: &mut raw::Network) -> EndpointReconciler {
        match raw.endpoint_reconciler_type.get_or_insert_with(|| "lease".to_owned()).as_str() {
            "lease" => EndpointReconciler::Lease,
            "master-count" => EndpointReconciler::MasterCount,
            "none" => EndpointReconciler::None,
            other => {
                let reason = format!("Reconciler not implemented: {other}");
                self.misfit("network.endpoint_reconciler_type", reason);
                EndpointReconciler::Lease
            }
        }
    }

    /// apimachinery pkg/util/net/interface.go ResolveBindAddress: the bind address unless others cannot reach it.
    fn advertise_address(
        &mut self,
        raw: &mut raw::Network,
        serving: &Serving,
        reconciler: EndpointReconciler,
    ) -> Option<IpAddr> {
        const KEY: &str = "network.advertise_address";
        if let Some(address) = raw.advertise_address {
            if address.is_loopback() && reconciler != EndpointReconciler::None {
                let reason = format!(
                    "cannot use public IP {address} with endpoint reconciler: <nil>: Invalid value: \"{address}\": may \
                     not be in the loopback range (127.0.0.0/8, ::1/128)"
                );
                self.problem(KEY, reason);
            }
            return Some(address);
        }
        let bound = serving.secure.iter().map(|address| address.ip());
        let mut reachable = bound.filter(|address| !address.is_unspecified() && !address.is_loopback());
        raw.advertise_address = reachable.next().or(self.invocation.host_address);
        if raw.advertise_address.is_none() && reconciler != EndpointReconciler::None {
            let text = "no network address to advertise was found: the kubernetes Service gets no endpoints until \
                        --advertise-address is set";
            self.warn(KEY, text);
        }
        raw.advertise_address
    }

    fn families(&mut self, ranges: &[IpNet], address: Option<IpAddr>, reconciler: EndpointReconciler) {
        if let (Some(range), Some(address)) = (ranges.first(), address)
            && reconciler != EndpointReconciler::None
            && range.addr().is_ipv4() != address.is_ipv4()
        {
            let reason = format!("service IP family \"{range}\" must match public address family \"{address}\"");
            self.problem("network.service_cluster_ip_range", reason);
        }
    }

    fn kubelet(&mut self, raw: &mut raw::Network) -> Kubelet {
        let types =
            raw.kubelet_preferred_address_types.get_or_insert_with(|| ADDRESS_TYPES.map(str::to_owned).to_vec());
        let preferred_address_types = types.clone();
        for word in preferred_address_types.iter().filter(|word| !ADDRESS_TYPES.contains(&word.as_str())) {
            self.warn("network.kubelet_preferred_address_types", format!("no node has an address of type {word:?}"));
        }
        let port = *raw.kubelet_port.get_or_insert(10250);
        if port == 0 {
            self.problem("network.kubelet_port", "must be between 1 and 65535");
        }
        let negative = "--kubelet-timeout can not be negative value";
        Kubelet {
            client: self.cert_pair(
                ("network.kubelet_client_certificate", &raw.kubelet_client_certificate),
                ("network.kubelet_client_key", &raw.kubelet_client_key),
                "kubelet client",
            ),
            certificate_authority: self
                .ca_bundle("network.kubelet_certificate_authority", &raw.kubelet_certificate_authority),
            preferred_address_types,
            timeout: self.duration("network.kubelet_timeout", &mut raw.kubelet_timeout, secs(5), negative),
            port,
        }
    }
}

/// apimachinery pkg/util/net/port_range.go: "from-to", "from+count" or one port; nothing is no range. Errors are
/// upstream's texts.
pub fn port_range(text: &str) -> Result<Option<RangeInclusive<u16>>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let number =
        |part: &str| part.parse::<i64>().map_err(|_| format!("strconv.Atoi: parsing {part:?}: invalid syntax"));
    let (low, high) = match (text.split_once('-'), text.split_once('+')) {
        (None, None) => (number(text)?, number(text)?),
        (Some((low, high)), None) => (number(low)?, number(high)?),
        (None, Some((low, count))) => {
            let low = number(low)?;
            (low, low.saturating_add(number(count)?))
        }
        (Some(_), Some(_)) => return Err(format!("unable to parse port range: {text}")),
    };
    if high < low {
        return Err(format!("end port cannot be less than start port: {text}"));
    }
    match (u16::try_from(low), u16::try_from(high)) {
        (Ok(low), Ok(high)) => Ok(Some(low..=high)),
        _ => Err(format!("the port range cannot be greater than 65535: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::port_range;

    #[test]
    fn port_ranges_are_read_as_upstream_reads_them() {
        assert_eq!(port_range("1-3"), Ok(Some(1..=3)));
        assert_eq!(port_range("1+3"), Ok(Some(1..=4)));
        assert_eq!(port_range("7"), Ok(Some(7..=7)));
        assert_eq!(port_range(""), Ok(None));
        assert_eq!(port_range("5-3").unwrap_err(), "end port cannot be less than start port: 5-3");
        assert_eq!(port_range("1-70000").unwrap_err(), "the port range cannot be greater than 65535: 1-70000");
        assert_eq!(port_range("1-2+3").unwrap_err(), "unable to parse port range: 1-2+3");
        assert_eq!(port_range("x").unwrap_err(), "strconv.Atoi: parsing \"x\": invalid syntax");
    }
}
