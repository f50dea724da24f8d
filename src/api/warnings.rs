//! Texts that a request's answer carries beside its result.

use std::sync::{Arc, Mutex, PoisonError};

/// More are not kept: an answer's headers have no room for as many.
const MOST: usize = 5_000;

/// Warnings for the client, each text once. Shared with whatever runs below the endpoint.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MOST && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.add(text);
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
