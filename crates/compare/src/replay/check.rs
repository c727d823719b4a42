//! Whether a replay reproduces the capture: the captured sender is simulated on the measured path, and its packets are captured
//! and analysed as those of the capture were.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use reknit_sim::run_unless;
use reknit_trace::{DirectionReport, Incident, MeasuredPath};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use super::recorder::Recorder;
use crate::reproduction::{Agreement, TO_COMPARE};
use crate::run_summary::goodput_mbit_s;
use crate::{Estimate, Job, PreparedComparison};

/// A goodput that differs by this share is as far from the capture as a count that differs by `COUNTS_WITHIN`.
const GOODPUT_WITHIN: f64 = 0.15;
/// Counts agree up to this factor, or if they are both small.
const COUNTS_WITHIN: f64 = 2.0;
const FEW: f64 = 3.0;
/// Retransmissions: a share of the packets that is small.
const FEW_RETRANSMISSIONS: f64 = 0.002;
/// As long as the interval of the goodput does not decide, up to this many times the draws are made.
pub(super) const MORE_DRAWS: u32 = 4;
/// The least number of draws to judge by.
pub(super) const MIN_DRAWS: u32 = 5;

/// Whether the replay of the captured sender does what was captured.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReplayCheck {
    /// The sender that comes closest.
    #[serde(flatten)]
    pub closest: SenderCheck,
    /// True if the user named it; else `linux` and `bbr1` were tried.
    pub is_given: bool,
    /// The captured goodput in the time that is replayed, Mbit/s.
    pub captured_mbit_s: f64,
    /// The other senders that were tried.
    pub others: Vec<SenderCheck>,
}

/// The replay of one sender, compared with the capture.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SenderCheck {
    /// The variant.
    pub sender: String,
    /// True if it reproduces the capture: nothing differs.
    pub holds: bool,
    /// What differs: `goodput`, `retransmissions`, `false_reductions`, `timeouts`.
    pub differs: Vec<&'static str>,
    /// Its runs, each with another draw of the recorded delays and losses.
    pub draws: u32,
    /// Its goodput, Mbit/s. It agrees if the whole interval is within 15 % of the captured one.
    pub replayed_mbit_s: Estimate,
    /// Retransmissions, by the verdicts on both captures.
    pub retransmissions: Count,
    /// Reductions of the window after retransmissions that were all spurious.
    pub false_reductions: Count,
    /// How often nothing was acknowledged for longer than a retransmission timer runs.
    pub timeouts: Count,
}

/// How often something happened, in the time that is replayed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Count {
    /// In the capture.
    pub captured: f64,
    /// In the replay.
    pub replayed: Estimate,
}

/// What the analysis of a capture says about its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measures {
    goodput_mbit_s: f64,
    packets: f64,
    retransmissions: f64,
    false_reductions: f64,
    timeouts: f64,
}

impl Measures {
    /// Those of the capture, of the part that is replayed.
    pub(super) fn captured(direction: &DirectionReport, path: &MeasuredPath, replayed: Duration) -> Measures {
        let share = replayed.as_secs_f64() / path.duration.as_secs_f64().max(1e-9);
        Measures::of(direction, path.goodput_mbit_s(replayed), share.min(1.0))
    }

    fn of(direction: &DirectionReport, goodput_mbit_s: f64, share: f64) -> Measures {
        let verdicts = &direction.verdicts;
        let timeouts = direction.incident(Incident::Timeouts).map_or(0, |incident| incident.times);
        Measures {
            goodput_mbit_s,
            packets: direction.packets as f64 * share,
            retransmissions: (verdicts.lost + verdicts.spurious) as f64 * share,
            false_reductions: (direction.cost.false_reductions + direction.cost.without_reduction) as f64 * share,
            timeouts: timeouts as f64 * share,
        }
    }
}

fn count_agrees(count: &Count, few: f64) -> bool {
    let (captured, replayed) = (count.captured, count.replayed.mean);
    captured <= replayed * COUNTS_WITHIN + few && replayed <= captured * COUNTS_WITHIN + few
}

