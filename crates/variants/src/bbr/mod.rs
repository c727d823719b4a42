//! Congestion control based on a model of the path: its bandwidth and its delay.

mod chance;
mod filter;
pub mod v1;
pub mod v3;

use crate::variant::Variant;

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[v1::variant::VARIANT, v3::variant::VARIANT];
