//! Simulation in virtual time: connections, the path between them, and the applications at their ends.
//!
//! A [`Scenario`] defines what to run; [`run`] runs it and returns a [`RunResult`]. Time is an integer, simultaneous
//! events have a defined order, and every random decision has its own stream of numbers, so the same scenario and seed
//! give the same results on every machine.
//!
//! The simulator knows more than any host can: it knows which packets the path lost, so it can distinguish spurious
//! retransmissions and false window reductions from justified ones.
//!
//! ```
//! use std::sync::Arc;
//!
//! use reknit_path::Profile;
//! use reknit_sim::{Scenario, run};
//! use reknit_units::Duration;
//!
//! let profile = Arc::new(Profile::load("two-paths-50ms", &[])?);
//! let goodput = |variant: &str| {
//!     let variant = (reknit_variants::find(variant).unwrap().compose)();
//!     let scenario = Scenario::bulk(profile.clone(), Default::default(), variant, Duration::from_secs(10), 1);
//!     run(&scenario).flows[0].goodput()
//! };
//! assert!(goodput("linux") > 5.0 * goodput("sack"));
//! # Ok::<(), reknit_config::InputError>(())
//! ```

mod application;
mod client;
mod exchange;
mod fairness;
mod file;
mod flow;
mod liar;
mod measures;
mod meter;
mod network;
mod oracle;
mod plan;
mod result;
mod roles;
mod scenario;
mod schema;
mod shown;
mod simulation;
mod tally;
mod timers;
mod trace;
mod transactions;
mod transport;
mod waits;
mod workload;

pub use fairness::jain;
pub use file::{MAX_FLOWS, MAX_SEEDS};
pub use liar::Misbehavior;
pub use measures::{Measures, TimeMean};
pub use meter::Meter;
pub use plan::{FlowSetup, Group, PathSource, Plan, WorkloadShare};
pub use result::{FlowResult, RunResult, Sample, Unreported};
pub use roles::Role;
pub use scenario::{FlowSpec, Scenario, tcp_config};
pub use schema::schema;
pub use shown::PluginMetrics;
pub use simulation::{Interrupted, run, run_traced, run_unless};
pub use trace::{Datagram, EndSnapshot, HashTracer, NoTracer, TraceEvent, Tracer, Transmission};
pub use transactions::{Transaction, TransactionStats};
pub use transport::{Counters, Endpoint, Ends, Opening, Transmit, Transport, Transports};
pub use workload::{Transactions, Workload};
