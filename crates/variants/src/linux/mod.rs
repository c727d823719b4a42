//! What Linux does, mechanism by mechanism.
//!
//! Sources: the kernel's documentation (`ip-sysctl`), the RFCs that each file names, and Linux 6.18 itself, beside whose
//! traces this runs. "Observed" means that a live kernel of that version was seen to do so.

pub mod acks;
pub mod cubic;
pub mod frto;
mod hystart;
pub mod prr;
pub mod rack;
pub mod reduction;
pub mod reordering;
pub mod rto;
pub mod transmit;
pub mod undo;
pub(crate) mod variant;
