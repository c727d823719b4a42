//! What all transfers of a run share: path, TCP options, payload, duration and senders, from the scenario file and the options that
//! override it.

use reknit_compare::{KeyError, ScenarioOptions, VariantSetting, named_variant};
use reknit_host::testbed::Payload;
use reknit_path::Profile;
use reknit_sim::{Plan, Workload};
use reknit_units::Duration;
use reknit_variants::Custom;

use super::Args;
use crate::Failure;

/// Without --variants: the kernel as the reference, then reknit.
const DEFAULT_SENDERS: [&str; 2] = ["kernel:cubic", "reknit"];

/// Everything that a transfer needs except its two ends.
pub(super) struct TransferSetup {
    pub(super) profile: Profile,
    pub(super) tcp: reknit_tcp::Config,
    pub(super) payload: Payload,
    pub(super) duration: Duration,
    pub(super) customs: Vec<Custom>,
    pub(super) senders: Vec<String>,
}

impl TransferSetup {
    pub(super) fn new(args: &Args) -> Result<TransferSetup, Failure> {
        let options = args.scenario.options(args.source.scenario.as_deref())?;
        if let Some(setting) = options.set.iter().find(|set| VariantSetting::parse(set).is_some()) {
            let message = "parameters of variants are set in simulation only; use --variant-file";
            return Err(Failure::Usage(format!("--set {setting}: {message}")));
        }
        let options = ScenarioOptions { path: args.source.path(), ..options };
        let plan = &options.plan;
        let mut profile = options.profile()?;
        let scenario = scenario_payload(plan)?;
        profile.tcp.extend(plan.groups.iter().flat_map(|group| group.tcp.clone()));
        let mut customs = named_variant::load(&options.variant_files)?;
        let variant_file_names: Vec<String> = customs.iter().map(|custom| custom.name.clone()).collect();
        customs = named_variant::read(plan.own_variants.iter(), customs)?;
        Ok(TransferSetup {
            tcp: options.tcp(&profile)?,
            payload: payload(args)?.or(scenario).unwrap_or(Payload::Endless),
            duration: args.duration.or(plan.duration).unwrap_or(Duration::from_secs(20)),
            senders: senders(args, plan, variant_file_names),
            profile,
            customs,
        })
    }
}

/// The senders: those of the option, else the kernel and those of the scenario; and those of variant files.
fn senders(args: &Args, plan: &Plan, variant_file_names: Vec<String>) -> Vec<String> {
    let mut senders = args.variants.clone();
    if senders.is_empty() && plan.variants.is_empty() {
        senders.extend(DEFAULT_SENDERS.map(str::to_owned));
    } else if senders.is_empty() {
        senders.push(DEFAULT_SENDERS[0].to_owned());
        senders.extend(plan.variants.iter().cloned());
    }
    for name in variant_file_names {
        if !senders.contains(&name) {
            senders.push(name);
        }
    }
    senders
}

/// The payload that the options set.
fn payload(args: &Args) -> Result<Option<Payload>, Failure> {
    match (&args.size, &args.file) {
        (Some(size), _) => Ok(Some(Payload::Pattern(*size))),
        (None, Some(file)) => {
            reknit_config::open(file).map_err(|error| Failure::Usage(format!("--file {}: {error}", file.display())))?;
            Ok(Some(Payload::File(file.clone())))
        }
        (None, None) => Ok(None),
    }
}

/// The payload that the scenario sets; none if it is unlimited. The testbed transfers one flow at a time.
fn scenario_payload(plan: &Plan) -> Result<Option<Payload>, Failure> {
    let workloads: Vec<Workload> = plan.workloads().map(|(_, share)| share.workload).collect();
    match (plan.groups.as_slice(), workloads.as_slice()) {
        ([group], _) if group.lie.is_some() => {
            Err(KeyError::new("flows[0].lie", "the testbed cannot run misbehaving receivers; use `reknit compare`")
                .at(&plan.location)
                .into())
        }
        ([group], [Workload::Bulk]) if group.count == 1 => Ok(None),
        ([group], [Workload::Transfer(size)]) if group.count == 1 => Ok(Some(Payload::Pattern(*size))),
        _ => {
            let message =
                "the testbed runs one flow with the workload `bulk` or `transfer`; for others, use `reknit compare`";
            Err(KeyError::new("flows", message).at(&plan.location).into())
        }
    }
}
