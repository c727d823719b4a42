//! A comparison: variants side by side on one path, and the speed to measure them by.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use reknit_config::{Argument, KeyError};
use reknit_sim::{NoTracer, Plan, RunResult, Scenario, run_unless};
use schemars::JsonSchema;
use serde::Serialize;

use crate::named_variant::{self, NamedVariant};
use crate::setup::{ScenarioOptions, Setup};
use crate::{Error, Estimate, RunSummary};

/// What to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareOptions {
    /// On what, for how long.
    pub scenario: ScenarioOptions,
    /// Names of variants; none: those of the plan, or else all, or those that the files start from.
    pub variants: Vec<String>,
    /// Runs of each variant, with the seeds from 1 to this; none: as the plan says, or else 5.
    pub seeds: Option<u32>,
}

impl CompareOptions {
    fn variants(&self, setup: &Setup) -> Result<Vec<NamedVariant>, Error> {
        let plan = &self.scenario.plan;
        if !self.variants.is_empty() || plan.variants.is_empty() {
            let refuse = |error: KeyError| error.at(Argument::Variants);
            return named_variant::choose(refuse, &self.variants, &setup.customs, setup.of_files());
        }
        let refuse = |error: KeyError| error.inside("variants").at(&plan.location);
        named_variant::choose(refuse, &plan.variants, &setup.customs, setup.of_files())
    }
}

/// One simulation to run.
#[derive(Clone, Debug)]
pub struct Job {
    variant: Option<usize>,
    /// What is simulated.
    pub scenario: Scenario,
}

impl Job {
    /// Its index among the variants; none for the reference, `sack` on the path in order.
    pub fn variant(&self) -> Option<usize> {
        self.variant
    }

    /// Runs it. None if `stop` became true on the way.
    pub fn simulate(&self, stop: &AtomicBool) -> Option<RunResult> {
        run_unless(&self.scenario, NoTracer, stop).ok().map(|(result, _)| result)
    }
}

/// A comparison with everything looked up.
#[derive(Clone, Debug)]
pub struct Experiment {
    setup: Setup,
    seeds: u32,
    /// Who takes part, in the order asked for.
    pub variants: Vec<NamedVariant>,
    /// What works against itself in the user's files.
    pub warnings: Vec<String>,
    /// The simulations: first the reference, then each variant's by seed.
    pub jobs: Vec<Job>,
}

/// One variant with its finished runs.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Its name.
    pub variant: String,
    /// One entry per seed whose run finished.
    pub runs: Vec<RunSummary>,
    /// Bytes that arrived in order, Mbit/s: `mean` over the finished runs, and `ci95`.
    pub goodput_mbit_s: Estimate,
    /// Mean goodput as a share of `in_order_mbit_s`; null if that is null or zero.
    pub of_in_order: Option<f64>,
    /// Options that it did without because the other end does not support them, and what it did instead; usually empty.
    pub fell_back: Vec<String>,
}

/// Everything that was found: the JSON document (`docs/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Version of the document's format: `reknit-compare-1`.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// The path's name.
    pub path: String,
    /// Description of the scenario if it has one, else of the path.
    pub description: String,
    /// Length of each run, seconds of simulated time.
    pub duration_s: f64,
    /// Warm-up at the beginning of each run, seconds: all numbers below leave it out.
    pub warm_up_s: f64,
    /// Runs of each variant that were asked for; the seeds are 1 to this.
    pub seeds: u32,
    /// Runs that were asked for, all variants together.
    pub runs_asked: usize,
    /// The scenario file; null if there is none.
    pub scenario: Option<String>,
    /// Connections that shared the path.
    pub flows: usize,
    /// Goodput of `sack` on the path without reordering, Mbit/s; null if that run was interrupted.
    pub in_order_mbit_s: Option<f64>,
    /// False if the runs were interrupted; the results then have only the finished runs.
    pub complete: bool,
    /// One entry for each variant with a finished run, in the order asked for.
    pub variants: Vec<Row>,
}

/// Comparisons on several paths: the JSON document (`docs/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeveralPaths<'a> {
    /// Version of the document's form.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// One for each path, in the order asked for.
    pub paths: &'a [Comparison],
}

impl SeveralPaths<'_> {
    /// Of these.
    pub fn of(paths: &[Comparison]) -> SeveralPaths<'_> {
        SeveralPaths {
            format: "reknit-compare-paths-1",
            reknit: env!("CARGO_PKG_VERSION"),
            complete: paths.iter().all(|comparison| comparison.complete),
            paths,
        }
    }
}

