//! Whether the packets of a flow are held. Holding costs time where data is lost, so it stays only if it makes the flow faster.

use reknit_units::{Duration, Instant};

use super::{Counts, Phase};

/// Different seconds in which late data was retransmitted, before a trial.
const SECONDS: u32 = 3;
/// And if the flow never was so much faster that a trial is likely to help.
const MORE_SECONDS: u32 = 10;
/// The most seconds from one of them to the next.
const WITHIN: u64 = 5;
/// The rate is measured over periods of this length.
const PERIOD: Duration = Duration::from_secs(2);
/// The periods of a trial, and those before it that it is compared with.
const PERIODS: usize = 3;
/// A rate that has risen by this factor since the period before is still rising by itself.
const GROWS: f64 = 1.1;
/// During a trial, the rate must rise by this factor. It begins later unless the flow was that much faster for a moment, in slow start
/// for example: a sender that already uses what the path carries cannot gain. But one that undoes all its window cuts at once is slow
/// and steady from the start, so nothing shows that the path carries more.
const RISE: f64 = 1.25;
/// The moment.
const MOMENT: Duration = Duration::from_millis(200);
/// A trial ends early if the rate falls by this factor, or in the first half of its first period by the second one.
const FALL: f64 = 0.75;
const FALL_AT_ONCE: f64 = 0.5;
/// The time after the first trial in vain; it doubles each time.
const BACK_OFF: Duration = Duration::from_secs(60);
/// The most doublings.
const DOUBLINGS: u32 = 7;

#[derive(Debug)]
pub(super) struct Trial {
    phase: Phase,
    /// Seconds with spurious retransmissions, and the last of them.
    seconds: u32,
    second: Option<u64>,
    /// When the current period began, and the bytes since then.
    began: Instant,
    bytes: u64,
    /// When the current moment began, the bytes since then, and the most bytes of a moment.
    moment: Instant,
    of_moment: u64,
    most: u64,
    /// The rates of the latest periods in bytes a second, the last one first.
    rates: [f64; PERIODS],
    /// The periods of the current phase.
    periods: usize,
    /// The highest rate before the trial.
    before: f64,
    /// Trials in vain, and when the next may begin.
    vain: u32,
    next: Instant,
}

