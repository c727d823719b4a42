//! Mean and confidence interval of a few runs.

/// The mean of some values and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); null for a single value.
    pub ci95: Option<f64>,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same of the normal distribution.
const Z95: f64 = 1.960;

impl Estimate {
    /// Of `values`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len();
        if n == 0 {
            return Estimate::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Estimate { mean, ci95: None };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let t = T95.get(n - 2).copied().unwrap_or(Z95);
        Estimate { mean, ci95: Some(t * (variance / n as f64).sqrt()) }
    }
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
        assert_eq!(Estimate::of([7.0]), Estimate { mean: 7.0, ci95: None });
    }
}
