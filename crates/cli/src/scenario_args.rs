//! Options that several commands share: what runs, and how it is changed.

use std::path::{Path, PathBuf};

use reknit_compare::{GridFile, ScenarioOptions, VariantSetting};
use reknit_path::Phases;
use reknit_sim::{Group, MAX_FLOWS, PathSource, Plan};
use reknit_units::{Duration, Share};
use toml::Value;

use crate::shaping::ShieldArgs;
use crate::{Failure, input};

/// The options of every command that runs variants on a path.
#[derive(clap::Args, Debug)]
pub(crate) struct ScenarioArgs {
    /// Add your own variant from a TOML file (docs/reference/variants.md); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Drop each data packet with this probability, for example `1%` or `0.01`
    #[arg(long, value_name = "PROBABILITY", allow_hyphen_values = true)]
    loss: Option<Share>,
    /// Set a value of the path, a TCP option or a parameter of the variants: any key of a path file, such as
    /// `forward.bottleneck.rate="2 Mbit/s"`, `forward.links.paths.1.delay=80ms` (the second path; lists count from 0) or
    /// `tcp.min_rto=200ms`, and `variant.` before a key of a variant file, such as
    /// `variant.loss_detector.reo_wnd_divisor=4`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Remove all reordering from the path
    #[arg(long)]
    in_order: bool,
    #[command(flatten)]
    shield: ShieldArgs,
}

/// The path and the scenario of a command that runs only one.
#[derive(clap::Args, Debug)]
pub(crate) struct SourceArgs {
    /// Use this path: a built-in one (`reknit paths` lists them) or a TOML file
    #[arg(long, value_name = "NAME|FILE.toml", required_unless_present = "scenario")]
    path: Option<String>,
    /// Read the flows on the path and what they send from a TOML file (docs/reference/scenarios.md); options override the file
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) scenario: Option<PathBuf>,
}

/// The options of every command that simulates.
#[derive(clap::Args, Debug)]
pub(crate) struct SimulationArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run each simulation for this long, for example `500ms`, `10s` or `2min` [default: 60 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Run this many bulk transfers of the same variant over the path, started 100 ms apart [default: 1]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MAX_FLOWS>, allow_negative_numbers = true)]
    flows: Option<u32>,
    /// Draw for each seed when flows start, which of several paths comes first, and when periodic faults begin (`drawn`), or use
    /// the same for all seeds (`fixed`) [default: drawn]
    #[arg(long, value_name = "drawn|fixed")]
    phases: Option<Phases>,
}

impl SourceArgs {
    /// The files that these options may name.
    pub(crate) fn files(&self) -> Vec<&Path> {
        self.path.iter().map(Path::new).chain(self.scenario.as_deref()).collect()
    }

    /// The path, if it is given.
    pub(crate) fn path(&self) -> Option<PathSource> {
        self.path.clone().map(PathSource::Given)
    }
}

impl ScenarioArgs {
    /// The options that change the path, as they are given.
    pub(crate) fn changes(&self) -> Vec<String> {
        let mut changes: Vec<String> = self.set.iter().map(|assignment| format!("--set {assignment}")).collect();
        changes.extend(self.loss.map(|loss| format!("--loss {loss}")));
        changes.extend(self.in_order.then(|| "--in-order".to_owned()));
        changes.extend(self.shield.given());
        changes
    }

    /// The plan in `scenario`, or one bulk transfer, with these options.
    pub(crate) fn options(&self, scenario: Option<&Path>) -> Result<ScenarioOptions, Failure> {
        let plan = match scenario {
            Some(file) => Plan::load(file)?,
            None => Plan::bulk(1),
        };
        Ok(ScenarioOptions {
            set: self.set.iter().cloned().chain(self.shield.set()).collect(),
            loss: self.loss,
            in_order: self.in_order.then_some(true),
            variant_files: self.variant_file.clone(),
            ..ScenarioOptions::of(plan)
        })
    }
}

impl SimulationArgs {
    /// The plan in `scenario`, or one bulk transfer, with these options.
    pub(crate) fn options(&self, scenario: Option<&Path>) -> Result<ScenarioOptions, Failure> {
        let mut options = self.scenario.options(scenario)?;
        if let Some(flows) = self.flows {
            options.plan.groups = vec![Group::bulk(flows)];
        }
        Ok(ScenarioOptions { phases: self.phases, duration: self.duration, ..options })
    }

    /// Applies the options to the file of a sweep.
    pub(crate) fn apply(&self, file: &mut GridFile) -> Result<(), Failure> {
        let ScenarioArgs { loss, set, in_order, shield, .. } = &self.scenario;
        let values = [
            ("duration", self.duration.map(|duration| format!("{} ns", duration.as_nanos()).into())),
            ("flows", self.flows.map(Value::from)),
            ("loss", loss.map(|loss| loss.get().into())),
            ("in_order", in_order.then_some(true.into())),
            ("phases", self.phases.map(|phases| phases.to_string().into())),
        ];
        let set_key = |file: &mut GridFile, key: &str, value: Value| file.set(key, vec![(value.clone(), value)]);
        for (key, value) in values {
            value.map_or(Ok(()), |value| set_key(file, key, value))?;
        }
        for assignment in set.iter().chain(&shield.set()) {
            let usage_error = || Failure::Usage(format!("--set {assignment}: expected KEY=VALUE"));
            let (key, value) = assignment.split_once('=').ok_or_else(usage_error)?;
            match VariantSetting::parse(assignment) {
                Some(_) => set_key(file, key.trim(), reknit_path::literal(value))?,
                None => file.set_by_argument(key.trim(), value)?,
            }
        }
        Ok(())
    }
}
