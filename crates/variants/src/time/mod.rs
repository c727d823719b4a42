//! Variants that detect losses by time instead of by the number of duplicate ACKs.

pub mod dcr;
pub(crate) mod overtaking;
pub mod pr;
pub mod pr_envelope;
pub mod rack;