impl SenderCheck {
    fn of(sender: &str, captured: &Measures, runs: &[Measures]) -> SenderCheck {
        let of = |value: fn(&Measures) -> f64| Estimate::of(runs.iter().map(value));
        let count = |value: fn(&Measures) -> f64| Count {
            captured: value(captured),
            replayed: Estimate::of(runs.iter().map(value)),
        };
        let mut check = SenderCheck {
            sender: sender.to_owned(),
            holds: false,
            differs: Vec::new(),
            draws: runs.len() as u32,
            replayed_mbit_s: of(|run| run.goodput_mbit_s),
            retransmissions: count(|run| run.retransmissions),
            false_reductions: count(|run| run.false_reductions),
            timeouts: count(|run| run.timeouts),
        };
        let few_retransmissions = FEW.max(captured.packets * FEW_RETRANSMISSIONS);
        let agree = [
            ("goodput", check.goodput().is_some_and(|range| TO_COMPARE.reproduces(range, captured.goodput_mbit_s))),
            ("retransmissions", count_agrees(&check.retransmissions, few_retransmissions)),
            ("false_reductions", count_agrees(&check.false_reductions, FEW)),
            ("timeouts", count_agrees(&check.timeouts, FEW)),
        ];
        check.differs = agree.into_iter().filter(|(_, agrees)| !agrees).map(|(name, _)| name).collect();
        check.holds = check.differs.is_empty();
        check
    }

    /// What differs, or else that nothing does.
    fn difference(&self, captured_mbit_s: f64) -> String {
        let Estimate { mean, ci95, .. } = self.replayed_mbit_s;
        let goodput =
            format!("reaches {mean:.1} ± {:.1} Mbit/s, captured {captured_mbit_s:.1}", ci95.unwrap_or_default());
        let counts = [
            ("retransmissions", "retransmissions", &self.retransmissions),
            ("false_reductions", "false reductions", &self.false_reductions),
            ("timeouts", "timeouts", &self.timeouts),
        ];
        let differing = counts.into_iter().filter(|(key, ..)| self.differs.contains(key));
        let texts = differing.map(|(_, name, count)| {
            format!(", with {:.0} {name} instead of {:.0}", count.replayed.mean, count.captured)
        });
        goodput + &texts.collect::<String>()
    }

    /// The 95 % interval of its goodput; none after a single run.
    fn goodput(&self) -> Option<(f64, f64)> {
        let Estimate { mean, ci95, .. } = self.replayed_mbit_s;
        ci95.map(|ci| (mean - ci, mean + ci))
    }

    /// True if more draws may decide whether the goodput agrees.
    fn is_undecided(&self, captured: &Measures) -> bool {
        let agreement = |range| TO_COMPARE.agreement(range, captured.goodput_mbit_s);
        self.goodput().map(agreement).is_none_or(|agreement| agreement == Agreement::Undecided)
    }

    /// How far it is from the capture: in the goodput and in the share of retransmissions, both as ratios.
    fn distance(&self, captured: &Measures) -> f64 {
        let ratio = |there: f64, here: f64, few: f64| ((there + few) / (here + few)).ln().abs();
        let few = FEW.max(captured.packets * FEW_RETRANSMISSIONS);
        let counts = [(&self.retransmissions, few), (&self.false_reductions, FEW), (&self.timeouts, FEW)];
        let counts = counts.map(|(count, few)| ratio(count.captured, count.replayed.mean, few) / COUNTS_WITHIN.ln());
        ratio(captured.goodput_mbit_s, self.replayed_mbit_s.mean, 1e-9) / GOODPUT_WITHIN + counts.iter().sum::<f64>()
    }
}

impl ReplayCheck {
    /// What differs, in one line.
    pub(super) fn why(&self) -> String {
        let of = |check: &SenderCheck| format!("`{}` {}", check.sender, check.difference(self.captured_mbit_s));
        let others = self.others.iter().map(|other| format!("; {}", of(other)));
        format!("the replay does not reproduce the capture: {}{}", of(&self.closest), others.collect::<String>())
    }

