//! Random numbers that are the same on every machine.
//!
//! The generator is specified (PCG XSL RR 128/64) and the transformations use a portable mathematics library, so that a
//! seed gives the same numbers everywhere. Each process of each stage has its own stream, so that its decisions do not
//! affect the numbers of others.

use std::fmt;
use std::str::FromStr;

use rand_core::Rng;
use rand_pcg::Pcg64;
use reknit_units::Duration;
use serde::de::{Deserialize, Deserializer, Error};

/// The process whose stream draws the phase of a stage.
const PHASE: u32 = u32::MAX;

/// One independent stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

/// The starting points of everything periodic in a run: which of the paths taken in turn comes first, how much of the
/// first interval of constant length has passed, when flows start. With fixed phases, all runs on a path without other
/// randomness are identical, and their result may not be typical (Floyd and Jacobson, "On traffic phase effects in
/// packet-switched gateways", 1992).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, schemars::JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Phases {
    /// Each seed draws its own phases.
    #[default]
    Drawn,
    /// Phases are zero for every seed.
    Fixed,
}

impl FromStr for Phases {
    type Err = String;

    fn from_str(text: &str) -> Result<Phases, String> {
        match text {
            "drawn" => Ok(Phases::Drawn),
            "fixed" => Ok(Phases::Fixed),
            _ => Err(format!("`{text}` is neither `drawn` nor `fixed`")),
        }
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phases::Drawn => "drawn",
            Phases::Fixed => "fixed",
        })
    }
}

impl<'de> Deserialize<'de> for Phases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Phases, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Identifies a stream: the run's seed, the direction and stage, and the process of the stage.
#[derive(Clone, Copy, Debug)]
pub struct StreamId {
    /// The run's seed.
    pub seed: u64,
    /// Direction and position of the stage.
    pub stage: u32,
    /// Whether the stage's phase is drawn.
    pub phases: Phases,
}

impl StreamId {
    /// The stream of the stage's process number `process`.
    pub fn stream(self, process: u32) -> Stream {
        let which = u128::from(self.stage) << 32 | u128::from(process);
        let mut generator = Pcg64::new(u128::from(self.seed) << 1 | 1, which);
        // The first outputs for similar seeds are similar.
        for _ in 0..4 {
            generator.next_u64();
        }
        Stream(generator)
    }

    /// The phase of this stage, in [0, 1).
    pub fn phase(self) -> f64 {
        match self.phases {
            Phases::Drawn => self.stream(PHASE).uniform(),
            Phases::Fixed => 0.0,
        }
    }

    /// The starting position in a cycle of `length`.
    pub(crate) fn position(self, length: u32) -> u32 {
        #[expect(clippy::cast_sign_loss, reason = "neither factor has a sign")]
        let position = (self.phase() * f64::from(length)) as u32;
        position
    }

    /// The first interval that `stream` draws; if intervals are constant, only the part of it that the phase leaves.
    pub(crate) fn first_interval(self, interval: &Variate, stream: &mut Stream) -> Duration {
        let first = interval.draw(stream);
        match interval {
            Variate::Constant(_) => first - first.mul_f64(self.phase()),
            _ => first,
        }
    }
}

/// 64 random bits as a number in [0, 1).
pub(crate) fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

impl Stream {
    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        unit_interval(self.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        #[expect(clippy::cast_sign_loss, reason = "neither factor has a sign")]
        let number = (self.uniform() * f64::from(n)) as u32;
        number
    }

    /// True with probability `p`. Always draws, so that the sequence does not depend on `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Uniform in (0, 1], for use as the argument of a logarithm.
    fn positive(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.positive())
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller). The second value is discarded, so that every draw
    /// takes two numbers.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.positive()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// The quantile `p` of the standard normal distribution (Acklam's rational approximation, relative error below 1.2e-9).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    const TAIL: f64 = 0.024_25;
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    if (TAIL..=1.0 - TAIL).contains(&p) {
        let q = p - 0.5;
        return polynomial(&A, q * q) * q / polynomial(&B, q * q);
    }
    let lower = p.min(1.0 - p);
    let q = libm::sqrt(-2.0 * libm::log(lower));
    let value = polynomial(&C, q) / polynomial(&D, q);
    if p < 0.5 { value } else { -value }
}

/// The distribution of a delay. Negative values become zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Variate {
    /// Always this value.
    Constant(Duration),
    /// Between two bounds.
    Uniform(Duration, Duration),
    /// Mean and standard deviation.
    Normal(Duration, Duration),
    /// Mean.
    Exponential(Duration),
    /// Mean and coefficient of variation (at least 1), of two exponentials with balanced means.
    Hyperexponential(Duration, f64),
    /// Mean and coefficient of variation.
    LogNormal(Duration, f64),
    /// One of two values, with equal probability.
    Either(Duration, Duration),
    /// Shape and scale (the smallest value): mean = scale * shape / (shape - 1).
    Pareto(f64, Duration),
    /// Shape and scale, starting at zero (Lomax): mean = scale / (shape - 1).
    ParetoII(f64, Duration),
}

