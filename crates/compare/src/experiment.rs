//! A comparison: several variants on one path, and the reference for their goodput.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use reknit_config::{KeyError, Location};
use reknit_sim::{NoTracer, PathSource, Plan, RunResult, Scenario, run_unless};
use schemars::JsonSchema;
use serde::Serialize;

use crate::named_variant::{self, NamedVariant};
use crate::references::{GrowthModel, References, RunKind, share};
use crate::run_summary::goodput_mbit_s;
use crate::setup::{ScenarioOptions, Setup};
use crate::{Error, Estimate, RunSummary};

/// What to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareOptions {
    /// The path, the duration and so on.
    pub scenario: ScenarioOptions,
    /// Names of variants. If empty: those of the plan, or else all, or those of the variant files and their bases.
    pub variants: Vec<String>,
    /// Runs of each variant, with the seeds from 1 to this number. None: as in the plan, or else 5.
    pub seeds: Option<u32>,
    /// Whether the oracles run too. They show what is possible, and never run if several flows share the path.
    pub oracle: bool,
}

impl CompareOptions {
    fn variants(&self, setup: &Setup) -> Result<Vec<NamedVariant>, Error> {
        let plan = &self.scenario.plan;
        let chosen = if !self.variants.is_empty() || plan.variants.is_empty() {
            let refuse = |error: KeyError| error.at(Location::argument("variants"));
            named_variant::choose(refuse, &self.variants, |name| setup.expand(name), setup.of_files())
        } else {
            let refuse = |error: KeyError| error.inside("variants").at(&plan.location);
            named_variant::choose(refuse, &plan.variants, |name| setup.expand(name), setup.of_files())
        };
        chosen?.into_iter().map(|variant| setup.with_settings(variant)).collect()
    }
}

/// One simulation to run.
#[derive(Clone, Debug)]
pub struct Job {
    purpose: RunKind,
    /// The scenario to simulate.
    pub scenario: Scenario,
}

impl Job {
    /// Its index among the variants; none for the references.
    pub fn variant(&self) -> Option<usize> {
        match self.purpose {
            RunKind::Variant(i) => Some(i),
            RunKind::InOrder | RunKind::Oracle(_) => None,
        }
    }

    /// Runs it. None if `stop` became true.
    pub fn simulate(&self, stop: &AtomicBool) -> Option<RunResult> {
        run_unless(&self.scenario, NoTracer, stop).ok().map(|(result, _)| result)
    }
}

/// A comparison with all names resolved.
#[derive(Clone, Debug)]
pub struct PreparedComparison {
    setup: Setup,
    seeds: u32,
    references: References,
    /// The growths for which the oracle runs.
    growths: Vec<GrowthModel>,
    /// The variants, in the order given.
    pub variants: Vec<NamedVariant>,
    warnings: Vec<String>,
    /// The simulations: first the references, then those of each variant by seed.
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
    /// Goodput of the oracle on the same path, Mbit/s, mean over the seeds: of `oracle-reno`, `oracle-bbr` or `oracle-bbr1` for variants that grow like these, else of `oracle`. Null if it did not run (several flows, `--no-oracle`), and without SACK.
    pub oracle_mbit_s: Option<f64>,
    /// Mean goodput as a share of `oracle_mbit_s` (the column `of oracle` of tables); null if that is null or zero.
    pub of_oracle: Option<f64>,
    /// Options that it did without because the other end does not support them, and what it did instead; usually empty.
    pub fell_back: Vec<String>,
    /// The numbers in `shown` of the runs: mean over the finished runs that have them.
    pub shown: BTreeMap<String, f64>,
}

/// All results, as the JSON document of `docs/reference/json.md`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Version of the document's format: `reknit-compare-1`.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// The path's name.
    pub path: String,
    /// Description of the scenario if it has one, else of the path.
    pub description: String,
    /// Length of each run, seconds of simulated time.
    pub duration_s: f64,
    /// Warm-up at the beginning of each run, seconds: all numbers below leave it out.
    pub warm_up_s: f64,
    /// Runs of each variant that were asked for, with the seeds from 1 to this number.
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

/// Comparisons on several paths, as the JSON document of `docs/reference/json.md`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeveralPaths<'a> {
    /// Version of the document's format.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// One for each path, in the order given.
    pub paths: &'a [Comparison],
}

