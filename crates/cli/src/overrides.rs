//! Options that override a scenario, the same for every command that simulates.

use std::path::{Path, PathBuf};

use reknit_compare::{GridFile, ScenarioOptions};
use reknit_path::Phases;
use reknit_sim::{Group, MOST_FLOWS, PathSource, Plan};
use reknit_units::{Duration, Share};
use toml::Value;

use crate::{Failure, input};

/// The options.
#[derive(clap::Args, Debug)]
pub(crate) struct Overrides {
    /// A variant of your own, from a TOML file (docs/variants.md); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Simulated length of each run [default: 60 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
    /// Bulk transfers that share the path, all of the same variant, starting 100 ms apart [default: 1]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MOST_FLOWS>, allow_negative_numbers = true)]
    pub(crate) flows: Option<u32>,
    /// Lose each data packet with this probability: `1%` or `0.01`
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) loss: Option<Share>,
    /// Change a value of the path or of the TCP: any key of a path file, such as forward.bottleneck.rate="2 Mbit/s",
    /// `forward.links.paths.1.delay=80ms` or `tcp.min_rto=200ms`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Take everything off the path that changes the order of packets
    #[arg(long)]
    pub(crate) in_order: bool,
    /// Starting phases: `drawn` by each seed (when flows start, which of the paths taken in turn comes first, where in its
    /// period a periodic fault is), or `fixed`, the same for all seeds [default: drawn]
    #[arg(long, value_name = "drawn|fixed")]
    pub(crate) phases: Option<Phases>,
}

impl Overrides {
    /// Puts them into the file of a sweep.
    pub(crate) fn apply(&self, file: &mut GridFile) -> Result<(), Failure> {
        let mut set = |key: &str, value: Value| file.set(key, vec![(value.clone(), value)]);
        if let Some(duration) = self.duration {
            set("duration", format!("{} ns", duration.as_nanos()).into())?;
        }
        if let Some(flows) = self.flows {
            set("flows", flows.into())?;
        }
        if let Some(loss) = self.loss {
            set("loss", loss.get().into())?;
        }
        if self.in_order {
            set("in_order", true.into())?;
        }
        if let Some(phases) = self.phases {
            set("phases", phases.to_string().into())?;
        }
        for assignment in &self.set {
            let wrong = || Failure::Usage(format!("--set {assignment}: expected KEY=VALUE"));
            let (key, value) = assignment.split_once('=').ok_or_else(wrong)?;
            set(&format!("set.{}", key.trim()), value.into())?;
        }
        Ok(())
    }

    /// The plan in `scenario`, or one bulk transfer, on `path`, with these options.
    pub(crate) fn options(&self, scenario: Option<&Path>, path: Option<&str>) -> Result<ScenarioOptions, Failure> {
        let mut plan = match scenario {
            Some(file) => Plan::load(file)?,
            None => Plan::bulk(1),
        };
        if let Some(flows) = self.flows {
            plan.groups = vec![Group::bulk(flows)];
        }
        Ok(ScenarioOptions {
            plan,
            path: path.map(|path| PathSource::Given(path.to_owned())),
            set: self.set.clone(),
            loss: self.loss,
            in_order: self.in_order.then_some(true),
            phases: self.phases,
            duration: self.duration,
            variant_files: self.variant_file.clone(),
            variant_tables: Vec::new(),
        })
    }
}
