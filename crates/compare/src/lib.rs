//! The computations of the command `reknit` and of the Python package: the same options and seed give the same numbers
//! in both.
//!
//! A [`PreparedComparison`] is made from [`CompareOptions`]: it loads the path, finds the variants and lists the simulations
//! to run. The caller runs them ([`PreparedComparison::run`]) and gets a [`Comparison`], which is also the JSON document.
//! [`simulate()`] runs a single simulation with its time series. [`catalogue`] lists the variants as data, and
//! [`about`] describes them as text; [`path_report`] reports what a path does to a train of packets.

pub mod about;
mod attacks;
pub mod catalogue;
pub mod columns;
mod experiment;
mod grid;
mod matrix;
mod measured;
pub mod named_variant;
pub mod names;
pub mod path_report;
mod point;
mod qlog;
mod references;
mod remedies;
mod replay;
mod reproduction;
mod run_summary;
pub mod schema;
mod setup;
mod simulate;
mod statistics;
mod store;
mod trace;
mod variant_setting;

pub use reknit_config::{InputError, KeyError, Location};

pub use attacks::{Attack, AttackOptions, AttackReport, attack, runs as attack_runs};
pub use experiment::{CompareOptions, Comparison, Job, PreparedComparison, Row, SeveralPaths};
pub use grid::{Axis, Grid, GridFile};
pub use matrix::{
    Difference, Matrix, MatrixJob, MatrixOptions, MatrixPath, MatrixReport, MatrixRun, MatrixStore, PathReferences,
    Shares, SummaryStats,
};
pub use measured::{OverTime, RunMeasurements};
pub use named_variant::NamedVariant;
pub use point::Point;
pub use qlog::qlog;
pub use references::{GrowthModel, share};
pub use remedies::{advise, open_capture};
pub use replay::{Best, Count, REPLAYED, Replay, ReplayCheck, ReplayOptions, ReplayedPath, Replayer, SenderCheck};
pub use run_summary::{Completions, Cuts, GroupSummary, Retransmissions, RunSummary};
pub use setup::{ScenarioOptions, warnings};
pub use simulate::{Series, ShownColumns, SimulateOptions, Trajectory, simulate};
pub use statistics::{Estimate, Mode};
pub use store::Store;
pub use trace::{PacketTrace, Packets, trace};
pub use variant_setting::VariantSetting;

/// What made a result: the version, the commit and a digest of the sources that it depends on.
pub const VERSION: &str = env!("REKNIT_VERSION");

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The input was invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The computation failed.
    #[error("{0}")]
    Failed(String),
}