impl SeveralPaths<'_> {
    /// The document for these comparisons.
    pub fn of(paths: &[Comparison]) -> SeveralPaths<'_> {
        SeveralPaths {
            format: "reknit-compare-paths-1",
            reknit: crate::VERSION,
            complete: paths.iter().all(|comparison| comparison.complete),
            paths,
        }
    }
}

impl PreparedComparison {
    /// Resolves all names.
    ///
    /// # Errors
    /// If an option is invalid. Names the file, key or option, and what is allowed.
    pub fn new(options: &CompareOptions) -> Result<PreparedComparison, Error> {
        let setup = options.scenario.look_up()?;
        let variants = options.variants(&setup)?;
        let seeds = options.seeds.or(setup.plan.seeds).unwrap_or(5);
        let references = References::find()?;
        let is_needed = |growth: &GrowthModel| variants.iter().any(|variant| GrowthModel::of(variant) == *growth);
        let has_limit = options.oracle && setup.has_one_flow();
        let growths = GrowthModel::ALL.into_iter().filter(|growth| has_limit && is_needed(growth)).collect();
        let (warnings, jobs) = (setup.warnings(), Vec::new());
        let mut experiment = PreparedComparison { setup, seeds, references, growths, variants, warnings, jobs };
        experiment.jobs = experiment.jobs();
        Ok(experiment)
    }

    /// One experiment for each of these paths, or on the path of the scenario if there are none.
    ///
    /// # Errors
    /// As [`PreparedComparison::new`].
    pub fn on_paths(options: &CompareOptions, paths: Vec<PathSource>) -> Result<Vec<PreparedComparison>, Error> {
        if paths.is_empty() {
            return Ok(vec![PreparedComparison::new(options)?]);
        }
        let on = |path| {
            let scenario = ScenarioOptions { path: Some(path), ..options.scenario.clone() };
            PreparedComparison::new(&CompareOptions { scenario, ..options.clone() })
        };
        paths.into_iter().map(on).collect()
    }

    /// The warnings of all experiments, each once.
    pub fn all_warnings(experiments: &[PreparedComparison]) -> Vec<&str> {
        let mut warnings: Vec<&str> = Vec::new();
        for warning in experiments.iter().flat_map(|experiment| &experiment.warnings) {
            if !warnings.contains(&warning.as_str()) {
                warnings.push(warning);
            }
        }
        warnings
    }

    fn jobs(&self) -> Vec<Job> {
        let oracles = self.growths.iter().map(|growth| self.oracle(*growth));
        let oracles = oracles.filter(|purpose| matches!(purpose, RunKind::Oracle(_)));
        let purposes = oracles.chain((0..self.variants.len()).map(RunKind::Variant));
        let by_seed = purposes.flat_map(|purpose| (1..=u64::from(self.seeds)).map(move |seed| (purpose, seed)));
        let job = |(purpose, seed)| {
            let scenario = self.references.scenario(purpose, &self.variants, &self.setup, seed);
            Job { purpose, scenario }
        };
        std::iter::once((RunKind::InOrder, 1)).chain(by_seed).map(job).collect()
    }

    /// The purpose of the simulations of the oracle with this growth, which may be one of the variants.
    fn oracle(&self, growth: GrowthModel) -> RunKind {
        let oracle = self.references.oracle(growth);
        let is_oracle = |variant: &NamedVariant| variant.name == oracle.name && variant.parts() == oracle.parts();
        self.variants.iter().position(is_oracle).map_or(RunKind::Oracle(growth), RunKind::Variant)
    }

    /// Runs all simulations with `simulate`, on all processors, and collects the finished ones. `simulate` returns none
    /// for a run that was interrupted.
    ///
    /// # Errors
    /// The first error of `simulate`.
    pub fn run<E: Send>(
        &self,
        simulate: impl Fn(&Job) -> Result<Option<RunResult>, E> + Sync + Send,
    ) -> Result<Comparison, E> {
        let results: Vec<Option<RunResult>> = self.jobs.par_iter().map(simulate).collect::<Result<_, E>>()?;
        Ok(self.collect(&results))
    }

