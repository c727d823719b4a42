//! Congestion control based on a model of the path: its bandwidth and its delay.

mod chance;
mod filter;
pub mod v1;
pub mod v3;
