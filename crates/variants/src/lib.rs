//! Published TCP algorithms, one file each, written to be read side by side with the paper.
//!
//! A **variant** is a named combination of algorithms for the seams of [`reknit_tcp`]; [`registry`] lists all variants. Each
//! family has a folder: files with algorithms, and a `mod.rs` that combines them to variants. In this table, files import only
//! from their own row and from rows above it:
//!
//! | | |
//! |---|---|
//! | [`requirement`], [`algorithm`], [`pages`] | what an algorithm is |
//! | [`parameter`], [`slot`] | how algorithms are read from files, and shown |
//! | [`base`] | the algorithms that the RFCs specify, and what several families share |
//! | [`undo`], [`threshold`], [`wait`], [`time`], [`linux`], [`receiver`], [`bbr`], [`reknit`], [`limit`] | the algorithms of the families |
//! | [`template`] | a starting point for the file of a new algorithm |
//! | [`algorithms`] | the algorithms that may fill each seam, and the composition of a variant |
//! | [`composition`], [`variant`] | what is done with compositions, and in the folders what imports these: the variants |
//! | [`registry`], [`requirements`], [`file`](mod@file), `schema` | the list of variants, and variants defined in files |

pub mod algorithm;
pub mod algorithms;
pub mod base;
pub mod bbr;
pub mod composition;
pub mod file;
pub mod limit;
pub mod linux;
pub mod pages;
pub mod parameter;
pub mod receiver;
pub mod registry;
pub mod reknit;
pub mod requirement;
pub mod requirements;
mod schema;
pub mod slot;
pub mod template;
pub mod threshold;
pub mod time;
pub mod undo;
pub mod variant;
pub mod wait;

pub use composition::Composition;
pub use file::Custom;
pub use registry::{FAMILIES, Family, UnknownVariant, VARIANTS, find, hint};
pub use schema::schema;
pub use variant::{ChangedEnd, Status, Variant};