    fn collect(&self, results: &[Option<RunResult>]) -> Comparison {
        let PreparedComparison { jobs, setup, .. } = self;
        let plan = &setup.plan;
        let in_order = results[0].as_ref().map(goodput_mbit_s);
        let rows = (0..self.variants.len()).map(|n| self.row(n, results, in_order));
        Comparison {
            format: "reknit-compare-1",
            reknit: crate::VERSION,
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
            variants: rows.filter(|row| !row.runs.is_empty()).collect(),
        }
    }

    /// The runs of the variant with this index.
    fn row(&self, n: usize, results: &[Option<RunResult>], in_order: Option<f64>) -> Row {
        let (variant, plan) = (&self.variants[n], &self.setup.plan);
        let of_this = self.jobs.iter().zip(results).filter(|(job, _)| job.variant() == Some(n));
        let finished: Vec<(u64, &RunResult)> =
            of_this.filter_map(|(job, result)| Some((job.scenario.seed, result.as_ref()?))).collect();
        let fell_back = finished.iter().find_map(|(_, result)| fallbacks(variant, plan, result));
        let goodput = Estimate::of(finished.iter().map(|(_, result)| goodput_mbit_s(result)));
        let oracle_mbit_s = self.possible(GrowthModel::of(variant), results);
        let runs: Vec<RunSummary> =
            finished.iter().map(|(seed, result)| RunSummary::new(*seed, plan, result)).collect();
        Row {
            variant: variant.name.clone(),
            goodput_mbit_s: goodput,
            of_in_order: share(goodput.mean, in_order),
            oracle_mbit_s,
            of_oracle: share(goodput.mean, oracle_mbit_s),
            fell_back: fell_back.unwrap_or_default(),
            shown: shown(&runs),
            runs,
        }
    }

    /// Goodput of the oracle with this growth, Mbit/s: mean over its finished runs. None if there are none, and if it fell
    /// back, because then it is no limit.
    fn possible(&self, growth: GrowthModel, results: &[Option<RunResult>]) -> Option<f64> {
        if !self.growths.contains(&growth) {
            return None;
        }
        let oracle = self.oracle(growth);
        let of_oracle = self.jobs.iter().zip(results).filter(|(job, _)| job.purpose == oracle);
        let finished: Vec<&RunResult> = of_oracle.filter_map(|(_, result)| result.as_ref()).collect();
        let fell_back = fallbacks(self.references.oracle(growth), &self.setup.plan, finished.first()?)?;
        fell_back.is_empty().then(|| Estimate::of(finished.into_iter().map(goodput_mbit_s)).mean)
    }
}

/// The mean over `runs` of each number that algorithms show.
fn shown(runs: &[RunSummary]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.shown) {
        values.entry(name).or_default().push(*value);
    }
    values.into_iter().map(|(name, values)| (name.to_owned(), Estimate::of(values).mean)).collect()
}

/// What `variant` did without. None if no flow used it, because flows with their own variant are not considered.
pub(crate) fn fallbacks(variant: &NamedVariant, plan: &Plan, result: &RunResult) -> Option<Vec<String>> {
    let is_fixed: Vec<bool> = plan.workloads().map(|(group, _)| group.variant.is_some()).collect();
    let flow = result.flows.iter().find(|flow| !is_fixed[flow.group as usize])?;
    Some(flow.last.as_ref().map_or(Vec::new(), |last| variant.fallbacks(last)))
}

impl Row {
    /// The mean of a value over the runs.
    pub fn mean(&self, value: impl Fn(&RunSummary) -> f64) -> f64 {
        Estimate::of(self.runs.iter().map(value)).mean
    }

