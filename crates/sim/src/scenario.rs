//! What to simulate.

use std::sync::Arc;

use reknit_config::{InputError, KeyError, read};
use reknit_path::{Phases, Profile};
use reknit_tcp::Config;
use reknit_units::{Duration, Instant};
use reknit_variants::Composition;
use toml::Table;

use crate::liar::Misbehavior;
use crate::transport::Transport;
use crate::workload::Workload;

/// The TCP options of both ends on `profile`: the defaults, changed by the profile's `[tcp]` table.
///
/// # Errors
/// Names the key, what is wrong, and what is allowed.
pub fn tcp_config(profile: &Profile) -> Result<Config, InputError> {
    read_tcp(profile.tcp.clone()).map_err(|error| error.at(&profile.name))
}

/// The defaults, changed by a `[tcp]` table.
pub(crate) fn read_tcp(table: Table) -> Result<Config, KeyError> {
    let config: Config = read(table).map_err(|error| error.inside("tcp"))?;
    config.check().map_err(|error| KeyError::new(error.key, error.allowed).of_value(error.value).inside("tcp"))?;
    Ok(config)
}

/// A connection, or several connections that a client opens one after the other.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The plug-ins of the end that sends data.
    pub sender: Arc<Composition>,
    /// The plug-ins of the end that receives it.
    pub receiver: Arc<Composition>,
    /// When the first connection opens.
    pub start: Instant,
    /// The workload of the applications at its ends.
    pub workload: Workload,
    /// The options of both ends before the variants change them, if they differ from the scenario's.
    pub tcp: Option<Arc<Config>>,
    /// What the receiver lies about, if it does.
    pub lie: Option<Misbehavior>,
    /// The group in whose statistics its transactions are counted.
    pub group: u32,
}

impl FlowSpec {
    /// A bulk transfer from time zero, with `variant` at both ends.
    pub fn bulk(variant: Arc<Composition>) -> FlowSpec {
        FlowSpec {
            sender: variant.clone(),
            receiver: variant,
            start: Instant::ZERO,
            workload: Workload::Bulk,
            tcp: None,
            lie: None,
            group: 0,
        }
    }
}

/// Connections that share a path for some time.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The path.
    pub profile: Arc<Profile>,
    /// The options of every end before the variants change them.
    pub tcp: Config,
    /// The connections.
    pub flows: Vec<FlowSpec>,
    /// How long to run.
    pub duration: Duration,
    /// Time at the beginning that is left out of the results; shorter than the run.
    pub warm_up: Duration,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Whether the seed also draws when each flow starts, within 100 ms, and where the path's periodic stages begin.
    pub phases: Phases,
    /// Interval of the time series. None: no series.
    pub sample_every: Option<Duration>,
    /// The transport at both ends of all flows, instead of the variants. It transfers only in bulk or once
    /// ([`Workload::Bulk`], [`Workload::Transfer`]); flows with another workload never open.
    pub transport: Option<Arc<dyn Transport>>,
}

impl Scenario {
    /// One bulk transfer from time zero with `variant` at both ends and fixed phases.
    pub fn bulk(profile: Arc<Profile>, tcp: Config, variant: Composition, duration: Duration, seed: u64) -> Scenario {
        let flows = vec![FlowSpec::bulk(Arc::new(variant))];
        Scenario {
            profile,
            tcp,
            flows,
            duration,
            warm_up: Duration::ZERO,
            seed,
            phases: Phases::Fixed,
            sample_every: None,
            transport: None,
        }
    }
}
