//! Published TCP algorithms, one file each, written so that a reader can hold the file beside its paper.
//!
//! A **variant** is a named combination of plug-ins for the seams of [`reknit_tcp`]: [`registry`] lists them, and
//! [`composition`] says how one is put together. Each family of algorithms has a folder; [`base`] holds the parts that
//! most variants share.
//!
//! [`file`](mod@file) reads variants that a user has put together, [`rules`] says which parts do not go together, and
//! [`parts`] and [`header`] tell people what there is.

pub mod base;
pub mod composition;
pub mod file;
pub mod header;
pub mod limit;
pub mod parts;
pub mod receiver;
pub mod registry;
pub mod rules;
pub mod threshold;
pub mod time;
pub mod undo;
pub mod wait;

pub use composition::Composition;
pub use file::Custom;
pub use registry::{Family, Side, Status, UnknownVariant, VARIANTS, Variant, find};
