//! Virtual time: connections, the path between them and the applications at their ends, as fast as the machine computes.
//!
//! A [`Scenario`] says what to run; [`run`] runs it and returns a [`RunResult`]. Time is an integer, ties have an order,
//! every random decision has its own stream: the same scenario and seed give the same bytes on every machine.
//!
//! The simulator sees more than any host can: it knows which packets the path dropped, so it can tell a spurious
//! retransmission and a false reduction of the window from a deserved one.

mod application;
mod client;
mod fairness;
mod file;
mod flow;
mod measures;
mod meter;
mod oracle;
mod plan;
mod result;
mod scenario;
mod schema;
mod simulation;
mod tally;
mod trace;
mod transactions;
mod waits;
mod workload;

pub use fairness::jain;
pub use file::{MOST_FLOWS, MOST_SEEDS};
pub use measures::{Measures, TimeMean};
pub use meter::Meter;
pub use plan::{FlowSetup, Group, PathSource, Plan, WorkloadShare};
pub use result::{FlowResult, RunResult, Sample};
pub use scenario::{FlowSpec, Scenario, tcp_config};
pub use schema::schema;
pub use simulation::{Interrupted, run, run_traced, run_unless};
pub use trace::{Datagram, End, HashTracer, Look, NoTracer, TraceEvent, Tracer, Transmission};
pub use transactions::{Transaction, TransactionStats};
pub use workload::{Transactions, Workload};
