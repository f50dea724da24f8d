//! The layers, one file each. Their order and the reasons for it are in `stack.rs`.

mod access;
mod audit_id;
mod authentication;
mod authorization;
mod cache_control;
mod cors;
mod deadline;
mod goaway;
mod hsts;
mod impersonation;
mod in_flight;
mod info;
mod mux_complete;
mod panic_guard;
mod retry_after;
mod timeout;
mod wait_group;
mod warning_recorder;

pub use access::Access;
pub use audit_id::AuditId;
pub use authentication::Authentication;
pub use authorization::Authorization;
pub use cache_control::CacheControl;
pub use cors::Cors;
pub use deadline::Deadline;
pub use goaway::Goaway;
pub use hsts::Hsts;
pub use impersonation::Impersonation;
pub use in_flight::InFlight;
pub use info::Info;
pub use mux_complete::MuxComplete;
pub use panic_guard::PanicGuard;
pub use retry_after::RetryAfter;
pub use timeout::Timeout;
pub use wait_group::WaitGroup;
pub use warning_recorder::WarningRecorder;
