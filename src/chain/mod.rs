
pub mod dialer;
