//! Who a request is from and what it may do.
//!
//! - [`user`]: the identity that both halves talk about.
//! - [`authn`]: credentials of a request → a user; joined in upstream's order.
//! - [`authz`]: a user and a request's attributes → allowed, denied or no opinion; joined in configured order.
//! - [`impersonation`]: acting as somebody else, constrained or not.
//! - [`escalation`]: nobody grants what they do not hold.
//! - [`issuer`]: tokens of service accounts.
//! - [`review`]: the API kinds that ask these questions.
//!
//! Nothing here does I/O on a request's path: objects are read through the narrow reader
//! ([`crate::registry::reader`]), certificates were read when the generation was built.

pub mod authn;
pub mod authz;
pub mod build;
pub mod escalation;
pub mod impersonation;
pub mod issuer;
pub mod review;
#[cfg(test)]
pub mod testing;
pub mod user;

pub use authz::{Attributes, Authorizer, Decision, Verdict};
pub use user::{User, UserInfo};
