//! Variants over many paths: their goodput relative to what each path allows, and how it varies over the paths.

mod store;
mod summary;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reknit_config::file_error;
use reknit_path::{Direction, Profile, RandomPath};
use reknit_sim::{NoTracer, PathSource, Plan, run_unless};
use reknit_units::Duration;
use toml::Table;

pub use self::store::MatrixStore;
pub use self::summary::{Difference, MatrixReport, MatrixRun, PathReferences, Shares, SummaryStats};
use crate::references::{GrowthModel, References, RunKind};
use crate::run_summary::goodput_mbit_s;
use crate::setup::Setup;
use crate::{Error, InputError, NamedVariant, ScenarioOptions};

/// A path of a matrix.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixPath {
    /// Its name.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// True if a stage loses packets.
    pub lossy: bool,
    /// Rate of the slowest link towards the receiver, Mbit/s; none if no link has a rate.
    pub link_mbit_s: Option<f64>,
    table: Table,
}

impl MatrixPath {
    /// The path with this number in the sequence of `seed` ([`RandomPath`]).
    ///
    /// # Errors
    /// None, because every drawn path is valid; the parser cannot know that.
    pub fn draw(seed: u64, number: u32) -> Result<MatrixPath, InputError> {
        let path = RandomPath::draw(seed, number);
        MatrixPath::new(&path.name, path.table()?)
    }

    /// All path files in a folder, by name.
    ///
    /// # Errors
    /// Names the file, the key, and what is allowed.
    pub fn load_all(folder: &Path) -> Result<Vec<MatrixPath>, InputError> {
        let location = folder.display().to_string();
        let refused = |error: std::io::Error| InputError::of_argument("paths_from", &location, file_error(&error));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(refused)? {
            let file = entry.map_err(refused)?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(InputError::of_argument("paths_from", &location, "contains no path file (*.toml)"));
        }
        let load = |file: &std::path::PathBuf| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            MatrixPath::new(&name, Profile::table(&file.display().to_string())?)
        };
        files.iter().map(load).collect()
    }

    fn new(name: &str, table: Table) -> Result<MatrixPath, InputError> {
        let profile = Profile::from_table_with(name, table.clone(), &[])?;
        let description = profile.description.clone();
        let link_mbit_s = profile.bottleneck(Direction::Forward).map(|rate| rate.bits_per_second() as f64 / 1e6);
        Ok(MatrixPath { name: name.to_owned(), description, lossy: profile.loses_packets(), link_mbit_s, table })
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// The paths.
    pub paths: Vec<MatrixPath>,
    /// The variants to simulate.
    pub variants: Vec<NamedVariant>,
    /// The growths of kernels that run live: their oracles are simulated, too.
    pub live_growths: Vec<GrowthModel>,
    /// Length of each run in simulated time.
    pub duration: Duration,
    /// Runs on each path, with the seeds from 1 to this number.
    pub seeds: u32,
}

/// One simulation to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixJob {
    path: usize,
    purpose: RunKind,
    seed: u64,
}

/// A matrix with all names resolved.
#[derive(Debug)]
pub struct Matrix {
    options: MatrixOptions,
    setups: Vec<Setup>,
    references: References,
    /// The simulations.
    pub jobs: Vec<MatrixJob>,
}

impl Matrix {
    /// Resolves all names.
    ///
    /// # Errors
    /// Names the path, the key, and what is allowed.
    pub fn new(options: MatrixOptions) -> Result<Matrix, Error> {
        let look_up = |path: &MatrixPath| {
            let source = Some(PathSource::GivenInline(path.table.clone()));
            let duration = Some(options.duration);
            ScenarioOptions { path: source, duration, ..ScenarioOptions::of(Plan::bulk(1)) }.look_up()
        };
        let setups: Vec<Setup> = options.paths.iter().map(look_up).collect::<Result<_, _>>()?;
        let is_needed = |growth: &GrowthModel| {
            matches!(growth, GrowthModel::Cubic | GrowthModel::Reno)
                || options.live_growths.contains(growth)
                || options.variants.iter().any(|variant| GrowthModel::of(variant) == *growth)
        };
        let mut purposes = vec![RunKind::InOrder];
        purposes.extend(GrowthModel::ALL.into_iter().filter(is_needed).map(RunKind::Oracle));
        purposes.extend((0..options.variants.len()).map(RunKind::Variant));
        let seeds = 1..=u64::from(options.seeds);
        let jobs = (0..setups.len())
            .flat_map(|path| purposes.iter().map(move |purpose| (path, *purpose)))
            .flat_map(|(path, purpose)| seeds.clone().map(move |seed| MatrixJob { path, purpose, seed }))
            .collect();
        Ok(Matrix { options, setups, references: References::find()?, jobs })
    }

    /// The paths, in order.
    pub fn paths(&self) -> &[MatrixPath] {
        &self.options.paths
    }

