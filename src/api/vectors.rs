//! The words against what upstream's code said, case by case.
