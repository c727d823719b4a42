//! What the command `reknit` and the Python package compute, in one place: the same question and seed give the same
//! numbers from both.
//!
//! A [`Campaign`] is made from a [`Question`]: it loads the path, finds the variants and lists the simulations to run. The
//! caller runs them ([`Campaign::run`]) and gets a [`Comparison`], which is also the JSON document. [`simulate`] is one of these
//! simulations on its own, with its time series. [`catalogue`] lists the variants, [`passage`] says what a path does to a
//! train of packets.

mod campaign;
pub mod catalogue;
pub mod contestants;
pub mod names;
pub mod passage;
mod question;
mod run;
mod single;
mod statistics;

pub use campaign::{Campaign, Comparison, Job, Question, Row};
pub use contestants::Contestant;
pub use question::Setting;
pub use run::{Completions, Cuts, GroupRun, Retransmissions, Run};
pub use single::{Single, Trajectory, simulate};
pub use statistics::Estimate;

/// Why there is no answer: one line that names the place, what was wrong and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The question was wrong.
    #[error("{}", names::in_words(.0))]
    Usage(String),
    /// The answer could not be found.
    #[error("{0}")]
    Failed(String),
}
