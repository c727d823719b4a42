//! The variant after which this project is named. It learns how late segments arrive, and reduces its window only for
//! segments that never arrive.

mod bbr;
pub mod detector;
pub(crate) mod variant;

use crate::variant::Variant;

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[variant::REKNIT, variant::REKNIT_RENO, bbr::REKNIT_BBR];