impl Trial {
    pub(super) fn new(now: Instant) -> Trial {
        Trial {
            phase: Phase::Watched,
            seconds: 0,
            second: None,
            began: now,
            bytes: 0,
            moment: now,
            of_moment: 0,
            most: 0,
            rates: [0.0; PERIODS],
            periods: 0,
            before: 0.0,
            vain: 0,
            next: Instant::ZERO,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// True if packets are held.
    pub(super) fn holds(&self) -> bool {
        matches!(self.phase, Phase::OnTrial | Phase::Held)
    }

    /// Late data was retransmitted. `bearable`: late packets are not later than packets may be held.
    pub(super) fn on_spurious(&mut self, now: Instant, bearable: bool, counts: &mut Counts) {
        if self.phase == Phase::Left && now >= self.next {
            self.enter(Phase::Watched);
        }
        // The first period has slow start, and is not comparable.
        if self.phase != Phase::Watched || self.periods <= PERIODS {
            return;
        }
        let second = now.as_nanos() / 1_000_000_000;
        if self.second == Some(second) {
            return;
        }
        if self.second.is_some_and(|last| second > last + WITHIN) {
            self.seconds = 0;
        }
        self.second = Some(second);
        self.seconds += 1;
        let grows = self.rates[0] >= GROWS * self.rates[1];
        let highest = self.rates.iter().copied().fold(0.0, f64::max);
        let has_room = self.most as f64 >= RISE * highest * MOMENT.as_secs_f64();
        let needed = if has_room { SECONDS } else { MORE_SECONDS };
        if self.seconds >= needed && bearable && !grows {
            self.before = highest;
            self.enter(Phase::OnTrial);
            self.restart(now);
            counts.trials += 1;
        }
    }

    /// So many bytes of new data have arrived.
    pub(super) fn on_data(&mut self, now: Instant, bytes: u64, counts: &mut Counts) {
        self.bytes += bytes;
        if now.since(self.moment) >= MOMENT {
            (self.moment, self.of_moment) = (now, 0);
        }
        self.of_moment += bytes;
        self.most = self.most.max(self.of_moment);
        let time = now.since(self.began);
        if time < PERIOD {
            return self.look_early(now, time, counts);
        }
        self.rates.rotate_right(1);
        self.rates[0] = self.bytes as f64 / time.as_secs_f64();
        self.periods += 1;
        self.restart(now);
        match self.phase {
            Phase::OnTrial => self.judge(now, counts),
            Phase::Held if self.periods >= PERIODS && self.rates.iter().all(|rate| *rate < self.before) => {
                self.leave(now, counts);
            }
            _ => {}
        }
    }

    /// The current period is not over. Ends a trial that does much harm.
    fn look_early(&mut self, now: Instant, time: Duration, counts: &mut Counts) {
        let is_first = self.phase == Phase::OnTrial && self.periods == 0;
        if is_first && time >= PERIOD / 2 && (self.bytes as f64) < FALL_AT_ONCE * self.before * time.as_secs_f64() {
            self.leave(now, counts);
        }
    }

    fn restart(&mut self, now: Instant) {
        self.began = now;
        self.bytes = 0;
    }

    fn judge(&mut self, now: Instant, counts: &mut Counts) {
        let rate = self.rates[0];
        if rate >= RISE * self.before {
            counts.kept += 1;
            self.enter(Phase::Held);
        } else if rate < FALL * self.before || self.periods >= PERIODS {
            self.leave(now, counts);
        }
    }

    fn leave(&mut self, now: Instant, counts: &mut Counts) {
        counts.ended += 1;
        self.next = now + BACK_OFF * (1 << self.vain.min(DOUBLINGS));
        self.vain += 1;
        self.enter(Phase::Left);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.periods = 0;
        self.seconds = 0;
        self.second = None;
    }

    /// Packets are held from now on, without a trial.
    #[cfg(test)]
    pub(super) fn hold(&mut self) {
        self.enter(Phase::Held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow that suffers in every second, whose rate is each of these for two seconds. Its phases, one after the other.
    fn phases(rates: &[u64], bearable: bool) -> (Vec<Phase>, Counts) {
        let (mut trial, mut counts) = (Trial::new(Instant::ZERO), Counts::default());
        let mut phases = vec![trial.phase()];
        for tenth in 1..=20 * rates.len() as u64 {
            let now = Instant::ZERO + Duration::from_millis(100 * tenth);
            if tenth % 10 == 5 {
                trial.on_spurious(now, bearable, &mut counts);
            }
            trial.on_data(now, rates[(tenth as usize - 1) / 20], &mut counts);
            if phases.last() != Some(&trial.phase()) {
                phases.push(trial.phase());
            }
        }
        (phases, counts)
    }

    use Phase::{Held, Left, OnTrial, Watched};

    #[test]
    fn it_stays_only_if_the_rate_rises() {
        let (seen, counts) = phases(&[900, 100, 100, 100, 100, 100, 130, 130], true);
        assert_eq!(seen, [Watched, OnTrial, Held]);
        assert_eq!((counts.trials, counts.kept, counts.ended), (1, 1, 0));
        let (seen, counts) = phases(&[900, 100, 100, 100, 100, 100, 110, 110, 110], true);
        assert_eq!(seen, [Watched, OnTrial, Left]);
        assert_eq!((counts.trials, counts.kept, counts.ended), (1, 0, 1));
    }

    #[test]
    fn it_ends_early_if_the_rate_falls() {
        assert_eq!(phases(&[900, 100, 100, 100, 100, 40], true).0, [Watched, OnTrial, Left]);
        assert_eq!(phases(&[900, 100, 100, 100, 100, 70], true).0, [Watched, OnTrial]);
        assert_eq!(phases(&[900, 100, 100, 100, 100, 70, 70], true).0, [Watched, OnTrial, Left]);
        let (seen, _) = phases(&[900, 100, 100, 100, 100, 200, 200, 99, 99, 99, 99], true);
        assert_eq!(seen, [Watched, OnTrial, Held, Left]);
    }

    #[test]
    fn a_flow_that_grows_by_itself_is_left_alone_and_so_is_one_with_later_packets() {
        let growing: Vec<u64> = (0..12).map(|n| 100 << n).collect();
        assert_eq!(phases(&growing, true).0, [Watched]);
        let slow = [&[900][..], &[100; 12]].concat();
        assert_eq!(phases(&slow, false).0, [Watched]);
        assert_eq!(phases(&slow, true).0[..2], [Watched, OnTrial]);
    }

    #[test]
    fn a_flow_that_was_never_faster_must_suffer_longer() {
        let suffering = |first: u64, after: &[u64]| phases(&[&[first][..], &[100; 7], after].concat(), true).0;
        assert_eq!(suffering(900, &[])[..2], [Watched, OnTrial]);
        assert_eq!(suffering(120, &[]), [Watched]);
        assert_eq!(suffering(120, &[100, 140, 140]), [Watched, OnTrial, Held]);
    }

    #[test]
    fn the_time_to_the_next_trial_doubles() {
        let trials = |seconds: usize| phases(&[vec![900], vec![100; seconds / 2 - 1]].concat(), true).1.trials;
        assert_eq!([80, 90, 210, 230].map(trials), [1, 2, 2, 3]);
    }
}
