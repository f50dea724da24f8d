//! The names that options may speak of but do not know themselves: admission plugins, controllers, API groups.
//! Whoever reads options passes them in, from the tables of the modules that have them.

/// Known names.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In the fixed order in which they run.
    pub admission_plugins: Vec<PluginEntry>,
    pub controllers: Vec<ControllerEntry>,
    /// Every "group/version" there is, served by default or not; "/v1" is the core group's.
    pub api_versions: Vec<String>,
}

/// An admission plugin's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginEntry {
    pub name: String,
    pub on_by_default: bool,
    /// Whether it exists here. Enabling one by name that does not is refused, since it would weaken what the
    /// operator asked for.
    pub built: bool,
}

/// A controller's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerEntry {
    pub name: String,
    pub on_by_default: bool,
}
