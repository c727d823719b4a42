//! Generates documentation from the sources.

mod algorithms;
#[cfg(feature = "command")]
mod causes;
pub mod hooks;
pub mod new;
pub mod pages;
pub mod readme;
mod results;
pub mod rfcs;
#[cfg(feature = "command")]
pub mod security;
mod unsafe_code;

use std::path::PathBuf;

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
