//! How goodput relative to the references varies over the paths of a matrix: the JSON document of `docs/reference/json.md`.

use reknit_units::Duration;
use serde::{Deserialize, Serialize};

use super::Matrix;
use crate::Estimate;
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
    /// Each variant compared with each one that was named before it, path by path.
    pub differences: Vec<Difference>,
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
    /// Rate of the slowest link towards the receiver, Mbit/s; none if no link has a rate.
    pub link_mbit_s: Option<f64>,
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
    /// The same as a share of what the oracle with the variant's growth reaches.
    pub of_oracle: Option<f64>,
    /// The same as a share of `link_mbit_s`.
    pub of_link: Option<f64>,
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
    /// Goodput as a share of what the oracle with the same growth reaches.
    pub of_oracle: Option<SummaryStats>,
    /// Goodput as a share of the rate of the slowest link.
    pub of_link: Option<SummaryStats>,
}

/// How much better a variant is than another one over lossless or lossy paths: the difference of their `of_in_order` on
/// each path, of which each counts once.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The variant, or a kernel.
    pub variant: String,
    /// The one that it is compared with.
    pub than: String,
    /// True for runs in real time.
    pub live: bool,
    /// True for paths that lose packets.
    pub lossy: bool,
    /// The number of paths.
    pub paths: usize,
    /// The mean difference.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); null for a single path.
    pub ci95: Option<f64>,
    /// Paths on which the variant is better, by more than 0.001.
    pub better: usize,
    /// Paths on which it is worse, by more than 0.001.
    pub worse: usize,
}

/// The least difference that counts as better or worse.
const LEAST: f64 = 0.001;

/// Mean, median and minimum of some shares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SummaryStats {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval over the paths (Student's t); null for a single path.
    pub ci95: Option<f64>,
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
        let Estimate { mean, ci95, .. } = Estimate::of(shares);
        Some(SummaryStats { mean, ci95, median, min })
    }
}

impl MatrixRun {
    /// A live run whose shares are not computed yet.
    pub fn live(path: &str, variant: &str, seed: u64, goodput_mbit_s: f64, doubt: Option<String>) -> MatrixRun {
        let (path, variant) = (path.to_owned(), variant.to_owned());
        MatrixRun {
            path,
            variant,
            live: true,
            seed,
            goodput_mbit_s,
            of_in_order: None,
            of_oracle: None,
            of_link: None,
            doubt,
        }
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
        run.of_link = share(run.goodput_mbit_s, path.and_then(|path| path.link_mbit_s));
    }
    MatrixReport {
        format: "reknit-matrix-1",
        reknit: crate::VERSION,
        duration_s: Duration::as_secs_f64(matrix.options.duration),
        seeds: matrix.options.seeds,
        complete: simulated.iter().all(Option::is_some),
        summary: summary(&paths, &runs),
        differences: differences(&paths, &runs),
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
        link_mbit_s: path.link_mbit_s,
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

/// The variants, each with whether it ran live, in the order of the runs.
fn variants(runs: &[MatrixRun]) -> Vec<(&str, bool)> {
    let mut variants: Vec<(&str, bool)> = Vec::new();
    for run in runs {
        if !variants.contains(&(&run.variant, run.live)) {
            variants.push((&run.variant, run.live));
        }
    }
    variants
}

/// A variant's share on a path: the mean over its runs.
fn of_path(runs: &[MatrixRun], path: &str, (variant, live): (&str, bool), share: Get) -> Option<f64> {
    let of_this = runs.iter().filter(|run| run.path == path && run.variant == variant && run.live == live);
    mean(of_this.filter_map(share))
}

type Get = fn(&MatrixRun) -> Option<f64>;

fn differences(paths: &[PathReferences], runs: &[MatrixRun]) -> Vec<Difference> {
    let variants = variants(runs);
    let mut all = Vec::new();
    for (i, one) in variants.iter().enumerate() {
        for other in variants[..i].iter().filter(|other| other.1 == one.1) {
            for lossy in [false, true] {
                let share = |path: &PathReferences, of| of_path(runs, &path.path, of, |run| run.of_in_order);
                let of_this = paths.iter().filter(|path| path.lossy == lossy);
                let found: Vec<f64> =
                    of_this.filter_map(|path| Some(share(path, *one)? - share(path, *other)?)).collect();
                if found.is_empty() {
                    continue;
                }
                let Estimate { mean, ci95, .. } = Estimate::of(found.iter().copied());
                let count = |is: fn(&f64) -> bool| found.iter().filter(|difference| is(difference)).count();
                all.push(Difference {
                    variant: one.0.to_owned(),
                    than: other.0.to_owned(),
                    live: one.1,
                    lossy,
                    paths: found.len(),
                    mean,
                    ci95,
                    better: count(|difference| *difference > LEAST),
                    worse: count(|difference| *difference < -LEAST),
                });
            }
        }
    }
    all
}

fn summary(paths: &[PathReferences], runs: &[MatrixRun]) -> Vec<Shares> {
    let mut all = Vec::new();
    for (variant, live) in variants(runs) {
        for lossy in [false, true] {
            let names = || paths.iter().filter(|path| path.lossy == lossy).map(|path| path.path.as_str());
            let shares = |share: Get| -> Vec<f64> {
                names().filter_map(|path| of_path(runs, path, (variant, live), share)).collect()
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
                    of_link: SummaryStats::of(shares(|run| run.of_link)),
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
    fn a_difference_pairs_the_paths() {
        let path = |path: &str, lossy| PathReferences {
            path: path.to_owned(),
            description: String::new(),
            lossy,
            link_mbit_s: None,
            in_order_mbit_s: Some(1.0),
            oracle_mbit_s: None,
            oracle_reno_mbit_s: None,
            oracle_bbr1_mbit_s: None,
            oracle_bbr_mbit_s: None,
        };
        let run = |path: &str, variant: &str, share| MatrixRun {
            of_in_order: Some(share),
            live: false,
            ..MatrixRun::live(path, variant, 1, share, None)
        };
        // `new` is better than `old` by 0.1 on each path, which vary much more.
        let shares = [("a", 0.2), ("b", 0.5), ("c", 0.8)];
        let mut runs: Vec<MatrixRun> = shares.iter().map(|(path, share)| run(path, "old", *share)).collect();
        runs.extend(shares.iter().map(|(path, share)| run(path, "new", share + 0.1)));
        let paths = [path("a", false), path("b", false), path("c", false), path("d", true)];
        let found = differences(&paths, &runs);
        let [Difference { variant, than, paths, mean, ci95, better, worse, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((variant.as_str(), than.as_str(), *paths, *better, *worse), ("new", "old", 3, 3, 0));
        assert!((mean - 0.1).abs() < 1e-12 && ci95.unwrap() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_median_of_an_even_number_is_between_two_values() {
        let SummaryStats { mean, median, min, ci95 } = SummaryStats::of(vec![0.125, 0.875, 0.25, 0.5]).unwrap();
        assert_eq!([mean, median, min].map(f64::to_bits), [0.4375, 0.375, 0.125].map(f64::to_bits));
        // t of 3 degrees of freedom times the standard error.
        assert!((ci95.unwrap() - 3.182 * 0.330_7 / 2.0).abs() < 1e-3, "{ci95:?}");
        assert_eq!(SummaryStats::of(vec![]), None);
    }
}
