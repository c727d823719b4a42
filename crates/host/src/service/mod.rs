//! What the services of this machine, `reknit proxy` and `reknit shield`, have in common: changes to the machine, one instance
//! for each network namespace, a log, the time.

pub mod clock;
mod execute;
mod http;
mod lock;
mod log;
mod metrics;
mod plan;

pub use execute::{Step, interfaces, setting};
pub use http::{bind, serve};
pub use lock::Lock;
pub use log::{Format, Line, set_format};
pub use metrics::{Sample, fetch, samples};
pub use plan::{Applied, Plan};
