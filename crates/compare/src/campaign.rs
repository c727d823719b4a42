//! A comparison: variants side by side on one path, and the speed to measure them by.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use reknit_sim::{NoTracer, Plan, RunResult, Scenario, run_unless};
use serde::Serialize;

use crate::contestants::{self, Contestant};
use crate::question::{Setting, Stage};
use crate::{Error, Estimate, Run};

/// What to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// On what, for how long.
    pub setting: Setting,
    /// Names of variants; none: those of the plan, or else all, or those that the files start from.
    pub variants: Vec<String>,
    /// Runs of each variant, with the seeds from 1 to this; none: as the plan says, or else 5.
    pub seeds: Option<u32>,
}

impl Question {
    fn contestants(&self, stage: &Stage) -> Result<Vec<Contestant>, Error> {
        let plan = &self.setting.plan;
        if !self.variants.is_empty() || plan.variants.is_empty() {
            return contestants::choose("--variants", &self.variants, &stage.customs, stage.of_files());
        }
        let place = format!("{}: variants", plan.place);
        contestants::choose(&place, &plan.variants, &stage.customs, stage.of_files())
    }
}

/// One simulation to run.
#[derive(Clone, Debug)]
pub struct Job {
    contestant: Option<usize>,
    /// What is simulated.
    pub scenario: Scenario,
}

impl Job {
    /// Its place among the contestants; none for the reference, `sack` on the path in order.
    pub fn contestant(&self) -> Option<usize> {
        self.contestant
    }

    /// Runs it. None if `stop` became true on the way.
    pub fn simulate(&self, stop: &AtomicBool) -> Option<RunResult> {
        run_unless(&self.scenario, NoTracer, stop).ok().map(|(result, _)| result)
    }
}

/// A question with everything looked up.
#[derive(Clone, Debug)]
pub struct Campaign {
    stage: Stage,
    seeds: u32,
    /// Who takes part, in the order asked for.
    pub contestants: Vec<Contestant>,
    /// What works against itself in the user's files.
    pub warnings: Vec<String>,
    /// The simulations: first the reference, then each contestant's by seed.
    pub jobs: Vec<Job>,
}

/// One variant with its finished runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub variant: String,
    /// One for each seed.
    pub runs: Vec<Run>,
    /// Bytes that arrived in order, Mbit/s.
    pub goodput_mbit_s: Estimate,
    /// Mean goodput as a share of that of `sack` in order.
    pub of_in_order: f64,
    /// What it did without because the two ends did not agree on it.
    pub fell_back: Vec<String>,
}

/// Everything that was found: the JSON document (`docs/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of the document's form.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// The path's name.
    pub path: String,
    /// What it is.
    pub description: String,
    /// Length of each run in its own time.
    pub duration_s: f64,
    /// For so long nothing counts.
    pub warm_up_s: f64,
    /// Runs of each variant.
    pub seeds: u32,
    /// The file that says who shared the path; none if there is none.
    pub scenario: Option<String>,
    /// Connections that shared the path.
    pub flows: usize,
    /// Goodput of `sack` on the path without whatever reorders, Mbit/s.
    pub in_order_mbit_s: f64,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// One for each variant, in the order asked for.
    pub variants: Vec<Row>,
}

impl Campaign {
    /// Looks everything up.
    ///
    /// # Errors
    /// If the question is wrong: names the file, key or flag, and what is allowed.
    pub fn new(question: &Question) -> Result<Campaign, Error> {
        let stage = question.setting.look_up()?;
        let contestants = question.contestants(&stage)?;
        let seeds = question.seeds.or(stage.plan.seeds).unwrap_or(5);
        let reference = contestants::find("sack", &[]).map_err(Error::Failed)?;
        let mut jobs = vec![Job { contestant: None, scenario: stage.in_order().scenario(&reference, 1) }];
        for (i, variant) in contestants.iter().enumerate() {
            let of_seed = |seed| Job { contestant: Some(i), scenario: stage.scenario(variant, seed) };
            jobs.extend((1..=u64::from(seeds)).map(of_seed));
        }
        Ok(Campaign { warnings: stage.warnings(), stage, seeds, contestants, jobs })
    }

    /// Runs all simulations by `simulate`, on all processors, and collects what was finished: `simulate` returns none for
    /// a run that was given up.
    ///
    /// # Errors
    /// The first of `simulate`.
    pub fn run<E: Send>(
        &self,
        simulate: impl Fn(&Job) -> Result<Option<RunResult>, E> + Sync + Send,
    ) -> Result<Comparison, E> {
        let results: Vec<Option<RunResult>> = self.jobs.par_iter().map(simulate).collect::<Result<_, E>>()?;
        Ok(self.collect(&results))
    }

    fn collect(&self, results: &[Option<RunResult>]) -> Comparison {
        let Campaign { jobs, stage, .. } = self;
        let plan = &stage.plan;
        let finished = |i: usize| Some(Run::new(jobs[i].scenario.seed, plan, results[i].as_ref()?));
        let in_order = finished(0).map_or(0.0, |run| run.goodput_mbit_s);
        let rows = self.contestants.iter().enumerate().map(|(n, variant)| {
            let of_this = || (0..jobs.len()).filter(|i| jobs[*i].contestant == Some(n));
            let fell_back = of_this().find_map(|i| fall_backs(variant, plan, results[i].as_ref()?));
            Row::new(&variant.name, of_this().filter_map(finished).collect(), in_order, fell_back.unwrap_or_default())
        });
        Comparison {
            format: "reknit-compare-1",
            reknit: env!("CARGO_PKG_VERSION"),
            path: stage.profile.name.clone(),
            description: stage.description(),
            duration_s: stage.duration.as_secs_f64(),
            warm_up_s: plan.warm_up.as_secs_f64(),
            scenario: (!plan.place.is_empty()).then(|| plan.place.clone()),
            seeds: self.seeds,
            flows: jobs[0].scenario.flows.len(),
            in_order_mbit_s: in_order,
            complete: results.iter().all(Option::is_some),
            variants: rows.collect(),
        }
    }
}

/// What `variant` did without; none if no flow of it took part, for flows with a variant of their own do not tell.
pub(crate) fn fall_backs(variant: &Contestant, plan: &Plan, result: &RunResult) -> Option<Vec<String>> {
    let is_fixed: Vec<bool> = plan.parts().map(|(group, _)| group.variant.is_some()).collect();
    let flow = result.flows.iter().find(|flow| !is_fixed[flow.group as usize])?;
    Some(variant.fall_backs(&flow.last))
}

impl Row {
    fn new(variant: &str, runs: Vec<Run>, in_order: f64, fell_back: Vec<String>) -> Row {
        let goodput = Estimate::of(runs.iter().map(|run| run.goodput_mbit_s));
        let of_in_order = if in_order > 0.0 { goodput.mean / in_order } else { 0.0 };
        Row { variant: variant.to_owned(), runs, goodput_mbit_s: goodput, of_in_order, fell_back }
    }

    /// The mean of a value over the runs.
    pub fn mean(&self, value: impl Fn(&Run) -> f64) -> f64 {
        Estimate::of(self.runs.iter().map(value)).mean
    }

    /// Of all runs' events of one kind, the share that is also of another.
    pub fn share(&self, part: impl Fn(&Run) -> u64, whole: impl Fn(&Run) -> u64) -> f64 {
        let whole: u64 = self.runs.iter().map(whole).sum();
        if whole == 0 { 0.0 } else { self.runs.iter().map(part).sum::<u64>() as f64 / whole as f64 }
    }
}