impl Variate {
    /// One value.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        match *self {
            Variate::Constant(value) => value,
            Variate::Uniform(low, high) => low + (high - low).mul_f64(stream.uniform()),
            Variate::Normal(mean, sd) => {
                Duration::from_secs_f64(mean.as_secs_f64() + sd.as_secs_f64() * stream.normal())
            }
            Variate::Exponential(mean) => mean.mul_f64(stream.exponential()),
            Variate::Hyperexponential(mean, cov) => {
                let c2 = cov * cov;
                let p = f64::midpoint(1.0, libm::sqrt((c2 - 1.0) / (c2 + 1.0)));
                let branch = if stream.chance(p) { p } else { 1.0 - p };
                mean.mul_f64(stream.exponential() / (2.0 * branch))
            }
            Variate::LogNormal(mean, cov) => {
                let variance = libm::log(1.0 + cov * cov);
                mean.mul_f64(libm::exp(libm::sqrt(variance) * stream.normal() - variance / 2.0))
            }
            Variate::Either(a, b) => {
                if stream.chance(0.5) {
                    a
                } else {
                    b
                }
            }
            Variate::Pareto(shape, scale) => scale.mul_f64(libm::pow(stream.positive(), -1.0 / shape)),
            Variate::ParetoII(shape, scale) => scale.mul_f64(libm::pow(stream.positive(), -1.0 / shape) - 1.0),
        }
    }

    /// The mean of the distribution, if it has one.
    pub fn mean(&self) -> Option<Duration> {
        match *self {
            Variate::Constant(mean)
            | Variate::Normal(mean, _)
            | Variate::Exponential(mean)
            | Variate::LogNormal(mean, _)
            | Variate::Hyperexponential(mean, _) => Some(mean),
            Variate::Either(low, high) | Variate::Uniform(low, high) => Some((low + high) / 2),
            Variate::Pareto(shape, scale) => (shape > 1.0).then(|| scale.mul_f64(shape / (shape - 1.0))),
            Variate::ParetoII(shape, scale) => (shape > 1.0).then(|| scale.mul_f64(1.0 / (shape - 1.0))),
        }
    }
}

const FORMS: &str = "constant(TIME), uniform(LOW, HIGH), normal(MEAN, SD), exponential(MEAN), \
                     hyperexponential(MEAN, COV), lognormal(MEAN, COV), either(A, B), pareto(SHAPE, SCALE), pareto2(SHAPE, SCALE)";

impl FromStr for Variate {
    type Err = String;

    fn from_str(text: &str) -> Result<Variate, String> {
        let unknown =
            || format!("`{text}` is not a distribution; write one of {FORMS}, for example `normal(25 ms, 8 ms)`");
        let (name, rest) = text.trim().split_once('(').ok_or_else(unknown)?;
        let arguments = rest.trim_end().strip_suffix(')').ok_or_else(unknown)?;
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let time = |text: &str| text.parse::<Duration>().map_err(|e| e.to_string());
        let number = |text: &str, least: f64, what: &str| match text.parse::<f64>() {
            Ok(value) if value >= least && value.is_finite() => Ok(value),
            _ => Err(format!("`{text}` is not {what} of at least {least}")),
        };
        match (name.trim(), &arguments[..]) {
            ("constant", [value]) => Ok(Variate::Constant(time(value)?)),
            ("uniform", [low, high]) => match (time(low)?, time(high)?) {
                (low, high) if low <= high => Ok(Variate::Uniform(low, high)),
                _ => Err(format!("`{text}`: the lower bound is above the upper bound")),
            },
            ("normal", [mean, sd]) => Ok(Variate::Normal(time(mean)?, time(sd)?)),
            ("exponential", [mean]) => Ok(Variate::Exponential(time(mean)?)),
            ("hyperexponential", [mean, cov]) => {
                Ok(Variate::Hyperexponential(time(mean)?, number(cov, 1.0, "a coefficient of variation")?))
            }
            ("lognormal", [mean, cov]) => {
                Ok(Variate::LogNormal(time(mean)?, number(cov, 0.0, "a coefficient of variation")?))
            }
            ("either", [a, b]) => Ok(Variate::Either(time(a)?, time(b)?)),
            ("pareto", [shape, scale]) => Ok(Variate::Pareto(number(shape, 0.01, "a shape")?, time(scale)?)),
            ("pareto2", [shape, scale]) => Ok(Variate::ParetoII(number(shape, 0.01, "a shape")?, time(scale)?)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Variate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variate::Constant(value) => write!(f, "constant({value})"),
            Variate::Uniform(low, high) => write!(f, "uniform({low}, {high})"),
            Variate::Normal(mean, sd) => write!(f, "normal({mean}, {sd})"),
            Variate::Exponential(mean) => write!(f, "exponential({mean})"),
            Variate::Hyperexponential(mean, cov) => write!(f, "hyperexponential({mean}, {cov})"),
            Variate::LogNormal(mean, cov) => write!(f, "lognormal({mean}, {cov})"),
            Variate::Either(a, b) => write!(f, "either({a}, {b})"),
            Variate::Pareto(shape, scale) => write!(f, "pareto({shape}, {scale})"),
            Variate::ParetoII(shape, scale) => write!(f, "pareto2({shape}, {scale})"),
        }
    }
}

impl schemars::JsonSchema for Variate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "distribution".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "distribution" })
    }
}

