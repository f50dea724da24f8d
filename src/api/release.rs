//! Which Kubernetes this is, and which kenter: what `/version` and `kenter --version` say.

/// The release whose API is served.
pub const KUBERNETES_VERSION: &str = "v1.37.2";
pub const KUBERNETES_MAJOR: &str = "1";
pub const KUBERNETES_MINOR: &str = "37";

/// This program's own version, without "v".
pub const KENTER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Operating system and machine as Go names them.
pub fn platform() -> String {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{}/{machine}", std::env::consts::OS)
}

/// `kenter --version`.
pub fn line() -> String {
    format!("kenter v{KENTER_VERSION} (Kubernetes {KUBERNETES_VERSION})")
}

/// `kenter --version=raw`: apimachinery's version.Info as Go prints a struct, which is what tools parse. Commit and
/// build date of upstream are not ours to claim and stay empty.
pub fn raw() -> String {
    format!(
        "version.Info{{Major:{KUBERNETES_MAJOR:?}, Minor:{KUBERNETES_MINOR:?}, EmulationMajor:\"\", EmulationMinor:\"\", \
         MinCompatibilityMajor:\"\", MinCompatibilityMinor:\"\", GitVersion:{KUBERNETES_VERSION:?}, GitCommit:\"\", \
         GitTreeState:\"\", BuildDate:\"\", GoVersion:\"\", Compiler:\"rustc\", Platform:{:?}}}",
        platform()
    )
}

/// The document of `/version` (apimachinery `pkg/version` Info).
pub fn version_info() -> crate::object::Value {
    crate::json!({
        "major": KUBERNETES_MAJOR,
        "minor": KUBERNETES_MINOR,
        "emulationMajor": KUBERNETES_MAJOR,
        "emulationMinor": KUBERNETES_MINOR,
        "minCompatibilityMajor": KUBERNETES_MAJOR,
        "minCompatibilityMinor": "36",
        "gitVersion": KUBERNETES_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": (platform())
    })
}
