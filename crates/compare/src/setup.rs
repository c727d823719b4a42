//! A plan and the options that override it, before and after all names are resolved.

use std::path::PathBuf;
use std::sync::Arc;

use reknit_config::{InputError, KeyError};
use reknit_path::stages::Spec;
use reknit_path::{Direction, Phases, Profile, StageEntry, Train};
use reknit_sim::{FlowSetup, PathSource, Plan, Scenario, Transports, Workload, tcp_config};
use reknit_units::{Bytes, Duration, Share};
use reknit_variants::Custom;
use toml::Table;

use crate::variant_setting::{self, VariantSetting};
use crate::{Error, NamedVariant, named_variant};

/// A plan and the options that override it.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioOptions {
    /// The plan.
    pub plan: Plan,
    /// The path, instead of the plan's.
    pub path: Option<PathSource>,
    /// Values of the path, TCP options and parameters of variants to change, each as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Each data packet is lost with this probability.
    pub loss: Option<Share>,
    /// Whether to remove all reordering from the path.
    pub in_order: Option<bool>,
    /// Whether each seed draws the starting points of everything periodic.
    pub phases: Option<Phases>,
    /// Length of each run, instead of the plan's.
    pub duration: Option<Duration>,
    /// Files with the user's own variants.
    pub variant_files: Vec<PathBuf>,
    /// Further variants as tables, each with its name for errors.
    pub variant_tables: Vec<(String, Table)>,
    /// The transports that may be compared beside the variants.
    pub transports: Transports,
}

/// Scenario options with all names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    pub(crate) profile: Arc<Profile>,
    /// The user's own variants; those of files come first.
    pub(crate) customs: Vec<Custom>,
    files: usize,
    pub(crate) duration: Duration,
    flows: FlowSetup,
    pub(crate) tcp: reknit_tcp::Config,
    settings: Vec<VariantSetting>,
    transports: Transports,
}

impl ScenarioOptions {
    /// The plan without overrides.
    pub fn of(plan: Plan) -> ScenarioOptions {
        ScenarioOptions {
            plan,
            path: None,
            set: Vec::new(),
            loss: None,
            in_order: None,
            phases: None,
            duration: None,
            variant_files: Vec::new(),
            variant_tables: Vec::new(),
            transports: Transports::default(),
        }
    }

    /// Length of each run in simulated time; by default one minute.
    pub fn duration(&self) -> Duration {
        self.duration.or(self.plan.duration).unwrap_or(Duration::from_secs(60))
    }

    /// The path with all changes.
    ///
    /// # Errors
    /// Names the file and key, or the argument, and what is allowed.
    pub fn profile(&self) -> Result<Profile, Error> {
        let plan = self.plan();
        let profile = plan.profile()?;
        has_stages(&profile)?;
        Ok(profile)
    }

    /// The TCP options on this path.
    ///
    /// # Errors
    /// Names the argument or the key, and what is allowed.
    pub fn tcp(&self, profile: &Profile) -> Result<reknit_tcp::Config, InputError> {
        tcp_options(profile, &self.set)
    }

    pub(crate) fn look_up(&self) -> Result<Setup, Error> {
        let profile = self.profile()?;
        let plan = self.plan();
        takes_time(&profile)?;
        takes_time(&profile.in_order())?;
        let tcp = self.tcp(&profile)?;
        let from_files = named_variant::load(&self.variant_files)?;
        let files = from_files.len();
        let customs = named_variant::read(self.variant_tables.iter().chain(&plan.own_variants), from_files)?;
        let duration = self.duration();
        if duration.is_zero() {
            return Err(InputError::of_argument("duration", duration, "must be more than 0").into());
        }
        if plan.warm_up >= duration {
            let message = format!("must be shorter than the run of {duration}");
            return Err(KeyError::new("warm_up", message).of_value(plan.warm_up).at(&plan.location).into());
        }
        let find = |name: &str| Ok(named_variant::find(name, &customs)?.composition);
        let flows = plan.flow_setup(&profile, find)?;
        let settings = self.set.iter().filter_map(|assignment| VariantSetting::parse(assignment)).collect();
        let transports = self.transports.clone();
        Ok(Setup { plan, profile: Arc::new(profile), customs, files, duration, flows, tcp, settings, transports })
    }

    /// The plan with the options applied.
    fn plan(&self) -> Plan {
        let mut plan = self.plan.clone();
        if let Some(path) = &self.path {
            plan.path = Some(path.clone());
        }
        let is_of_path = |assignment: &&String| VariantSetting::parse(assignment).is_none();
        plan.set_by_argument.extend(self.set.iter().filter(is_of_path).cloned());
        plan.loss = self.loss.or(plan.loss);
        plan.in_order = self.in_order.unwrap_or(plan.in_order);
        plan.phases = self.phases.unwrap_or(plan.phases);
        plan
    }
}

/// The TCP options of a path. An error names the assignment of `set` that is wrong, if one is.
pub(crate) fn tcp_options(profile: &Profile, set: &[String]) -> Result<reknit_tcp::Config, InputError> {
    tcp_config(profile).map_err(|error| {
        let sets =
            |assignment: &&String| assignment.split_once('=').is_some_and(|(key, _)| key.trim() == error.error.key);
        match set.iter().rfind(sets) {
            Some(assignment) => InputError::of_argument("set", assignment, &error.error.message),
            None => error,
        }
    })
}

/// Refuses a path without any stage.
pub(crate) fn has_stages(profile: &Profile) -> Result<(), InputError> {
    if profile.forward.is_empty() && profile.reverse.is_empty() { Err(takes_no_time(profile)) } else { Ok(()) }
}

