//! Judge by time, instead of by the number of duplicate ACKs, whether a segment is lost.

pub mod dcr;
pub(crate) mod overtaking;
pub mod pr;
pub mod pr_envelope;
pub mod rack;
