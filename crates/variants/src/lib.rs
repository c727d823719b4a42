//! Published TCP algorithms, one file each, written to be read side by side with the paper.
//!
//! A **variant** is a named combination of plug-ins for the seams of [`reknit_tcp`]. Each family of algorithms has a
//! folder; [`registry`] lists all variants. In this table, files import only from their own row and from rows above it:
//!
//! | | |
//! |---|---|
//! | [`header`], [`seam`], [`rule`], [`part`], [`slot`], [`composition`], [`variant`] | what parts and variants are |
//! | [`base`] | what the RFCs specify, and what several families share |
//! | [`undo`], [`threshold`], [`wait`], [`time`], [`linux`], [`receiver`], [`bbr`], [`limit`], [`reknit`] | the families |
//! | [`template`] | a starting point for the file of a new algorithm |
//! | [`registry`], [`library`], [`rules`], [`file`](mod@file), `schema` | the list of variants, and variants defined in files |

pub mod base;
pub mod bbr;
pub mod composition;
pub mod file;
pub mod header;
pub mod library;
pub mod limit;
pub mod linux;
pub mod part;
pub mod receiver;
pub mod registry;
pub mod reknit;
pub mod rule;
pub mod rules;
mod schema;
pub mod seam;
pub mod slot;
pub mod template;
pub mod threshold;
pub mod time;
pub mod undo;
pub mod variant;
pub mod wait;

pub use composition::Composition;
pub use file::Custom;
pub use registry::{Family, UnknownVariant, VARIANTS, find};
pub use schema::schema;
pub use variant::{Side, Status, Variant};
