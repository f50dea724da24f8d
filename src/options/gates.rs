//! The feature gates of Kubernetes 1.37 with stage and default, as kube-apiserver's own registry has them.

use std::collections::BTreeMap;

use Stage::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Alpha,
    Beta,
    Ga,
    Deprecated,
}

/// One gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    pub name: &'static str,
    pub stage: Stage,
    pub default: bool,
    /// Only its default may be set.
    pub locked: bool,
    /// Gates that must be on where this one is.
    pub needs: &'static [&'static str],
}

impl Gate {
    const fn locked(mut self) -> Self {
        self.locked = true;
        self
    }
    const fn needs(mut self, needs: &'static [&'static str]) -> Self {
        self.needs = needs;
        self
    }
}

const fn gate(name: &'static str, stage: Stage, default: bool) -> Gate {
    Gate { name, stage, default, locked: false, needs: &[] }
}

/// Gates whose change kenter acts on. Setting another away from its default is accepted with a warning.
const HONOURED: &[&str] = &["CBORServingAndStorage"];

/// What setting some gates comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Every gate's effective value.
    pub gates: BTreeMap<String, bool>,
    /// Gate at fault, text as upstream's.
    pub errors: Vec<(String, String)>,
    /// Gates that were changed without effect here.
    pub without_effect: Vec<String>,
}

/// Every gate's name.
pub fn names() -> impl Iterator<Item = &'static str> {
    GATES.iter().map(|gate| gate.name)
}

/// Applies settings to the defaults, as component-base featuregate/feature_gate.go: AllAlpha and AllBeta move the
/// gates of their stage that are not set themselves.
pub fn resolve(settings: &BTreeMap<String, bool>) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, value) in settings {
        let Some(gate) = GATES.iter().find(|gate| gate.name == name) else {
            outcome.errors.push((name.clone(), format!("unrecognized feature gate: {name}")));
            continue;
        };
        if gate.locked && gate.default != *value {
            let text = format!("cannot set feature gate {name} to {value}, feature is locked to {}", gate.default);
            outcome.errors.push((name.clone(), text));
        } else if gate.default != *value && !HONOURED.contains(&gate.name) {
            outcome.without_effect.push(name.clone());
        }
    }
    let all_of = |stage| match stage {
        Alpha => settings.get("AllAlpha").copied(),
        Beta => settings.get("AllBeta").copied(),
        Ga | Deprecated => None,
    };
    for gate in GATES {
        let moved = if gate.locked { None } else { all_of(gate.stage) };
        let value = settings.get(gate.name).copied().or(moved).unwrap_or(gate.default);
        outcome.gates.insert(gate.name.to_owned(), value);
    }
    if outcome.errors.is_empty() {
        outcome.errors = unmet(&outcome.gates);
    }
    outcome
}

fn unmet(gates: &BTreeMap<String, bool>) -> Vec<(String, String)> {
    let on = |name: &str| gates.get(name).copied().unwrap_or(false);
    let enabled = GATES.iter().filter(|gate| on(gate.name));
    enabled
        .filter_map(|gate| {
            let missing: Vec<_> = gate.needs.iter().copied().filter(|name| !on(name)).collect();
            let text =
                format!("{} is enabled, but depends on features that are disabled: [{}]", gate.name, missing.join(" "));
            (!missing.is_empty()).then(|| (gate.name.to_owned(), text))
        })
        .collect()
}

