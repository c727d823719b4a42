//! The parts that most variants share: what the RFCs prescribe for a TCP without any cure for reordering.

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
pub mod prr;
pub mod respond_at_once;
pub mod rfc4015;
pub mod rfc6298;
pub mod timeout;
pub mod undo;
