//! What the RFCs prescribe for a TCP that does nothing about reordering, and what several families share.

pub mod aimd;
pub(crate) mod arrivals;
pub mod cubic;
pub mod delayed_ack;
pub mod fixed_threshold;
#[cfg(test)]
pub(crate) mod given;
mod hystart;
pub(crate) mod lesson;
pub mod limited_transmit;
pub mod newreno;
pub mod progress;
pub mod prr;
pub mod reno;
pub(crate) mod reno_nt4;
pub mod respond_at_once;
pub mod rfc4015;
pub mod rfc6298;
pub mod sack;
pub mod spurious_response;
pub mod timeout;
