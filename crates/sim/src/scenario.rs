//! What to simulate.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_tcp::Config;
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

/// The options of both ends on `profile`: the defaults, changed by the profile's `[tcp]` table.
///
/// # Errors
/// Names the key, what was wrong and what is allowed.
pub fn tcp_config(profile: &Profile) -> Result<Config, String> {
    let table = toml::Value::Table(profile.tcp.clone());
    let config: Config = serde_path_to_error::deserialize(table).map_err(|error| {
        let key = error.path().to_string();
        let message = error.into_inner().message().trim().replace('\n', " ");
        format!("{}: tcp.{key}: {message}", profile.name)
    })?;
    config.check().map_err(|error| format!("{}: tcp.{error}", profile.name))?;
    Ok(config)
}

/// What an application sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// As much as the connection takes, to the end of the run.
    Bulk,
    /// This much, then it closes.
    Transfer(Bytes),
}

/// One connection.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The plug-ins of the end that sends data.
    pub sender: Arc<Composition>,
    /// The plug-ins of the end that receives it.
    pub receiver: Arc<Composition>,
    /// When it opens.
    pub start: Instant,
    /// What it sends.
    pub workload: Workload,
}

/// Connections that share a path for a time.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The path.
    pub profile: Arc<Profile>,
    /// The options of every end, before the variants have their say.
    pub tcp: Config,
    /// The connections.
    pub flows: Vec<FlowSpec>,
    /// How long to run.
    pub duration: Duration,
    /// Seed of every random decision.
    pub seed: u64,
    /// Interval of the time series. None: no series.
    pub sample_every: Option<Duration>,
}

impl Scenario {
    /// One bulk transfer by `variant` at both ends.
    pub fn bulk(profile: Arc<Profile>, tcp: Config, variant: Composition, duration: Duration, seed: u64) -> Scenario {
        let variant = Arc::new(variant);
        Scenario {
            profile,
            tcp,
            flows: vec![FlowSpec {
                sender: variant.clone(),
                receiver: variant,
                start: Instant::ZERO,
                workload: Workload::Bulk,
            }],
            duration,
            seed,
            sample_every: None,
        }
    }
}
