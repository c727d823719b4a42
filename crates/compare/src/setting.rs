//! Where the variants meet: a path, changed as the question wants it.

use std::sync::Arc;

use reknit_path::{Direction, Profile, Train};
use reknit_sim::{FlowSpec, Scenario, Workload, tcp_config};
use reknit_units::{Bytes, Duration, Instant, Share};

use crate::{Contestant, Error, names};

/// Connections of one run open this far apart.
const BETWEEN_FLOWS: Duration = Duration::from_millis(100);

/// A path and what is changed about it, for runs of some length.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// A built-in path or a TOML file.
    pub path: String,
    /// `KEY=VALUE` each: values of the path or of the TCP.
    pub set: Vec<String>,
    /// Each data packet is lost with this probability.
    pub loss: Option<Share>,
    /// Whatever reorders is taken off.
    pub in_order: bool,
    /// Connections that share the path, opened 100 ms apart.
    pub flows: u32,
    /// Length of each run.
    pub duration: Duration,
}

/// A setting that has been looked up.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) profile: Arc<Profile>,
    tcp: reknit_tcp::Config,
    flows: u32,
    duration: Duration,
}

impl Setting {
    /// The path `path` as it is, one connection.
    pub fn of(path: &str, duration: Duration) -> Setting {
        Setting { path: path.to_owned(), set: Vec::new(), loss: None, in_order: false, flows: 1, duration }
    }

    pub(crate) fn look_up(&self) -> Result<Stage, Error> {
        let mut profile = names::load_path(&self.path, &self.set)?;
        if let Some(loss) = self.loss {
            profile.set_loss(loss);
        }
        if self.in_order {
            profile = profile.in_order();
            profile.description = format!("{} (taken off: whatever reorders)", profile.description);
        }
        takes_time(&profile)?;
        takes_time(&profile.in_order())?;
        let tcp = tcp_config(&profile).map_err(Error::Usage)?;
        Ok(Stage { profile: Arc::new(profile), tcp, flows: self.flows, duration: self.duration })
    }

    pub(crate) fn check_duration(&self) -> Result<(), Error> {
        if self.duration.is_zero() {
            return Err(Error::Usage("--duration must be more than 0".to_owned()));
        }
        Ok(())
    }
}

/// Refuses a path on which data would arrive without any time passing: a simulation of it would not come to an end.
fn takes_time(profile: &Profile) -> Result<(), Error> {
    let train = Train { packets: 1000, size: Bytes(1500), gap: Duration::ZERO };
    let is_instant = |direction| train.through(profile, direction, 1).delay_quantile(1.0).is_zero();
    if [Direction::Forward, Direction::Reverse].into_iter().all(is_instant) {
        let message = "data take no time on this path, or none once whatever reorders is taken off; add a link";
        return Err(Error::Usage(format!("{}: {message} with a `rate` or a `delay`", profile.name)));
    }
    Ok(())
}

impl Stage {
    /// The same without whatever reorders.
    pub(crate) fn in_order(&self) -> Stage {
        Stage { profile: Arc::new(self.profile.in_order()), ..self.clone() }
    }

    pub(crate) fn scenario(&self, variant: &Contestant, seed: u64) -> Scenario {
        let flow = |i: u32| FlowSpec {
            sender: variant.composition.clone(),
            receiver: variant.composition.clone(),
            start: Instant::ZERO + BETWEEN_FLOWS * u64::from(i),
            workload: Workload::Bulk,
        };
        Scenario {
            profile: self.profile.clone(),
            tcp: self.tcp.clone(),
            flows: (0..self.flows).map(flow).collect(),
            duration: self.duration,
            seed,
            sample_every: None,
        }
    }
}