fn takes_no_time(profile: &Profile) -> InputError {
    let message = "data takes no time on this path, or on the same path without reordering; add a link";
    InputError::new(&profile.name, format!("{message} with a `rate` or a `delay`"))
}

/// Refuses a path on which data arrives without any delay: its simulation would never end.
fn takes_time(profile: &Profile) -> Result<(), Error> {
    if [Direction::Forward, Direction::Reverse].into_iter().all(|direction| is_instant(profile, direction)) {
        return Err(takes_no_time(profile).into());
    }
    Ok(())
}

/// An outage may lose a whole burst. Then the packets of a slower train show how long the path takes.
fn is_instant(profile: &Profile, direction: Direction) -> bool {
    let found = [Duration::ZERO, Duration::from_secs(1)].into_iter().find_map(|gap| {
        let arrived = Train { packets: 1000, size: Bytes(1500), gap }.through(profile, direction, 1);
        (arrived.lost() < 1000).then_some(arrived)
    });
    found.is_none_or(|arrived| arrived.delay_quantile(1.0).is_zero())
}

/// Warnings about a path and about the user's own variants.
pub fn warnings(profile: &Profile, customs: &[Custom]) -> Vec<String> {
    let is_total = |named: &StageEntry| matches!(&named.spec, Spec::Loss(loss) if loss.probability == Share::ONE);
    let nothing_arrives = || format!("{}: the loss is 100 %, so no data arrives", profile.name);
    let loses_all = profile.forward.iter().any(is_total).then(nothing_arrives);
    customs.iter().flat_map(|custom| custom.warnings.clone()).chain(loses_all).collect()
}

impl Setup {
    /// Variants of files are compared even if they are not named.
    pub(crate) fn of_files(&self) -> &[Custom] {
        &self.customs[..self.files]
    }

    /// Finds the variant or the transport with this name.
    ///
    /// # Errors
    /// If there is none, or if the transport cannot run this plan.
    pub(crate) fn find(&self, name: &str) -> Result<NamedVariant, KeyError> {
        match self.transports.find(name.trim()) {
            Some(transport) => self.check_transport(NamedVariant::transport(transport)),
            None => named_variant::find(name, &self.customs).map_err(|error| self.offer_transports(error)),
        }
    }

    /// The variants that `name` stands for, or the transport with this name.
    ///
    /// # Errors
    /// As [`Setup::find`].
    pub(crate) fn expand(&self, name: &str) -> Result<Vec<NamedVariant>, KeyError> {
        match self.transports.find(name.trim()) {
            Some(_) => self.find(name).map(|transport| vec![transport]),
            None => named_variant::expand(name, &self.customs).map_err(|error| self.offer_transports(error)),
        }
    }

    fn offer_transports(&self, error: KeyError) -> KeyError {
        let names: Vec<&str> = self.transports.iter().map(|transport| transport.name()).collect();
        let offer = if names.is_empty() { String::new() } else { format!("; the transports are {}", names.join(", ")) };
        KeyError { message: error.message + &offer, ..error }
    }

    /// Another transport has no parameters, and transfers only in bulk or once.
    fn check_transport(&self, transport: NamedVariant) -> Result<NamedVariant, KeyError> {
        let refuse = |why: &str| Err(KeyError::new("", format!("`{}` is another transport, {why}", transport.name)));
        if !self.settings.is_empty() {
            return refuse("so its parameters cannot be set");
        }
        if self.plan.groups.iter().any(|group| group.variant.is_some() || group.lie.is_some()) {
            return refuse("so all flows must be of the compared variant, with honest receivers");
        }
        let is_one_way = |workload| matches!(workload, Workload::Bulk | Workload::Transfer(_));
        if !self.plan.workloads().all(|(_, share)| is_one_way(share.workload)) {
            return refuse("so the workload must be `bulk` or a transfer of a size");
        }
        Ok(transport)
    }

    /// The variant with the parameters that are set.
    pub(crate) fn with_settings(&self, variant: NamedVariant) -> Result<NamedVariant, Error> {
        if self.settings.is_empty() || variant.transport.is_some() {
            return Ok(variant);
        }
        let changed = variant_setting::changed(&variant.name, &self.settings, &self.customs)?;
        Ok(NamedVariant::custom(&changed))
    }

    /// The same without reordering.
    pub(crate) fn in_order(&self) -> Setup {
        Setup { profile: Arc::new(self.profile.in_order()), ..self.clone() }
    }

    /// True if a single flow, of the compared variant, has the path for itself.
    pub(crate) fn has_one_flow(&self) -> bool {
        matches!(&self.plan.groups[..], [group] if group.count == 1 && group.variant.is_none())
    }

    /// A description of the plan or the path in one sentence.
    pub(crate) fn description(&self) -> String {
        let described = [&self.plan.description, &self.profile.description].into_iter().find(|text| !text.is_empty());
        described.cloned().unwrap_or_default()
    }

    /// Warnings about combinations in the user's files, and about the path.
    pub(crate) fn warnings(&self) -> Vec<String> {
        warnings(&self.profile, &self.customs)
    }

    pub(crate) fn scenario(&self, variant: &NamedVariant, seed: u64) -> Scenario {
        Scenario {
            profile: self.profile.clone(),
            tcp: self.tcp.clone(),
            flows: self.flows.flows(&variant.composition, seed),
            duration: self.duration,
            warm_up: self.plan.warm_up,
            seed,
            phases: self.plan.phases,
            sample_every: None,
            transport: variant.transport.clone(),
        }
    }
}
