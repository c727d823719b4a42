//! Mean and confidence interval of a few runs, and whether they fall into two groups.

/// The mean of some values and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); null for a single value.
    pub ci95: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The two groups into which the values fall, the lower first, each with its `mean` and its number of `runs`; null
    /// if they do not. They do if the largest gap between neighbouring values in order of size is more than 3/4 of the
    /// range and at least 10 % of the mean, with at least two values on either side. The mean is then not typical of
    /// any run.
    pub two_groups: Option<[Mode; 2]>,
}

/// One of the two groups into which the values of an estimate fall.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Mode {
    /// Their mean.
    pub mean: f64,
    /// How many there are.
    pub runs: usize,
}

/// The largest gap must be more than this share of the range,
const MIN_GAP_OF_RANGE: f64 = 0.75;
/// and at least this share of the mean.
const MIN_GAP_OF_MEAN: f64 = 0.1;
/// Each group must have at least this many values.
const MIN_RUNS: usize = 2;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same for the normal distribution.
const Z95: f64 = 1.960;

impl Estimate {
    /// The estimate for `values`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len();
        if n == 0 {
            return Estimate::default();
        }
        let mean = mean(&values);
        let ci95 = (n > 1).then(|| {
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            T95.get(n - 2).copied().unwrap_or(Z95) * (variance / n as f64).sqrt()
        });
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        Estimate { mean, ci95, min: sorted[0], max: sorted[n - 1], two_groups: two_groups(&sorted) }
    }

    /// True if all values are equal.
    pub fn is_constant(&self) -> bool {
        self.min.total_cmp(&self.max).is_eq()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn two_groups(sorted: &[f64]) -> Option<[Mode; 2]> {
    let gap = |upper: usize| sorted[upper] - sorted[upper - 1];
    let upper = (1..sorted.len()).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
    let range = sorted[sorted.len() - 1] - sorted[0];
    let is_wide = gap(upper) > MIN_GAP_OF_RANGE * range && gap(upper) >= MIN_GAP_OF_MEAN * mean(sorted).abs();
    let groups = [&sorted[..upper], &sorted[upper..]];
    let are_groups = is_wide && groups.iter().all(|group| group.len() >= MIN_RUNS);
    are_groups.then(|| groups.map(|group| Mode { mean: mean(group), runs: group.len() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_values() {
        // scipy.stats.t.interval(0.95, 4, loc=3, scale=sem([1, 2, 3, 4, 5])) = 3 +- 1.9632
        let estimate = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        assert!((estimate.ci95.unwrap() - 1.9632).abs() < 1e-3);
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Estimate::of([7.0]), Estimate { mean: 7.0, ci95: None, min: 7.0, max: 7.0, two_groups: None });
    }

    #[test]
    fn runs_that_fall_into_two_groups_are_recognized() {
        let groups = |values: &[f64]| Estimate::of(values.iter().copied()).two_groups;
        let told = groups(&[7.5, 3.5, 3.4, 7.6, 3.6]).unwrap();
        assert!((told[0].mean - 3.5).abs() < 1e-12 && (told[1].mean - 7.55).abs() < 1e-12);
        assert_eq!(told.map(|group| group.runs), [3, 2]);
        // A single run far from the others, values that are spread, a gap that is small relative to the mean, and equal
        // values.
        for values in [&[3.5, 3.4, 3.6, 3.5, 7.5][..], &[1.0, 2.0, 4.0, 5.0], &[9.58, 9.58, 9.6, 9.6], &[1.0; 5]] {
            assert_eq!(groups(values), None, "{values:?}");
        }
    }
}
