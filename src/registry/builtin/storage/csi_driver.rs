//! CSIDriver (kubernetes `pkg/registry/storage/csidriver`).

use crate::{object::Value, registry::builtin::kind::Own};

const TOKENS_IN_CONTEXT: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

pub struct CsiDriver;

impl Own for CsiDriver {
    /// Tokens that are asked for anew go where they may be logged, unless the driver takes them elsewhere.
    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let requests = |driver: &Value| driver.array_at(&["spec", "tokenRequests"]).to_vec();
        let asked = requests(new);
        let unset = new.at(&["spec", "serviceAccountTokenInSecrets"]).is_none_or(Value::is_null);
        if asked.is_empty() || !unset || old.is_some_and(|old| requests(old) == asked) {
            return Vec::new();
        }
        vec![TOKENS_IN_CONTEXT.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn drivers_that_get_tokens_are_warned_of_logs_once() {
        let asks = json!({"spec": {"tokenRequests": [{"audience": "a"}]}});
        assert_eq!(CsiDriver.warnings(&asks, None), [TOKENS_IN_CONTEXT]);
        assert!(CsiDriver.warnings(&asks, Some(&asks)).is_empty());
        assert_eq!(CsiDriver.warnings(&asks, Some(&json!({"spec": {}}))).len(), 1);
        let decided = json!({"spec": {"tokenRequests": [{"audience": "a"}], "serviceAccountTokenInSecrets": false}});
        assert!(CsiDriver.warnings(&decided, None).is_empty());
    }
}
