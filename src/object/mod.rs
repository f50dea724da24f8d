//! The document tree that writes are made on: parse, print, paths, numbers that stay exact.
//!
//! Members of an object are kept sorted by key and unique, so that equality, printing and merging are
//! deterministic and a look-up is a binary search. Integers stay integers as long as they fit 64 signed bits;
//! everything else is a double, as in Go. Nothing here does I/O or knows a kind.

mod key;
mod map;
mod parse;
mod path;
mod print;
mod quote;
mod value;
pub mod yaml;

pub use key::{Key, register_static_keys, static_keys};
pub use map::Map;
pub use parse::{DEEP_STACK, JsonError, MAX_DEPTH, Parsed, parse, parse_reporting_duplicates, parse_without};
pub use path::{FieldPath, Room, Step};
pub use print::{Style, escape_into, print_float, to_string, to_vec, write_json, write_json_ranked};
pub use quote::{is_printable, quote};
pub use value::Value;
