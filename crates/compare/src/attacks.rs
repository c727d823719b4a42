//! What misbehaving receivers gain: each lie against each variant, beside an honest rival on one bottleneck.
//!
//! Two transfers with the same variant share a link. The receiver of the first lies. What it gets is compared with what
//! it gets when it is honest, and so are its rival's goodput and the drops.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use reknit_path::{Phases, Profile};
use reknit_sim::{FlowSpec, Misbehavior, RunResult, Scenario, run_unless, tcp_config};
use reknit_units::{Duration, Instant};
use serde::Serialize;

use crate::{Error, NamedVariant};

/// The path that both transfers share: 10 Mbit/s and 40 ms, so 34 packets fill the pipe. The queue holds 50.
const ATTACKED_PATH: &str = r#"
    description = "a bottleneck that two transfers share"
    [[forward]]
    kind = "link"
    rate = "10 Mbit/s"
    delay = "20 ms"
    queue = "50 packets"
    [[reverse]]
    kind = "link"
    rate = "100 Mbit/s"
    delay = "20 ms"
    queue = "1000 packets"
"#;

/// What to run.
#[derive(Clone, Debug)]
pub struct AttackOptions {
    /// The variants of the senders.
    pub variants: Vec<NamedVariant>,
    /// The lies.
    pub lies: Vec<Misbehavior>,
    /// Length of each run in simulated time.
    pub duration: Duration,
    /// Runs of each attack, with the seeds from 1 to this number.
    pub seeds: u32,
}

/// One attack on one variant: means over the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attack {
    /// The variant of both senders.
    pub variant: String,
    /// What the first receiver lies about.
    pub lie: Misbehavior,
    /// Goodput of the liar, Mbit/s: every new byte that arrives, in order or not.
    pub liar_mbit_s: f64,
    /// Goodput of the same receiver when it is honest.
    pub honest_mbit_s: f64,
    /// `liar_mbit_s` divided by `honest_mbit_s`; 1: nothing gained.
    pub gain: f64,
    /// The liar's share of the goodput of both.
    pub share: f64,
    /// Goodput of the rival as a share of what it gets beside an honest receiver.
    pub rival: f64,
    /// Data packets that the queue drops, as a share of those that both senders send.
    pub drops: f64,
    /// The same without a lie.
    pub honest_drops: f64,
}

/// All attacks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AttackReport {
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// Length of each run, seconds.
    pub duration_s: f64,
    /// Runs of each attack.
    pub seeds: u32,
    /// By variant, then by lie.
    pub attacks: Vec<Attack>,
}

/// What one run shows; sums over several runs.
#[derive(Clone, Copy, Default, Debug)]
struct AttackResult {
    goodput: [f64; 2],
    sent: f64,
    dropped: f64,
}

impl AttackResult {
    fn of(result: &RunResult) -> AttackResult {
        let goodput = |flow: usize| result.flows[flow].goodput() / 1e6;
        AttackResult {
            goodput: [goodput(0), goodput(1)],
            sent: result.flows.iter().map(|flow| flow.send.sent.total() as f64).sum(),
            dropped: result.flows.iter().map(|flow| flow.queue_drops as f64).sum(),
        }
    }

    fn plus(self, other: AttackResult) -> AttackResult {
        AttackResult {
            goodput: [self.goodput[0] + other.goodput[0], self.goodput[1] + other.goodput[1]],
            sent: self.sent + other.sent,
            dropped: self.dropped + other.dropped,
        }
    }

    fn drops(self) -> f64 {
        ratio(self.dropped, self.sent)
    }
}

/// Zero if nothing was sent.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Runs all attacks. `done` is called after each run. None if `stop` became true.
///
/// # Errors
/// None in practice: the path is valid.
pub fn attack(
    options: &AttackOptions,
    stop: &AtomicBool,
    done: impl Fn() + Sync,
) -> Result<Option<AttackReport>, Error> {
    let profile = Arc::new(Profile::parse("attacked", ATTACKED_PATH)?);
    let honest_or_not = || std::iter::once(None).chain(options.lies.iter().copied().map(Some));
    let jobs: Vec<(&NamedVariant, Option<Misbehavior>)> =
        options.variants.iter().flat_map(|variant| honest_or_not().map(move |lie| (variant, lie))).collect();
    let run_all = |(variant, lie): &(&NamedVariant, Option<Misbehavior>)| -> Result<Option<AttackResult>, Error> {
        let mut sum = AttackResult::default();
        for seed in 1..=u64::from(options.seeds) {
            let scenario = scenario(&profile, variant, *lie, options.duration, seed)?;
            let Ok((result, _)) = run_unless(&scenario, reknit_sim::NoTracer, stop) else { return Ok(None) };
            sum = sum.plus(AttackResult::of(&result));
            done();
        }
        Ok(Some(sum))
    };
    let outcomes: Vec<Option<AttackResult>> = jobs.par_iter().map(run_all).collect::<Result<_, _>>()?;
    let Some(outcomes) = outcomes.into_iter().collect::<Option<Vec<AttackResult>>>() else { return Ok(None) };
    let mut attacks = Vec::new();
    let runs = f64::from(options.seeds);
    for (of_variant, variant) in outcomes.chunks(1 + options.lies.len()).zip(&options.variants) {
        let honest = of_variant[0];
        for (lied, lie) in of_variant[1..].iter().zip(&options.lies) {
            attacks.push(Attack {
                variant: variant.name.clone(),
                lie: *lie,
                liar_mbit_s: lied.goodput[0] / runs,
                honest_mbit_s: honest.goodput[0] / runs,
                gain: ratio(lied.goodput[0], honest.goodput[0]),
                share: ratio(lied.goodput[0], lied.goodput[0] + lied.goodput[1]),
                rival: ratio(lied.goodput[1], honest.goodput[1]),
                drops: lied.drops(),
                honest_drops: honest.drops(),
            });
        }
    }
    let (duration_s, seeds) = (options.duration.as_secs_f64(), options.seeds);
    Ok(Some(AttackReport { reknit: crate::VERSION, duration_s, seeds, attacks }))
}

/// The number of runs.
pub fn runs(options: &AttackOptions) -> u64 {
    (options.variants.len() * (1 + options.lies.len())) as u64 * u64::from(options.seeds)
}

fn scenario(
    profile: &Arc<Profile>,
    variant: &NamedVariant,
    lie: Option<Misbehavior>,
    duration: Duration,
    seed: u64,
) -> Result<Scenario, Error> {
    let honest = FlowSpec::bulk(variant.composition.clone());
    let rival = FlowSpec { start: Instant::ZERO + Duration::from_millis(100), ..honest.clone() };
    Ok(Scenario {
        profile: profile.clone(),
        tcp: tcp_config(profile)?,
        flows: vec![FlowSpec { lie, ..honest }, rival],
        duration,
        warm_up: Duration::ZERO,
        seed,
        phases: Phases::Drawn,
        sample_every: None,
        transport: None,
    })
}