    /// The share of the events `whole`, over all runs, that are also `part`.
    pub fn share(&self, part: impl Fn(&RunSummary) -> u64, whole: impl Fn(&RunSummary) -> u64) -> f64 {
        let whole: u64 = self.runs.iter().map(whole).sum();
        if whole == 0 { 0.0 } else { self.runs.iter().map(part).sum::<u64>() as f64 / whole as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_comparison_has_only_finished_runs() {
        let mut plan = Plan::bulk(1);
        plan.path = Some(PathSource::Given("clean".to_owned()));
        let mut scenario = ScenarioOptions::of(plan);
        scenario.duration = Some(reknit_units::Duration::from_secs(1));
        let variants = vec!["sack".to_owned(), "rack".to_owned()];
        let options = CompareOptions { scenario, variants, seeds: Some(2), oracle: true };
        let experiment = PreparedComparison::new(&options).unwrap();
        let stop = AtomicBool::new(false);
        // Only `sack` with seed 2 is finished.
        let is_finished = |job: &Job| job.variant() == Some(0) && job.scenario.seed == 2;
        let comparison =
            experiment.run(|job| Ok::<_, Error>(is_finished(job).then(|| job.simulate(&stop)).flatten())).unwrap();
        assert!(!comparison.complete);
        assert_eq!((comparison.runs_asked, comparison.variants.len(), comparison.in_order_mbit_s), (4, 1, None));
        let row = &comparison.variants[0];
        assert_eq!((row.variant.as_str(), row.runs.len(), row.runs[0].seed, row.of_in_order), ("sack", 1, 2, None));
        assert!(row.goodput_mbit_s.mean > 0.0);
    }

    /// Compares on a path for two seconds.
    fn comparison(path: &str, variants: &[&str], flows: u32, oracle: bool) -> (usize, Comparison) {
        let mut plan = Plan::bulk(flows);
        plan.path = Some(PathSource::Given(path.to_owned()));
        let mut scenario = ScenarioOptions::of(plan);
        scenario.duration = Some(reknit_units::Duration::from_secs(2));
        let variants = variants.iter().map(|name| (*name).to_owned()).collect();
        let experiment =
            PreparedComparison::new(&CompareOptions { scenario, variants, seeds: Some(2), oracle }).unwrap();
        let stop = AtomicBool::new(false);
        let comparison = experiment.run(|job| Ok::<_, Error>(job.simulate(&stop))).unwrap();
        (experiment.jobs.len(), comparison)
    }

    #[test]
    fn what_is_possible_depends_on_how_a_window_grows() {
        let (jobs, found) = comparison("two-paths-50ms", &["newreno", "rack", "bbr", "bbr1"], 1, true);
        assert_eq!(jobs, 1 + 2 * (4 + 4));
        let of = |found: &Comparison, name: &str| {
            let row = found.variants.iter().find(|row| row.variant == name).unwrap();
            (row.goodput_mbit_s.mean, row.oracle_mbit_s, row.of_oracle)
        };
        let (_, limits) =
            comparison("two-paths-50ms", &["oracle", "oracle-reno", "oracle-bbr", "oracle-bbr1"], 1, false);
        assert_eq!(of(&limits, "oracle").1, None);
        for (name, oracle) in
            [("newreno", "oracle-reno"), ("rack", "oracle"), ("bbr", "oracle-bbr"), ("bbr1", "oracle-bbr1")]
        {
            let (goodput, possible, share) = of(&found, name);
            assert_eq!(
                (possible, share),
                (Some(of(&limits, oracle).0), Some(goodput / of(&limits, oracle).0)),
                "{name}"
            );
        }
    }

    #[test]
    fn the_oracle_runs_only_where_it_is_needed() {
        for (variants, flows, oracle, jobs, has_limit) in [
            (&["rack"][..], 1, true, 1 + 2 + 2, true),
            (&["rack", "oracle"], 1, true, 1 + 4, true),
            (&["rack"], 2, true, 1 + 2, false),
            (&["rack", "oracle"], 1, false, 1 + 4, false),
        ] {
            let (found, comparison) = comparison("clean", variants, flows, oracle);
            assert_eq!((found, comparison.variants[0].of_oracle.is_some()), (jobs, has_limit), "{variants:?} {flows}");
        }
    }

    #[test]
    fn an_oracle_without_sack_is_no_limit() {
        let mut plan = Plan::bulk(1);
        plan.path = Some(PathSource::Given("clean".to_owned()));
        let mut scenario = ScenarioOptions::of(plan);
        scenario.duration = Some(reknit_units::Duration::from_secs(1));
        scenario.set = vec!["tcp.sack=false".to_owned()];
        let options = CompareOptions { scenario, variants: vec!["newreno".to_owned()], seeds: Some(1), oracle: true };
        let stop = AtomicBool::new(false);
        let comparison =
            PreparedComparison::new(&options).unwrap().run(|job| Ok::<_, Error>(job.simulate(&stop))).unwrap();
        assert_eq!(comparison.variants[0].oracle_mbit_s, None);
        assert!(comparison.variants[0].goodput_mbit_s.mean > 0.0);
    }
}