impl Experiment {
    /// Looks everything up.
    ///
    /// # Errors
    /// If the options are wrong: names the file, key or flag, and what is allowed.
    pub fn new(options: &CompareOptions) -> Result<Experiment, Error> {
        let setup = options.scenario.look_up()?;
        let variants = options.variants(&setup)?;
        let seeds = options.seeds.or(setup.plan.seeds).unwrap_or(5);
        let reference = named_variant::find("sack", &[]).map_err(|error| Error::Failed(error.to_string()))?;
        let mut jobs = vec![Job { variant: None, scenario: setup.in_order().scenario(&reference, 1) }];
        for (i, variant) in variants.iter().enumerate() {
            let of_seed = |seed| Job { variant: Some(i), scenario: setup.scenario(variant, seed) };
            jobs.extend((1..=u64::from(seeds)).map(of_seed));
        }
        Ok(Experiment { warnings: setup.warnings(), setup, seeds, variants, jobs })
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
        let Experiment { jobs, setup, .. } = self;
        let plan = &setup.plan;
        let finished = |i: usize| Some(RunSummary::new(jobs[i].scenario.seed, plan, results[i].as_ref()?));
        let in_order = finished(0).map(|run| run.goodput_mbit_s);
        let rows = self.variants.iter().enumerate().map(|(n, variant)| {
            let of_this = || (0..jobs.len()).filter(|i| jobs[*i].variant == Some(n));
            let fell_back = of_this().find_map(|i| fall_backs(variant, plan, results[i].as_ref()?));
            Row::new(&variant.name, of_this().filter_map(finished).collect(), in_order, fell_back.unwrap_or_default())
        });
        Comparison {
            format: "reknit-compare-1",
            reknit: env!("CARGO_PKG_VERSION"),
            path: setup.profile.name.clone(),
            description: setup.description(),
            duration_s: setup.duration.as_secs_f64(),
            warm_up_s: plan.warm_up.as_secs_f64(),
            scenario: (!plan.location.is_empty()).then(|| plan.location.clone()),
            seeds: self.seeds,
            runs_asked: self.variants.len() * self.seeds as usize,
            flows: jobs[0].scenario.flows.len(),
            in_order_mbit_s: in_order,
            complete: results.iter().all(Option::is_some),
            variants: rows.filter(|row: &Row| !row.runs.is_empty()).collect(),
        }
    }
}

/// What `variant` did without; none if no flow of it took part, for flows with a variant of their own do not tell.
pub(crate) fn fall_backs(variant: &NamedVariant, plan: &Plan, result: &RunResult) -> Option<Vec<String>> {
    let is_fixed: Vec<bool> = plan.workloads().map(|(group, _)| group.variant.is_some()).collect();
    let flow = result.flows.iter().find(|flow| !is_fixed[flow.group as usize])?;
    Some(variant.fall_backs(&flow.last))
}

impl Row {
    fn new(variant: &str, runs: Vec<RunSummary>, in_order: Option<f64>, fell_back: Vec<String>) -> Row {
        let goodput = Estimate::of(runs.iter().map(|run| run.goodput_mbit_s));
        let of_in_order = in_order.filter(|reference| *reference > 0.0).map(|reference| goodput.mean / reference);
        Row { variant: variant.to_owned(), runs, goodput_mbit_s: goodput, of_in_order, fell_back }
    }

    /// The mean of a value over the runs.
    pub fn mean(&self, value: impl Fn(&RunSummary) -> f64) -> f64 {
        Estimate::of(self.runs.iter().map(value)).mean
    }

    /// Of all runs' events of one kind, the share that is also of another.
    pub fn share(&self, part: impl Fn(&RunSummary) -> u64, whole: impl Fn(&RunSummary) -> u64) -> f64 {
        let whole: u64 = self.runs.iter().map(whole).sum();
        if whole == 0 { 0.0 } else { self.runs.iter().map(part).sum::<u64>() as f64 / whole as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_comparison_has_what_ran_and_nothing_else() {
        let mut plan = Plan::bulk(1);
        plan.path = Some(reknit_sim::PathSource::Given("clean".to_owned()));
        let mut scenario = ScenarioOptions::of(plan);
        scenario.duration = Some(reknit_units::Duration::from_secs(1));
        let options = CompareOptions { scenario, variants: vec!["sack".to_owned(), "rack".to_owned()], seeds: Some(2) };
        let experiment = Experiment::new(&options).unwrap();
        let stop = AtomicBool::new(false);
        // Of five jobs only the third, `sack` with seed 2, is finished.
        let is_finished = |job: &Job| job.variant() == Some(0) && job.scenario.seed == 2;
        let comparison =
            experiment.run(|job| Ok::<_, Error>(is_finished(job).then(|| job.simulate(&stop)).flatten())).unwrap();
        assert!(!comparison.complete);
        assert_eq!((comparison.runs_asked, comparison.variants.len(), comparison.in_order_mbit_s), (4, 1, None));
        let row = &comparison.variants[0];
        assert_eq!((row.variant.as_str(), row.runs.len(), row.runs[0].seed, row.of_in_order), ("sack", 1, 2, None));
        assert!(row.goodput_mbit_s.mean > 0.0);
    }
}