#[rustfmt::skip]
const GATES: &[Gate] = &[
    gate("APIResponseCompression", Beta, true),
    gate("APIServerIdentity", Beta, true),
    gate("APIServerWebhookAuthenticationToken", Alpha, false),
    gate("APIServingWithRoutine", Alpha, false),
    gate("AggregatedDiscoveryRemoveBetaType", Deprecated, true).locked(),
    gate("AllAlpha", Alpha, false),
    gate("AllBeta", Beta, false),
    gate("AllowDNSOnlyNodeCSR", Deprecated, false),
    gate("AllowInsecureKubeletCertificateSigningRequests", Deprecated, false),
    gate("AllowOverwriteTerminationGracePeriodSeconds", Deprecated, false).locked(),
    gate("AllowParsingUserUIDFromCertAuth", Beta, true),
    gate("AllowServiceExternalIPs", Ga, true),
    gate("AllowUnsafeMalformedObjectDeletion", Beta, true),
    gate("AtomicFIFO", Beta, true),
    gate("AtomicWriteVolumeUserFields", Alpha, false),
    gate("AuthorizePodWebsocketUpgradeCreatePermission", Beta, true),
    gate("CBORServingAndStorage", Alpha, false),
    gate("CPUManagerPolicyAlphaOptions", Alpha, false),
    gate("CPUManagerPolicyBetaOptions", Beta, true),
    gate("CPUManagerPolicyOptions", Ga, true).locked(),
    gate("CRDObservedGenerationTracking", Beta, true),
    gate("CRDValidationRatcheting", Ga, true).locked(),
    gate("CRIListStreaming", Alpha, false),
    gate("CSIServiceAccountTokenSecrets", Ga, true).locked(),
    gate("CSIVolumeHealth", Alpha, false),
    gate("ChangeContainerStatusOnKubeletRestart", Deprecated, false),
    gate("ClearingNominatedNodeNameAfterBinding", Beta, true),
    gate("ClientsAllowCARotation", Beta, true),
    gate("ClientsAllowCBOR", Alpha, false),
    gate("ClientsAllowTLSCacheGC", Beta, true),
    gate("ClientsPreferCBOR", Alpha, false),
    gate("CloudControllerManagerWatchBasedRoutesReconciliation", Alpha, false),
    gate("CloudControllerManagerWebhook", Alpha, false),
    gate("ClusterTrustBundle", Ga, true),
    gate("ClusterTrustBundleProjection", Ga, true).needs(&["ClusterTrustBundle"]),
    gate("ComponentFlagz", Beta, true),
    gate("ComponentStatusz", Beta, true),
    gate("CompositePodGroup", Alpha, false).needs(&["GenericWorkload", "TopologyAwareWorkloadScheduling"]),
    gate("ConcurrentWatchObjectDecode", Beta, true),
    gate("ConsistentListFromCacheSkipTimeoutFallback", Alpha, false),
    gate("ConstrainedImpersonation", Beta, true),
    gate("ContainerCheckpoint", Beta, true),
    gate("ContainerRestartRules", Beta, true),
    gate("ContainerStopSignals", Alpha, false),
    gate("ContextualLogging", Beta, true),
    gate("ControllerManagerReleaseLeaderElectionLockOnExit", Alpha, false),
    gate("CoordinatedLeaderElection", Beta, false),
    gate("CrossNamespaceVolumeDataSource", Alpha, false),
    gate("CustomCPUCFSQuotaPeriod", Ga, true),
    gate("CustomResourceFieldSelectors", Ga, true).locked(),
    gate("DRAAdminAccess", Ga, true).locked().needs(&["DynamicResourceAllocation"]),
    gate("DRAConsumableCapacity", Beta, true).needs(&["DynamicResourceAllocation"]),
    gate("DRADerivedAttributes", Alpha, false).needs(&["DynamicResourceAllocation"]),
    gate("DRADeviceBindingConditions", Beta, true).needs(&["DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"]),
    gate("DRADeviceCompatibilityGroups", Alpha, false).needs(&["DRAPartitionableDevices", "DynamicResourceAllocation"]),
    gate("DRADeviceTaintRules", Ga, true).needs(&["DRADeviceTaints"]),
    gate("DRADeviceTaints", Ga, true).needs(&["DynamicResourceAllocation"]),
    gate("DRAExtendedResource", Ga, true).locked().needs(&["DynamicResourceAllocation"]),
    gate("DRAFractionalCapacityRange", Beta, false).needs(&["DRAConsumableCapacity"]),
    gate("DRAListTypeAttributes", Alpha, false).needs(&["DynamicResourceAllocation"]),
    gate("DRANodeAllocatableResources", Alpha, false).needs(&["DynamicResourceAllocation"]),
    gate("DRAOptionalNodeOperations", Alpha, false).needs(&["DynamicResourceAllocation", "NodeDeclaredFeatures"]),
    gate("DRAPartitionableDevices", Beta, true).needs(&["DynamicResourceAllocation"]),
    gate("DRAPartitionableDevicesType", Alpha, false).needs(&["DRAPartitionableDevices", "DRAResourcePoolStatus", "DynamicResourceAllocation"]),
    gate("DRAPrioritizedList", Ga, true).locked().needs(&["DynamicResourceAllocation"]),
    gate("DRAResourceClaimDeviceStatus", Ga, true).locked(),
    gate("DRAResourceClaimGranularStatusAuthorization", Beta, true).needs(&["DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"]),
    gate("DRAResourcePoolStatus", Alpha, false).needs(&["DynamicResourceAllocation"]),
    gate("DRASchedulerFilterTimeout", Beta, true).needs(&["DynamicResourceAllocation"]),
    gate("DRAWorkloadResourceClaims", Beta, false).needs(&["DynamicResourceAllocation", "GenericWorkload"]),
    gate("DeclarativeValidation", Ga, true).locked(),
    gate("DeclarativeValidationBeta", Beta, true).needs(&["DeclarativeValidation"]),
    gate("DeclarativeValidationTakeover", Deprecated, false).locked().needs(&["DeclarativeValidation"]),
    gate("DefaultPodSysctls", Alpha, false),
    gate("DeploymentReplicaSetTerminatingReplicas", Beta, true),
    gate("DetectCacheInconsistency", Beta, true),
    gate("DisableAllocatorDualWrite", Ga, true).locked().needs(&["MultiCIDRServiceAllocator"]),
    gate("DisableCPUQuotaWithExclusiveCPUs", Deprecated, true).locked(),
    gate("DisableNodeKubeProxyVersion", Deprecated, true).locked(),
    gate("DynamicResourceAllocation", Ga, true).locked(),
    gate("EmptyDirVolumeMode", Alpha, false),
    gate("EnvFiles", Beta, true),
    gate("EtcdRangeStream", Beta, true),
    gate("EventedPLEG", Alpha, false).needs(&["PLEGOnDemandRelist"]),
    gate("EvictionRequestAPI", Alpha, false),
    gate("ExcludeAdmissionWebhookVirtualResources", Beta, true),
    gate("ExecProbeTimeout", Ga, true).locked(),
    gate("ExtendWebSocketsToKubelet", Beta, true).needs(&["NodeDeclaredFeatures"]),
    gate("ExternalServiceAccountTokenSigner", Ga, true).locked(),
    gate("GRPCContainerProbeTLS", Alpha, false),
    gate("GenericWorkload", Beta, false),
    gate("GitRepoVolumeDriver", Deprecated, false).locked(),
    gate("GracefulNodeShutdown", Beta, true),
    gate("GracefulNodeShutdownBasedOnPodPriority", Beta, true).needs(&["GracefulNodeShutdown"]),
    gate("H2CContainerProbe", Alpha, false).needs(&["NodeDeclaredFeatures"]),
    gate("HPAConfigurableTolerance", Ga, true).locked(),
    gate("HPAGeneration", Beta, true),
    gate("HPAOptimizedSelectorStore", Beta, true),
    gate("HPAScaleToZero", Beta, true),
    gate("HostnameOverride", Ga, true).locked(),
    gate("HugepageAwareEviction", Beta, true),
    gate("ImageMaximumGCAge", Ga, true).locked(),
    gate("ImageVolume", Ga, true).locked(),
    gate("ImageVolumeWithDigest", Alpha, false).needs(&["ImageVolume"]),
    gate("InOrderInformers", Ga, true).locked(),
    gate("InOrderInformersBatchProcess", Beta, true),
    gate("InPlacePodLevelResourcesVerticalScaling", Beta, true).needs(&["InPlacePodVerticalScaling", "NodeDeclaredFeatures", "PodLevelResources"]),
    gate("InPlacePodVerticalScaling", Ga, true).locked(),
    gate("InPlacePodVerticalScalingExclusiveCPUs", Alpha, false).needs(&["InPlacePodVerticalScaling"]),
    gate("InPlacePodVerticalScalingExclusiveMemory", Alpha, false).needs(&["InPlacePodVerticalScaling"]),
    gate("InPlacePodVerticalScalingInitContainers", Ga, true).locked().needs(&["InPlacePodVerticalScaling", "NodeDeclaredFeatures"]),
    gate("InPlacePodVerticalScalingMemoryBackedVolumes", Alpha, false).needs(&["InPlacePodVerticalScaling", "NodeDeclaredFeatures"]),
    gate("InPlacePodVerticalScalingSchedulerPreemption", Alpha, false).needs(&["InPlacePodVerticalScaling"]),
    gate("InformerResourceVersion", Ga, true),
    gate("InterPodAffinityHostnameFastPath", Alpha, false),
    gate("JobManagedBy", Ga, true).locked(),
    gate("KMSv1", Deprecated, false),
    gate("KubeProxyIPVS", Deprecated, true),
    gate("KubeProxyNFTablesLocalhostNodePorts", Alpha, false),
    gate("KubeletAllocatedPodsEndpoint", Alpha, false).needs(&["InPlacePodVerticalScaling"]),
    gate("KubeletCgroupDriverFromCRI", Ga, true).locked(),
    gate("KubeletCrashLoopBackOffMax", Beta, true),
    gate("KubeletEnsureSecretPulledImages", Beta, true),
    gate("KubeletFineGrainedAuthz", Ga, true).locked(),
    gate("KubeletInUserNamespace", Beta, true),
    gate("KubeletPSI", Ga, true).locked(),
    gate("KubeletPodResourcesDynamicResources", Ga, true).locked(),
    gate("KubeletPodResourcesGet", Ga, true).locked(),
    gate("KubeletPodResourcesListUseActivePods", Deprecated, true),
    gate("KubeletRegistrationGetOnExistsOnly", Deprecated, false),
    gate("KubeletSeparateDiskGC", Beta, true),
    gate("KubeletServiceAccountTokenForCredentialProviders", Beta, true),
    gate("KubeletTracing", Ga, true).locked(),
    gate("ListFromCacheSnapshot", Beta, true),
    gate("LocalStorageCapacityIsolationFSQuotaMonitoring", Beta, false),
    gate("LoggingAlphaOptions", Alpha, false),
    gate("LoggingBetaOptions", Beta, true),
    gate("ManifestBasedAdmissionControlConfig", Beta, true),
    gate("MatchLabelKeysInPodAffinity", Ga, true).locked(),
    gate("MatchLabelKeysInPodTopologySpread", Beta, true),
    gate("MatchLabelKeysInPodTopologySpreadSelectorMerge", Beta, true).needs(&["MatchLabelKeysInPodTopologySpread"]),
    gate("MaxUnavailableStatefulSet", Beta, true),
    gate("MemoryQoS", Beta, true),
    gate("MultiCIDRServiceAllocator", Ga, true).locked(),
    gate("MutableCSINodeAllocatableCount", Ga, true).locked(),
    gate("MutablePVNodeAffinity", Alpha, false),
    gate("MutablePodResourcesForSuspendedJobs", Beta, true),
    gate("MutableSchedulingDirectivesForSuspendedJobs", Beta, true),
    gate("MutatingAdmissionPolicy", Ga, true),
    gate("NFTablesNetlink", Beta, true),
    gate("NFTablesProxyMode", Ga, true).locked(),
    gate("NativeHistograms", Beta, true),
    gate("NodeControllerLeaseCircuitBreaker", Beta, true).needs(&["AtomicFIFO"]),
    gate("NodeDeclaredFeatures", Ga, true).locked(),
    gate("NodeInclusionPolicyInPodTopologySpread", Ga, true).locked(),
    gate("NodeLifecycleConditions", Alpha, false),
    gate("NodeLogQuery", Ga, true).locked(),
    gate("NodeSwap", Ga, true).locked(),
    gate("NominatedNodeNameForExpectation", Beta, true),
    gate("OpenAPIEnums", Beta, true),
    gate("OpportunisticBatching", Beta, true),
    gate("PLEGOnDemandRelist", Ga, true).locked(),
    gate("PersistentVolumeClaimUnusedSinceTime", Beta, true),
    gate("PodAndContainerStatsFromCRI", Beta, false),
    gate("PodCertificateRequest", Ga, true),
    gate("PodDeletionCost", Beta, true),
    gate("PodGroupPreemptionPolicy", Alpha, false).needs(&["GenericWorkload"]),
    gate("PodLevelResourceManagers", Beta, false).needs(&["PodLevelResources"]),
    gate("PodLevelResources", Beta, true),
    gate("PodLevelResourcesFixDefaulting", Beta, true).needs(&["PodLevelResources"]),
    gate("PodLevelResourcesFixKubeletQOSClass", Beta, true).needs(&["PodLevelResources"]),
    gate("PodLogsQuerySplitStreams", Alpha, false),
    gate("PodObservedGenerationTracking", Ga, true).locked(),
    gate("PodReadyToStartContainersCondition", Ga, true).locked(),
    gate("PodSchedulingReadiness", Ga, true).locked(),
    gate("PodTopologyLabelsAdmission", Beta, true),
    gate("PodsAPI", Beta, true),
    gate("PortForwardWebsockets", Beta, true),
    gate("PreferSameTrafficDistribution", Ga, true).locked(),
    gate("ProcMountType", Ga, true).locked().needs(&["UserNamespacesSupport"]),
    gate("QOSReserved", Alpha, false),
    gate("RecoverVolumeExpansionFailure", Ga, true).locked(),
    gate("RecursiveReadOnlyMounts", Ga, true).locked(),
    gate("ReduceDefaultCrashLoopBackOffDecay", Alpha, false),
    gate("RelaxedEnvironmentVariableValidation", Ga, true).locked(),
    gate("RelaxedServiceNameValidation", Ga, true).locked(),
    gate("ReloadKubeletClientCAFile", Beta, true),
    gate("ReloadKubeletServerCertificateFile", Beta, true),
    gate("RemoteRequestHeaderUID", Beta, true),
    gate("ResourceHealthStatus", Beta, true).needs(&["DynamicResourceAllocation"]),
    gate("ResourceHealthStatusMessage", Beta, true).needs(&["ResourceHealthStatus"]),
    gate("RestartAllContainersOnContainerExits", Beta, true).needs(&["ContainerRestartRules", "NodeDeclaredFeatures"]),
    gate("RotateKubeletServerCertificate", Beta, true),
    gate("RuntimeClassInImageCriApi", Alpha, false),
    gate("SELinuxChangePolicy", Ga, true).locked(),
    gate("SELinuxMount", Ga, true),
    gate("SELinuxMountReadWriteOncePod", Ga, true).locked(),
    gate("SchedulerAsyncAPICalls", Beta, false),
    gate("SchedulerAsyncPreemption", Beta, true),
    gate("SchedulerPopFromBackoffQ", Beta, true),
    gate("SchedulerPreQueueingHints", Alpha, false),
    gate("SeparateCacheWatchRPC", Deprecated, false).locked(),
    gate("SeparateTaintEvictionController", Ga, true).locked(),
    gate("ServiceAccountNodeAudienceRestriction", Beta, true),
    gate("ServiceAccountTokenJTI", Ga, true).locked(),
    gate("ServiceAccountTokenNodeBinding", Ga, true).locked().needs(&["ServiceAccountTokenNodeBindingValidation"]),
    gate("ServiceAccountTokenNodeBindingValidation", Ga, true).locked(),
    gate("ServiceAccountTokenPodNodeInfo", Ga, true).locked(),
    gate("ServiceCIDRStatusFieldWiping", Deprecated, true),
    gate("ShardedListAndWatch", Alpha, false),
    gate("SizeBasedListCostEstimate", Beta, true),
    gate("StaleControllerConsistencyDaemonSet", Beta, true).needs(&["AtomicFIFO"]),
    gate("StaleControllerConsistencyHPA", Beta, true).needs(&["AtomicFIFO"]),
    gate("StaleControllerConsistencyJob", Beta, true).needs(&["AtomicFIFO"]),
    gate("StaleControllerConsistencyReplicaSet", Beta, true).needs(&["AtomicFIFO"]),
    gate("StaleControllerConsistencyStatefulSet", Beta, true).needs(&["AtomicFIFO"]),
    gate("StatefulSetRecreateStrategy", Alpha, false),
    gate("StatefulSetSemanticRevisionComparison", Beta, true),
    gate("StorageCapacityScoring", Beta, true),
    gate("StorageNamespaceIndex", Deprecated, true),
    gate("StorageVersionAPI", Alpha, false).needs(&["APIServerIdentity"]),
    gate("StorageVersionHash", Beta, true),
    gate("StorageVersionMigrator", Ga, true),
    gate("StrictIPCIDRValidation", Beta, true),
    gate("StructuredAuthenticationConfigurationEgressSelector", Beta, true),
    gate("StructuredAuthenticationConfigurationJWKSMetrics", Beta, true),
    gate("SupplementalGroupsPolicy", Ga, true).locked(),
    gate("SystemdWatchdog", Ga, true).locked(),
    gate("TaintTolerationComparisonOperators", Alpha, false),
    gate("TokenRequestServiceAccountUIDValidation", Beta, true),
    gate("TopologyAwareWorkloadScheduling", Alpha, false).needs(&["GenericWorkload"]),
    gate("TopologyManagerPolicyAlphaOptions", Alpha, false),
    gate("TopologyManagerPolicyBetaOptions", Beta, true),
    gate("TopologyManagerPolicyOptions", Ga, true).locked(),
    gate("TranslateStreamCloseWebsocketRequests", Beta, true),
    gate("UnauthenticatedHTTP2DOSMitigation", Beta, true),
    gate("UnknownVersionInteroperabilityProxy", Beta, true).needs(&["APIServerIdentity"]),
    gate("UnlockWhileProcessingFIFO", Beta, true),
    gate("UserNamespacesHostNetworkSupport", Alpha, false).needs(&["NodeDeclaredFeatures", "UserNamespacesSupport"]),
    gate("UserNamespacesSupport", Ga, true).locked(),
    gate("VolumeAttributesClass", Ga, true).locked(),
    gate("VolumeBindMountOptions", Alpha, false),
    gate("VolumeLimitScaling", Beta, true),
    gate("WatchCacheInitializationPostStartHook", Ga, true).locked(),
    gate("WatchList", Beta, true),
    gate("WatchListClient", Beta, true),
    gate("WatchListCompression", Beta, true),
    gate("WebhookRoundTripLoadBalancing", Beta, true),
    gate("WinDSR", Ga, true).locked(),
    gate("WinOverlay", Ga, true).locked(),
    gate("WindowsCPUAndMemoryAffinity", Alpha, false),
    gate("WindowsGracefulNodeShutdown", Beta, true).needs(&["GracefulNodeShutdown"]),
    gate("WindowsHostNetwork", Deprecated, false),
    gate("WorkloadWithJob", Alpha, false).needs(&["GenericWorkload"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &[(&str, bool)]) -> Outcome {
        resolve(&settings.iter().map(|(name, value)| (name.to_string(), *value)).collect())
    }
    fn error(settings: &[(&str, bool)]) -> String {
        set(settings).errors.remove(0).1
    }

    #[test]
    fn defaults_need_nothing_and_mean_themselves() {
        let outcome = set(&[]);
        assert_eq!(outcome.errors, []);
        assert_eq!(outcome.gates.len(), GATES.len());
        assert!(GATES.iter().all(|gate| outcome.gates[gate.name] == gate.default));
    }

    #[test]
    fn errors_are_those_of_upstream() {
        assert_eq!(error(&[("Nonesuch", true)]), "unrecognized feature gate: Nonesuch");
        let locked = GATES.iter().find(|gate| gate.locked).unwrap();
        assert_eq!(
            error(&[(locked.name, !locked.default)]),
            format!(
                "cannot set feature gate {} to {}, feature is locked to {}",
                locked.name, !locked.default, locked.default
            )
        );
        let needing = GATES.iter().find(|gate| gate.name == "CompositePodGroup").unwrap();
        assert_eq!(
            error(&[(needing.name, true)]),
            "CompositePodGroup is enabled, but depends on features that are disabled: \
             [GenericWorkload TopologyAwareWorkloadScheduling]"
        );
    }

    #[test]
    fn all_alpha_moves_alpha_gates_that_are_not_set_themselves() {
        let alpha = GATES.iter().find(|gate| gate.stage == Alpha && !gate.locked && gate.name != "AllAlpha").unwrap();
        let gates = set(&[("AllAlpha", true), ("AllBeta", true)]).gates;
        assert!(gates[alpha.name]);
        assert!(!set(&[("AllAlpha", true), (alpha.name, false)]).gates[alpha.name]);
    }
}
