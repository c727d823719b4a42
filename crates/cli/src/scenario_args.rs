//! The options of `testbed` that say on which path, and who shares it.

use std::path::PathBuf;

use reknit_compare::ScenarioOptions;
use reknit_sim::{PathSource, Plan};
use reknit_units::Share;

use crate::Failure;

/// A path, a scenario, and what overrides them.
#[derive(clap::Args, Debug)]
pub(crate) struct ScenarioArgs {
    /// A built-in path (`reknit paths` lists them) or a TOML file
    #[arg(long, value_name = "NAME|FILE.toml", required_unless_present = "scenario")]
    pub(crate) path: Option<String>,
    /// A TOML file with the flows that share the path and their traffic (docs/scenarios.md); options override the file
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) scenario: Option<PathBuf>,
    /// Your own variant (docs/variants.md says how to write one); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Lose each data packet with this probability: `1%` or `0.01`
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) loss: Option<Share>,
    /// Change a value of the path or of the TCP: any key of a path file, such as forward.bottleneck.rate="2 Mbit/s",
    /// `forward.links.paths.1.delay=80ms` or `tcp.min_rto=200ms`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Remove all reordering from the path
    #[arg(long)]
    pub(crate) in_order: bool,
}

impl ScenarioArgs {
    /// The scenario file with these options; without a file, `flows` bulk transfers.
    pub(crate) fn options(&self, flows: u32) -> Result<ScenarioOptions, Failure> {
        let plan = match &self.scenario {
            Some(file) => Plan::load(file)?,
            None => Plan::bulk(flows),
        };
        Ok(ScenarioOptions {
            path: self.path.clone().map(PathSource::Given),
            set: self.set.clone(),
            loss: self.loss,
            in_order: self.in_order.then_some(true),
            variant_files: self.variant_file.clone(),
            ..ScenarioOptions::of(plan)
        })
    }
}
