//! Variants that detect a spurious window reduction and undo it.

pub(crate) mod ba_r;
pub mod door;
pub mod dsack_det;
pub(crate) mod dsack_r;
pub mod dsack_repeat;
pub(crate) mod dsack_ss;
pub mod eifel;
pub mod frto;
pub mod retransmitted;
pub mod rto_adaptk;
