//! How goodput relative to the references varies over the paths of a matrix: the JSON document of `docs/reference/json.md`.

use reknit_units::Duration;
use serde::{Deserialize, Serialize};

use super::Matrix;
use crate::references::{GrowthModel, RunKind, share};

/// The complete report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MatrixReport {
    /// Version of the document's format.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// Length of each run, seconds.
    pub duration_s: f64,
    /// Runs of each variant on each path.
    pub seeds: u32,
    /// False if the runs were interrupted.
    pub complete: bool,
    /// The references of each path.
    pub paths: Vec<PathReferences>,
    /// The spread of each variant's shares: simulated runs first, and lossless paths before lossy ones.
    pub summary: Vec<Shares>,
    /// All runs.
    pub runs: Vec<MatrixRun>,
}

/// The references of a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathReferences {
    /// Its name.
    pub path: String,
    /// Its description.
    pub description: String,
    /// True if a stage loses packets.
    pub lossy: bool,
    /// Goodput of `sack` without reordering, simulated, mean over the seeds, Mbit/s; none if it did not run.
    pub in_order_mbit_s: Option<f64>,
    /// Goodput of `oracle`, which is told about each loss and grows like CUBIC: the same mean.
    pub oracle_mbit_s: Option<f64>,
    /// Goodput of `oracle-reno`, which grows like Reno.
    pub oracle_reno_mbit_s: Option<f64>,
    /// Goodput of `oracle-bbr1`; none if no variant or kernel has the model of BBR version 1.
    pub oracle_bbr1_mbit_s: Option<f64>,
    /// Goodput of `oracle-bbr`; none if no variant has the model of BBR version 3.
    pub oracle_bbr_mbit_s: Option<f64>,
}

impl PathReferences {
    fn possible(&self, growth: GrowthModel) -> Option<f64> {
        match growth {
            GrowthModel::Cubic => self.oracle_mbit_s,
            GrowthModel::Reno => self.oracle_reno_mbit_s,
            GrowthModel::Bbr1 => self.oracle_bbr1_mbit_s,
            GrowthModel::Bbr => self.oracle_bbr_mbit_s,
        }
    }
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatrixRun {
    /// The path's name.
    pub path: String,
    /// The variant, or a kernel.
    pub variant: String,
    /// True if it ran in real time.
    pub live: bool,
    /// Seed of the path's random decisions.
    pub seed: u64,
    /// Bytes that arrived in order, Mbit/s.
    pub goodput_mbit_s: f64,
    /// The same as a share of `in_order_mbit_s`.
    pub of_in_order: Option<f64>,
    /// The same as a share of what is possible with the variant's growth.
    pub of_oracle: Option<f64>,
    /// Why a live result is in doubt; none if it is not.
    pub doubt: Option<String>,
}

/// The spread of a variant's shares over lossless or lossy paths. The share of a path is the mean over its runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shares {
    /// The variant, or a kernel.
    pub variant: String,
    /// True for runs in real time.
    pub live: bool,
    /// True for paths that lose packets.
    pub lossy: bool,
    /// The number of paths.
    pub paths: usize,
    /// Goodput as a share of that on the in-order path.
    pub of_in_order: Option<SummaryStats>,
    /// Goodput as a share of what is possible.
    pub of_oracle: Option<SummaryStats>,
}

/// Mean, median and minimum of some shares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SummaryStats {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
}

impl SummaryStats {
    fn of(mut shares: Vec<f64>) -> Option<SummaryStats> {
        shares.sort_by(f64::total_cmp);
        let (min, n) = (*shares.first()?, shares.len());
        let median = f64::midpoint(shares[(n - 1) / 2], shares[n / 2]);
        Some(SummaryStats { mean: shares.iter().sum::<f64>() / n as f64, median, min })
    }
}

impl MatrixRun {
    /// A live run whose shares are not computed yet.
    pub fn live(path: &str, variant: &str, seed: u64, goodput_mbit_s: f64, doubt: Option<String>) -> MatrixRun {
        let (path, variant) = (path.to_owned(), variant.to_owned());
        MatrixRun { path, variant, live: true, seed, goodput_mbit_s, of_in_order: None, of_oracle: None, doubt }
    }
}

pub(super) fn report(matrix: &Matrix, simulated: &[Option<f64>], live: &[MatrixRun]) -> MatrixReport {
    let paths = references(matrix, simulated);
    let mut runs = Vec::new();
    for (job, goodput) in matrix.jobs.iter().zip(simulated) {
        if let (RunKind::Variant(i), Some(goodput)) = (job.purpose, goodput) {
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
        let variant = matrix.options.variants.iter().find(|variant| variant.name == run.variant);
        let growth = variant.map_or_else(|| GrowthModel::of_kernel(&run.variant), GrowthModel::of);
        let possible = path.and_then(|path| path.possible(growth));
        run.of_in_order = share(run.goodput_mbit_s, path.and_then(|path| path.in_order_mbit_s));
        run.of_oracle = share(run.goodput_mbit_s, possible);
    }
    MatrixReport {
        format: "reknit-matrix-1",
        reknit: crate::VERSION,
        duration_s: Duration::as_secs_f64(matrix.options.duration),
        seeds: matrix.options.seeds,
        complete: simulated.iter().all(Option::is_some),
        summary: summary(&paths, &runs),
        paths,
        runs,
    }
}

fn references(matrix: &Matrix, simulated: &[Option<f64>]) -> Vec<PathReferences> {
    let mean = |path: usize, purpose: RunKind| {
        let of_this = matrix.jobs.iter().zip(simulated).filter(|(job, _)| job.path == path && job.purpose == purpose);
        mean(of_this.filter_map(|(_, goodput)| *goodput))
    };
    let one = |(i, path): (usize, &super::MatrixPath)| PathReferences {
        path: path.name.clone(),
        description: path.description.clone(),
        lossy: path.lossy,
        in_order_mbit_s: mean(i, RunKind::InOrder),
        oracle_mbit_s: mean(i, RunKind::Oracle(GrowthModel::Cubic)),
        oracle_reno_mbit_s: mean(i, RunKind::Oracle(GrowthModel::Reno)),
        oracle_bbr1_mbit_s: mean(i, RunKind::Oracle(GrowthModel::Bbr1)),
        oracle_bbr_mbit_s: mean(i, RunKind::Oracle(GrowthModel::Bbr)),
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
                    of_in_order: SummaryStats::of(of_in_order),
                    of_oracle: SummaryStats::of(shares(|run| run.of_oracle)),
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
    fn the_median_of_an_even_number_is_between_two_values() {
        let spread = SummaryStats::of(vec![0.125, 0.875, 0.25, 0.5]).unwrap();
        assert_eq!(spread, SummaryStats { mean: 0.4375, median: 0.375, min: 0.125 });
        assert_eq!(SummaryStats::of(vec![]), None);
    }
}
