//! `reknit shield`: a gateway in front of the receiver holds early TCP packets until late ones have passed. Both TCPs stay as they
//! are.
//!
//! Rules of iptables bring the packets that arrive on an interface to queues (NFQUEUE), of which this process reads only the headers.
//! [`reknit_path::resequencer`], or for packets of any protocol [`reknit_path::equaliser`], decides which go on. A packet that no
//! process takes from a queue passes: so traffic goes on however the process ends, and a supervisor ends one that hangs.
//!
//! | module | responsibility |
//! |---|---|
//! | `settings` | what a user asks for |
//! | [`rules`] | the rules that bring packets to the queues, as a list of commands, and how they are removed |
//! | `leftovers` | one instance for each network namespace, and what a killed one has left |
//! | `queue` | a queue of the kernel: packets, and verdicts on them (nfnetlink) |
//! | `reader` | a thread that holds the packets of a queue, or one that only watches an interface |
//! | `worker` | the process with these threads: a heartbeat, metrics, the end |
//! | `supervisor` | starts the worker, ends it if it hangs, and starts it again |
//! | `metrics` | counters in the text format of Prometheus |

pub mod leftovers;
mod metrics;
mod queue;
mod reader;
pub mod rules;
mod settings;
mod supervisor;
mod worker;

pub use settings::{METRICS, Mode, Settings};
pub use supervisor::{dry_run, run};
