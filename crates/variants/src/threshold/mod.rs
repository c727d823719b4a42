//! Variants that adapt the number of duplicate ACKs that indicate a loss.

pub mod blanton_allman;
pub mod leung_ma;
pub mod lpc_sender;
pub mod ncr;
pub mod rn;
pub mod rr;
