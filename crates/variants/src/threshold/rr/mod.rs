//! RR-TCP: the threshold depends on measured reordering lengths and on the cost of mistakes.
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002.

pub(crate) mod config;
pub(crate) mod costs;
pub mod dup_thresh;
pub mod enhanced_sampling;
pub(crate) mod histogram;
pub(crate) mod observed_ratio;
pub(crate) mod order_statistic;
pub(crate) mod ratio;
pub mod receiver;
pub mod rtt_histogram;
pub mod share;
pub(crate) mod variants;