    /// The path with this index, for live runs.
    pub fn profile(&self, path: usize) -> &Profile {
        &self.setups[path].profile
    }

    /// The TCP options of both ends on the path with this index.
    pub fn tcp(&self, path: usize) -> &reknit_tcp::Config {
        &self.setups[path].tcp
    }

    /// Length of each run.
    pub fn duration(&self) -> Duration {
        self.options.duration
    }

    /// Runs on each path.
    pub fn seeds(&self) -> u32 {
        self.options.seeds
    }

    /// Runs a simulation and returns its goodput in Mbit/s. None if `stop` became true.
    pub fn simulate(&self, job: &MatrixJob, stop: &AtomicBool) -> Option<f64> {
        let setup = &self.setups[job.path];
        let scenario = self.references.scenario(job.purpose, &self.options.variants, setup, job.seed);
        let (result, _) = run_unless(&scenario, NoTracer, stop).ok()?;
        Some(goodput_mbit_s(&result))
    }

    fn variant(&self, purpose: RunKind) -> &NamedVariant {
        self.references.variant(purpose, &self.options.variants)
    }

    /// The report of all runs: those in `simulated`, in the order of the jobs, and the live ones.
    pub fn report(&self, simulated: &[Option<f64>], live: &[MatrixRun]) -> MatrixReport {
        summary::report(self, simulated, live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named_variant;

    fn matrix(variants: &[&str]) -> Matrix {
        let find = |name: &&str| named_variant::find(name, &[]).unwrap();
        Matrix::new(MatrixOptions {
            paths: (0..4).map(|number| MatrixPath::draw(2, number).unwrap()).collect(),
            variants: variants.iter().map(find).collect(),
            live_growths: vec![],
            duration: Duration::from_secs(2),
            seeds: 2,
        })
        .unwrap()
    }

    #[test]
    fn shares_are_relative_to_the_path_in_order() {
        let matrix = matrix(&["sack", "pr"]);
        let simulated: Vec<_> = matrix.jobs.iter().map(|job| matrix.simulate(job, &AtomicBool::new(false))).collect();
        let report = matrix.report(&simulated, &[]);
        assert!(report.complete);
        assert_eq!(report.runs.len(), 4 * 2 * 2);
        for run in &report.runs {
            let path = report.paths.iter().find(|path| path.path == run.path).unwrap();
            let in_order = path.in_order_mbit_s.unwrap();
            assert!(in_order > 0.0, "{path:?}");
            assert!((run.of_in_order.unwrap() - run.goodput_mbit_s / in_order).abs() < 1e-12, "{run:?}");
            let link = path.link_mbit_s.unwrap();
            assert!(
                (run.of_link.unwrap() - run.goodput_mbit_s / link).abs() < 1e-12 && run.of_link < Some(1.0),
                "{run:?}"
            );
        }
        let of_all: usize = report.summary.iter().filter(|shares| shares.variant == "pr").map(|s| s.paths).sum();
        assert_eq!(of_all, 4);
    }

    #[test]
    fn each_growth_has_its_own_oracle() {
        let matrix = matrix(&["newreno", "rack", "bbr1"]);
        let goodput = |job: &MatrixJob| match job.purpose {
            RunKind::Oracle(GrowthModel::Cubic) => 2.0,
            RunKind::Oracle(GrowthModel::Reno) => 4.0,
            RunKind::Oracle(GrowthModel::Bbr1) => 8.0,
            _ => 1.0,
        };
        let simulated: Vec<_> = matrix.jobs.iter().map(|job| Some(goodput(job))).collect();
        let live = [("kernel:bbr+timestamps=0", 8.0), ("kernel:cubic", 2.0), ("kernel:reno", 4.0)];
        let runs: Vec<_> = live.map(|(name, _)| MatrixRun::live(&matrix.paths()[0].name, name, 1, 1.0, None)).into();
        let report = matrix.report(&simulated, &runs);
        assert_eq!(report.paths[0].oracle_bbr_mbit_s, None);
        for (name, possible) in [("newreno", 4.0), ("rack", 2.0), ("bbr1", 8.0)].into_iter().chain(live) {
            let of_oracle = report.runs.iter().find(|run| run.variant == name).unwrap().of_oracle;
            assert_eq!(of_oracle, Some(1.0 / possible), "{name}");
        }
    }

    #[test]
    fn an_interrupted_run_does_not_count_as_zero() {
        let matrix = matrix(&["pr"]);
        let mut simulated: Vec<_> = matrix.jobs.iter().map(|_| Some(1.0)).collect();
        let last = simulated.len() - 1;
        simulated[last] = None;
        let report = matrix.report(&simulated, &[]);
        assert!(!report.complete);
        assert_eq!(report.runs.len(), 4 * 2 - 1);
        assert!(report.runs.iter().all(|run| run.of_in_order == Some(1.0)));
    }
}
