//! `[network]`

use std::net::IpAddr;

use crate::options::types::{FilePath, GoDuration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Addresses of the cluster, and the ways to kubelets and services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// One or two CIDRs that Service addresses are taken from, of different families if two.
    ///
    /// Range: at least 8 addresses each. Default: 10.0.0.0/24. Class: live. Mirrors
    /// --service-cluster-ip-range (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_cluster_ip_range: Option<Vec<String>>,
    /// Ports that Services of type NodePort are given.
    ///
    /// Range: "from-to", "from+count" or one port. Default: 30000-32767. Class: live. Mirrors --service-node-port-range
    /// (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_node_port_range: Option<String>,
    /// Node port of the `kubernetes` Service; 0 leaves it at type ClusterIP.
    ///
    /// Range: 0, or within `service_node_port_range`. Default: 0. Class: live. Mirrors --kubernetes-service-node-port
    /// (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_service_node_port: Option<i64>,
    /// The address in the endpoints of the `kubernetes` Service, at which other machines reach this server.
    ///
    /// Default: the bind address, unless it is unspecified or loopback; else the address of the default route's
    /// interface. Class: live. Mirrors --advertise-address (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertise_address: Option<IpAddr>,
    /// Host name in URLs that point back to this server.
    ///
    /// Default: the advertised address. Class: live. Mirrors --external-hostname (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_hostname: Option<String>,
    /// How the endpoints of the `kubernetes` Service are kept.
    ///
    /// Range: lease, master-count, none. Default: lease. Class: live. Mirrors --endpoint-reconciler-type (kubernetes pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_reconciler_type: Option<String>,
    /// PEM file with the certificate shown to kubelets.
    ///
    /// Default: unset. Class: live. Mirrors --kubelet-client-certificate (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_client_certificate: Option<FilePath>,
    /// PEM file with the private key of `kubelet_client_certificate`.
    ///
    /// Default: unset. Class: live. Mirrors --kubelet-client-key (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_client_key: Option<FilePath>,
    /// PEM bundle of the authorities that sign kubelets' serving certificates.
    ///
    /// Default: unset, they are not verified, as upstream. Class: live. Mirrors --kubelet-certificate-authority (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_certificate_authority: Option<FilePath>,
    /// Kinds of node address, most wanted first.
    ///
    /// Range: Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP. Default: those in this order. Class: live.
    /// Mirrors --kubelet-preferred-address-types (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_preferred_address_types: Option<Vec<String>>,
    /// Longest time for a kubelet to begin to answer.
    ///
    /// Unit: duration text. Default: 5s. Class: live. Mirrors --kubelet-timeout (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_timeout: Option<GoDuration>,
    /// Port of kubelets whose Node names none.
    ///
    /// Range: 1 to 65535. Default: 10250. Class: live. Mirrors the deprecated --kubelet-port (kubernetes cmd/kube-apiserver/app/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_port: Option<u16>,
    /// PEM file with the certificate shown to aggregated servers and webhooks.
    ///
    /// Default: unset. Class: live. Mirrors --proxy-client-cert-file (kubernetes pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_client_cert_file: Option<FilePath>,
    /// PEM file with the private key of `proxy_client_cert_file`.
    ///
    /// Default: unset. Class: live. Mirrors --proxy-client-key-file (kubernetes pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_client_key_file: Option<FilePath>,
}
