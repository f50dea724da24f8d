//! Mutating and validating admission.
