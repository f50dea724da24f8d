//! The table of built-in kinds.

use std::sync::OnceLock;

use super::Table;

/// The table of all built-in kinds, read once on first use. Registers all field names as static keys.
pub fn builtin() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(Table::new)
}
