//! The variant that this project is named after: it learns how late segments come, and reduces its window only for
//! segments that do not come at all.

pub mod detector;
mod lateness;
pub mod undo;
