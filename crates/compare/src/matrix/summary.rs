//! How shares are spread over the paths of a matrix: the JSON document (`docs/json.md`).

use reknit_units::Duration;
use serde::{Deserialize, Serialize};

use super::{Growth, Matrix, Purpose};

/// Everything that was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MatrixReport {
    /// Version of the document's form.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// Length of each run, seconds.
    pub duration_s: f64,
    /// Runs of each variant on each path.
    pub seeds: u32,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// What each path allows.
    pub paths: Vec<PathReferences>,
    /// How the shares of each variant are spread: simulated ones first, and lossless paths before lossy ones.
    pub summary: Vec<Shares>,
    /// Every run.
    pub runs: Vec<MatrixRun>,
}

/// What a path allows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathReferences {
    /// Its name.
    pub path: String,
    /// What it is.
    pub description: String,
    /// Some stage loses packets.
    pub lossy: bool,
    /// Goodput of `sack` without reordering, simulated, mean over the seeds, Mbit/s; none if it did not run.
    pub in_order_mbit_s: Option<f64>,
    /// Goodput of `oracle`, which knows each loss and grows as CUBIC; the same of its runs.
    pub possible_mbit_s: Option<f64>,
    /// Goodput of `oracle-reno`, which grows as Reno.
    pub possible_reno_mbit_s: Option<f64>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatrixRun {
    /// The path's name.
    pub path: String,
    /// The variant, or a kernel.
    pub variant: String,
    /// It ran in real time.
    pub live: bool,
    /// Seed of the path's random decisions.
    pub seed: u64,
    /// Bytes that arrived in order, Mbit/s.
    pub goodput_mbit_s: f64,
    /// The same as a share of `in_order_mbit_s`.
    pub of_in_order: Option<f64>,
    /// The same as a share of what is possible with the variant's growth: `possible_reno_mbit_s` for those that grow as
    /// Reno, else `possible_mbit_s`.
    pub of_possible: Option<f64>,
    /// Why a live result is in doubt; none if it is not.
    pub doubt: Option<String>,
}

/// How a variant's shares are spread over paths of one sort. A path's share is the mean over its runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shares {
    /// The variant, or a kernel.
    pub variant: String,
    /// It ran in real time.
    pub live: bool,
    /// The paths lose packets.
    pub lossy: bool,
    /// How many paths.
    pub paths: usize,
    /// Shares of the goodput in order.
    pub of_in_order: Option<Spread>,
    /// Shares of what is possible.
    pub of_possible: Option<Spread>,
}

/// Mean, median and least of some shares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
}

impl Spread {
    fn of(mut shares: Vec<f64>) -> Option<Spread> {
        shares.sort_by(f64::total_cmp);
        let (min, n) = (*shares.first()?, shares.len());
        let median = f64::midpoint(shares[(n - 1) / 2], shares[n / 2]);
        Some(Spread { mean: shares.iter().sum::<f64>() / n as f64, median, min })
    }
}

impl MatrixRun {
    /// A run whose shares are not known yet.
    pub fn live(path: &str, variant: &str, seed: u64, goodput_mbit_s: f64, doubt: Option<String>) -> MatrixRun {
        let (path, variant) = (path.to_owned(), variant.to_owned());
        MatrixRun { path, variant, live: true, seed, goodput_mbit_s, of_in_order: None, of_possible: None, doubt }
    }
}

pub(super) fn report(matrix: &Matrix, simulated: &[Option<f64>], live: &[MatrixRun]) -> MatrixReport {
    let paths = references(matrix, simulated);
    let mut runs = Vec::new();
    for (job, goodput) in matrix.jobs.iter().zip(simulated) {
        if let (Purpose::Variant(i), Some(goodput)) = (job.purpose, goodput) {
            let run = MatrixRun::live(
                &matrix.options.paths[job.path].name,
                &matrix.options.variants[i].name,
                job.seed,
                *goodput,
                None,
            );
            runs.push(MatrixRun { live: false, ..run });
        }
    }
    runs.extend(live.iter().cloned());
    for run in &mut runs {
        let path = paths.iter().find(|path| path.path == run.path);
        let share = |reference: Option<f64>| Some(run.goodput_mbit_s / reference.filter(|speed| *speed > 0.0)?);
        let possible = path.and_then(|path| match Growth::of(&run.variant, &matrix.options.variants) {
            Growth::Cubic => path.possible_mbit_s,
            Growth::Reno => path.possible_reno_mbit_s,
        });
        let of_in_order = share(path.and_then(|path| path.in_order_mbit_s));
        (run.of_in_order, run.of_possible) = (of_in_order, share(possible));
    }
    MatrixReport {
        format: "reknit-matrix-1",
        reknit: env!("CARGO_PKG_VERSION"),
        duration_s: Duration::as_secs_f64(matrix.options.duration),
        seeds: matrix.options.seeds,
        complete: simulated.iter().all(Option::is_some),
        summary: summary(&paths, &runs),
        paths,
        runs,
    }
}

fn references(matrix: &Matrix, simulated: &[Option<f64>]) -> Vec<PathReferences> {
    let mean = |path: usize, purpose: Purpose| {
        let of_this = matrix.jobs.iter().zip(simulated).filter(|(job, _)| job.path == path && job.purpose == purpose);
        mean(of_this.filter_map(|(_, goodput)| *goodput))
    };
    let one = |(i, path): (usize, &super::MatrixPath)| PathReferences {
        path: path.name.clone(),
        description: path.description.clone(),
        lossy: path.lossy,
        in_order_mbit_s: mean(i, Purpose::InOrder),
        possible_mbit_s: mean(i, Purpose::Possible(Growth::Cubic)),
        possible_reno_mbit_s: mean(i, Purpose::Possible(Growth::Reno)),
    };
    matrix.options.paths.iter().enumerate().map(one).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn summary(paths: &[PathReferences], runs: &[MatrixRun]) -> Vec<Shares> {
    let mut variants: Vec<(&str, bool)> = Vec::new();
    for run in runs {
        if !variants.contains(&(&run.variant, run.live)) {
            variants.push((&run.variant, run.live));
        }
    }
    let mut all = Vec::new();
    for (variant, live) in variants {
        for lossy in [false, true] {
            let of_path = |path: &str, share: fn(&MatrixRun) -> Option<f64>| {
                let of_this = runs.iter().filter(|run| run.path == path && run.variant == variant && run.live == live);
                mean(of_this.filter_map(share))
            };
            let names = || paths.iter().filter(|path| path.lossy == lossy).map(|path| path.path.as_str());
            let shares = |share: fn(&MatrixRun) -> Option<f64>| -> Vec<f64> {
                names().filter_map(|path| of_path(path, share)).collect()
            };
            let of_in_order = shares(|run| run.of_in_order);
            if !of_in_order.is_empty() {
                all.push(Shares {
                    variant: variant.to_owned(),
                    live,
                    lossy,
                    paths: of_in_order.len(),
                    of_in_order: Spread::of(of_in_order),
                    of_possible: Spread::of(shares(|run| run.of_possible)),
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of(vec![0.125, 0.875, 0.25, 0.5]).unwrap();
        assert_eq!(spread, Spread { mean: 0.4375, median: 0.375, min: 0.125 });
        assert_eq!(Spread::of(vec![]), None);
    }
}
