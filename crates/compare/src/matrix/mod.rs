//! Variants over many paths: the share of what each path allows, and how it is spread over the paths.

mod store;
mod summary;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reknit_path::{Profile, RandomPath};
use reknit_sim::{NoTracer, PathSource, Plan, run_unless};
use reknit_units::Duration;
use reknit_variants::seam::Seam;
use toml::Table;

pub use self::store::MatrixStore;
pub use self::summary::{MatrixReport, MatrixRun, PathReferences, Shares, Spread};
use crate::setup::Setup;
use crate::{Error, InputError, NamedVariant, ScenarioOptions, named_variant};

/// The variants that are told of each loss: what is possible, with the growth of CUBIC and of Reno.
const ORACLES: [&str; 2] = ["oracle", "oracle-reno"];
/// What goodput in order is measured by.
const REFERENCE: &str = "sack";
/// Reno's growth, as variant files call it.
const RENO: &str = "reno";

/// A path of a matrix.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixPath {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Some stage loses packets.
    pub lossy: bool,
    table: Table,
}

impl MatrixPath {
    /// The path with this number of the draw `seed` ([`RandomPath`]).
    ///
    /// # Errors
    /// None: each draw is a path. The reader does not know that.
    pub fn draw(seed: u64, number: u32) -> Result<MatrixPath, InputError> {
        let path = RandomPath::draw(seed, number);
        MatrixPath::new(&path.name, path.table()?)
    }

    /// All path files in a folder, by name.
    ///
    /// # Errors
    /// Names the file, the key and what is allowed.
    pub fn load_all(folder: &Path) -> Result<Vec<MatrixPath>, InputError> {
        let location = folder.display().to_string();
        let refused = |error: std::io::Error| InputError::new(&location, error.to_string());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(refused)? {
            let file = entry.map_err(refused)?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(InputError::new(&location, "there is no path file (NAME.toml) in this folder"));
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
        Ok(MatrixPath { name: name.to_owned(), description, lossy: profile.loses_packets(), table })
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// On which paths.
    pub paths: Vec<MatrixPath>,
    /// Who takes part in simulation.
    pub variants: Vec<NamedVariant>,
    /// Length of each run, in its own time.
    pub duration: Duration,
    /// Runs on each path, with the seeds from 1 to this.
    pub seeds: u32,
}

/// What a simulation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    InOrder,
    /// By the oracle with this growth.
    Possible(Growth),
    Variant(usize),
}

/// How a window grows without losses, as far as the oracles differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Growth {
    Cubic,
    Reno,
}

impl Growth {
    /// That of a variant, or of a kernel such as `kernel:cubic`. What grows in neither way is measured by the faster one.
    fn of(name: &str, variants: &[NamedVariant]) -> Growth {
        let is_reno = match variants.iter().find(|variant| variant.name == name) {
            Some(variant) => {
                variant.composition.faces(Seam::CongestionControl).iter().any(|face| face.algorithm == RENO)
            }
            None => name.starts_with("kernel:reno"),
        };
        if is_reno { Growth::Reno } else { Growth::Cubic }
    }
}

/// One simulation to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixJob {
    path: usize,
    purpose: Purpose,
    seed: u64,
}

/// A matrix with everything looked up.
#[derive(Debug)]
pub struct Matrix {
    options: MatrixOptions,
    setups: Vec<Setup>,
    reference: NamedVariant,
    /// With the growth of CUBIC and of Reno.
    oracles: [NamedVariant; 2],
    /// The simulations.
    pub jobs: Vec<MatrixJob>,
}

impl Matrix {
    /// Looks everything up.
    ///
    /// # Errors
    /// Names the path, the key and what is allowed.
    pub fn new(options: MatrixOptions) -> Result<Matrix, Error> {
        let look_up = |path: &MatrixPath| {
            let source = Some(PathSource::GivenInline(path.table.clone()));
            let duration = Some(options.duration);
            ScenarioOptions { path: source, duration, ..ScenarioOptions::of(Plan::bulk(1)) }.look_up()
        };
        let setups: Vec<Setup> = options.paths.iter().map(look_up).collect::<Result<_, _>>()?;
        let find = |name: &str| named_variant::find(name, &[]).map_err(|error| Error::Failed(error.to_string()));
        let reference = find(REFERENCE)?;
        let oracles = [find(ORACLES[0])?, find(ORACLES[1])?];
        let mut purposes = vec![Purpose::InOrder, Purpose::Possible(Growth::Cubic), Purpose::Possible(Growth::Reno)];
        purposes.extend((0..options.variants.len()).map(Purpose::Variant));
        let seeds = 1..=u64::from(options.seeds);
        let jobs = (0..setups.len())
            .flat_map(|path| purposes.iter().map(move |purpose| (path, *purpose)))
            .flat_map(|(path, purpose)| seeds.clone().map(move |seed| MatrixJob { path, purpose, seed }))
            .collect();
        Ok(Matrix { options, setups, reference, oracles, jobs })
    }

    /// The paths, in order.
    pub fn paths(&self) -> &[MatrixPath] {
        &self.options.paths
    }

    /// The path with this index, to run live.
    pub fn profile(&self, path: usize) -> &Profile {
        &self.setups[path].profile
    }

    /// The options of the TCP at both ends of the path with this index.
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

    /// Runs a simulation; its goodput in Mbit/s. None if `stop` became true on the way.
    pub fn simulate(&self, job: &MatrixJob, stop: &AtomicBool) -> Option<f64> {
        let setup = &self.setups[job.path];
        let variant = self.variant(job.purpose);
        let scenario = match job.purpose {
            Purpose::InOrder => setup.in_order().scenario(variant, job.seed),
            Purpose::Possible(_) | Purpose::Variant(_) => setup.scenario(variant, job.seed),
        };
        let (result, _) = run_unless(&scenario, NoTracer, stop).ok()?;
        Some(result.flows.iter().map(reknit_sim::FlowResult::goodput).sum::<f64>() / 1e6)
    }

    fn variant(&self, purpose: Purpose) -> &NamedVariant {
        match purpose {
            Purpose::InOrder => &self.reference,
            Purpose::Possible(Growth::Cubic) => &self.oracles[0],
            Purpose::Possible(Growth::Reno) => &self.oracles[1],
            Purpose::Variant(i) => &self.options.variants[i],
        }
    }

    /// All runs: `simulated` by job, and those that ran live.
    pub fn report(&self, simulated: &[Option<f64>], live: &[MatrixRun]) -> MatrixReport {
        summary::report(self, simulated, live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(variants: &[&str]) -> Matrix {
        let find = |name: &&str| named_variant::find(name, &[]).unwrap();
        Matrix::new(MatrixOptions {
            paths: (0..4).map(|number| MatrixPath::draw(2, number).unwrap()).collect(),
            variants: variants.iter().map(find).collect(),
            duration: Duration::from_secs(2),
            seeds: 2,
        })
        .unwrap()
    }

    #[test]
    fn shares_are_those_of_the_path_in_order() {
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
        }
        let of_all: usize = report.summary.iter().filter(|shares| shares.variant == "pr").map(|s| s.paths).sum();
        assert_eq!(of_all, 4);
    }

    #[test]
    fn a_run_that_was_given_up_is_no_zero() {
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