    /// Simulates the senders of `experiment`, which has enough draws for each, until the intervals decide or all draws are
    /// made. None if it was interrupted. `on_run` is called after each run.
    pub(super) fn run(
        experiment: &PreparedComparison,
        (direction, captured): (&DirectionReport, &Measures),
        (draws, is_given): (u32, bool),
        stop: &AtomicBool,
        on_run: &(dyn Fn() + Sync),
    ) -> Option<ReplayCheck> {
        let run = |job: &&Job| {
            let (result, recorder) = run_unless(&job.scenario, Recorder::at(direction.captured_at), stop).ok()?;
            let analysis = recorder.finish();
            on_run();
            let worst = analysis.directions.iter().max_by_key(|direction| direction.bytes)?;
            Some(Measures::of(worst, goodput_mbit_s(&result), 1.0))
        };
        let check = |(n, variant): (usize, &crate::NamedVariant)| {
            let jobs: Vec<&Job> = experiment.jobs.iter().filter(|job| job.variant() == Some(n)).collect();
            let (first, more) = jobs.split_at((draws.max(MIN_DRAWS) as usize).min(jobs.len()));
            let mut runs: Vec<Measures> = first.par_iter().map(run).collect::<Option<_>>()?;
            let mut check = SenderCheck::of(&variant.name, captured, &runs);
            if check.is_undecided(captured) {
                runs.extend(more.par_iter().map(run).collect::<Option<Vec<_>>>()?);
                check = SenderCheck::of(&variant.name, captured, &runs);
            }
            Some(check)
        };
        let mut checks: Vec<SenderCheck> = experiment.variants.iter().enumerate().map(check).collect::<Option<_>>()?;
        let rank = |check: &SenderCheck| (!check.holds, check.distance(captured));
        checks.sort_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
        let closest = checks.remove(0);
        Some(ReplayCheck { closest, is_given, captured_mbit_s: captured.goodput_mbit_s, others: checks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(goodput_mbit_s: f64, retransmissions: f64) -> Measures {
        Measures { goodput_mbit_s, packets: 10_000.0, retransmissions, false_reductions: 0.0, timeouts: 0.0 }
    }

    #[test]
    fn an_interval_that_is_wider_than_what_is_allowed_reproduces_nothing() {
        let captured = run(16.7, 100.0);
        let wide = [10.0, 25.0, 12.0, 26.0, 15.5].map(|goodput| run(goodput, 100.0));
        let check = SenderCheck::of("linux", &captured, &wide);
        assert!((check.replayed_mbit_s.mean - 17.7).abs() < 0.01 && check.replayed_mbit_s.ci95 > Some(9.0));
        assert_eq!((check.holds, check.differs), (false, vec!["goodput"]));
        let narrow = [16.0, 16.5, 17.0, 17.2, 16.1].map(|goodput| run(goodput, 100.0));
        assert!(SenderCheck::of("linux", &captured, &narrow).holds);
        // A single run has no interval.
        assert!(!SenderCheck::of("linux", &captured, &narrow[..1]).holds);
    }

    #[test]
    fn a_replay_with_many_more_retransmissions_reproduces_nothing() {
        let captured = run(16.7, 10.0);
        let of = |retransmissions: f64| SenderCheck::of("linux", &captured, &[run(16.7, retransmissions); 5]);
        assert!(of(35.0).holds);
        assert_eq!(of(60.0).differs, ["retransmissions"]);
        // A capture of a sender that retransmits much is not like one that hardly does.
        let captured = run(16.7, 900.0);
        assert_eq!(SenderCheck::of("linux", &captured, &[run(16.7, 100.0); 5]).differs, ["retransmissions"]);
    }

    #[test]
    fn an_interval_that_decides_nothing_asks_for_more_draws() {
        let captured = run(10.0, 0.0);
        let of = |values: [f64; 3]| SenderCheck::of("linux", &captured, &values.map(|goodput| run(goodput, 0.0)));
        assert!(of([8.0, 10.0, 12.0]).is_undecided(&captured));
        assert!(!of([9.9, 10.1, 10.0]).is_undecided(&captured) && !of([19.9, 20.1, 20.0]).is_undecided(&captured));
    }
}