impl<'de> Deserialize<'de> for Variate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Variate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of 200,000 draws, in milliseconds.
    fn moments(text: &str) -> (f64, f64) {
        let variate: Variate = text.parse().unwrap();
        let mut stream = StreamId { seed: 1, stage: 0, phases: Phases::Fixed }.stream(0);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| variate.draw(&mut stream).as_secs_f64() * 1e3).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
        (mean, variance.sqrt())
    }

    #[test]
    fn phases_differ_between_seeds_and_do_not_affect_the_streams() {
        let id = |seed, phases| StreamId { seed, stage: 3, phases };
        let drawn: Vec<u32> = (1..=1000).map(|seed| id(seed, Phases::Drawn).position(2)).collect();
        let second = drawn.iter().filter(|position| **position == 1).count();
        assert!((450..550).contains(&second) && drawn.iter().all(|position| *position < 2), "{second}");
        assert_eq!(id(7, Phases::Fixed).position(2), 0);
        let constant = Variate::Constant(Duration::from_secs(15));
        let first = |phases| id(7, phases).first_interval(&constant, &mut id(7, phases).stream(0));
        assert_eq!(first(Phases::Fixed), Duration::from_secs(15));
        assert!(!first(Phases::Drawn).is_zero() && first(Phases::Drawn) < Duration::from_secs(15));
        assert_eq!(id(7, Phases::Fixed).stream(1).bits(), id(7, Phases::Drawn).stream(1).bits());
    }

    #[test]
    fn distributions_have_their_moments() {
        // Standard errors are below 0.2 % of each value, except where the tail is heavy.
        for (text, mean, sd, tolerance) in [
            ("constant(25 ms)", 25.0, 0.0, 1e-9),
            ("uniform(0 ms, 50 ms)", 25.0, 50.0 / 12f64.sqrt(), 0.01),
            ("normal(25 ms, 8 ms)", 25.0, 8.0, 0.01),
            ("exponential(25 ms)", 25.0, 25.0, 0.01),
            ("hyperexponential(25 ms, 4)", 25.0, 100.0, 0.04),
            ("lognormal(25 ms, 1)", 25.0, 25.0, 0.03),
            ("either(10 ms, 30 ms)", 20.0, 10.0, 0.01),
            ("pareto(3, 10 ms)", 15.0, 8.66, 0.1),
            ("pareto2(3, 10 ms)", 5.0, 8.66, 0.1),
        ] {
            let (m, s) = moments(text);
            assert!((m - mean).abs() <= tolerance * mean, "{text}: mean {m}, expected {mean}");
            assert!((s - sd).abs() <= tolerance * sd.max(1.0), "{text}: sd {s}, expected {sd}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        let mut stream = StreamId { seed: 7, stage: 3, phases: Phases::Fixed }.stream(1);
        let drawn: Vec<u64> = (0..3)
            .map(|_| Variate::Normal(Duration::from_secs(1), Duration::from_millis(300)))
            .map(|v| v.draw(&mut stream).as_nanos())
            .collect();
        assert_eq!(drawn, [1_761_896_091, 1_079_004_753, 311_931_611]);
    }

    #[test]
    fn normal_quantiles() {
        for (p, z) in [(0.5, 0.0), (0.841_344_746, 1.0), (0.022_750_132, -2.0), (0.998_650_102, 3.0)] {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn streams_are_independent() {
        let mut a = StreamId { seed: 1, stage: 0, phases: Phases::Fixed }.stream(0);
        let mut b = StreamId { seed: 1, stage: 0, phases: Phases::Fixed }.stream(1);
        let mut c = StreamId { seed: 2, stage: 0, phases: Phases::Fixed }.stream(0);
        let same = (0..1000).filter(|_| {
            let (a, b, c) = (a.chance(0.5), b.chance(0.5), c.chance(0.5));
            a == b || a == c
        });
        let same = same.count();
        assert!((650..850).contains(&same), "{same}");
    }

    #[test]
    fn an_unknown_distribution_is_answered_with_the_known_ones() {
        let error = "gauss(25 ms, 8 ms)".parse::<Variate>().unwrap_err();
        assert!(error.contains("normal(MEAN, SD)"), "{error}");
        for text in ["normal(25 ms)", "normal(25, 8)", "uniform(9 ms, 1 ms)", "pareto(0, 1 ms)", "normal"] {
            assert!(text.parse::<Variate>().is_err(), "{text} was accepted");
        }
    }
}
