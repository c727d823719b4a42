//! The congestion window as logged, and its reductions.

use reknit_units::{Duration, Instant};

/// A smaller decrease is no reduction.
const LEAST: f64 = 0.05;
/// Reductions that are remembered.
const MAX: usize = 1 << 20;

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    pub(super) at: Instant,
    /// Bytes; none if the log has only the states.
    pub(super) window: Option<(u64, u64)>,
    /// When the window was as large as before.
    pub(super) regained: Option<Instant>,
}

/// Decreases that follow each other: some senders reduce the window step by step during a round trip (PRR, RFC 6937).
#[derive(Clone, Copy, Debug)]
struct Fall {
    since: Instant,
    latest: Instant,
    before: u64,
    /// It is a reduction, the last one.
    is_counted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    current: Option<u64>,
    pub(super) reductions: Vec<Reduction>,
    /// Those after which the window has not been as large as before, and how large that was; the smallest last.
    open: Vec<(usize, u64)>,
    /// None if it has grown since it last fell.
    fall: Option<Fall>,
    /// Since when a reduction is open.
    small_since: Instant,
    pub(super) small: Duration,
    /// When the states say that recovery began, and whether they say that it goes on.
    recoveries: Vec<Instant>,
    is_recovering: bool,
}

impl Windows {
    /// Decreases within `together` of the first are one reduction, unless the window grew in between; in recovery, those within
    /// `together` of the previous one.
    pub(super) fn on_window(&mut self, window: u64, at: Instant, together: Duration) {
        let before = self.current.replace(window).unwrap_or(window);
        if window > before {
            self.fall = self.fall.filter(|fall| self.is_recovering && window < fall.before);
            self.regain(window, at);
        }
        if window >= before {
            return;
        }
        let is_going_on = |fall: &Fall| at.since(if self.is_recovering { fall.latest } else { fall.since }) <= together;
        let is_large = |from: u64| ((from - window) as f64) >= LEAST * from as f64;
        // A large step starts a reduction, unless it continues one.
        let known = self.fall.filter(is_going_on).filter(|fall| fall.is_counted || !is_large(before));
        let mut fall = known.unwrap_or(Fall { since: at, latest: at, before, is_counted: false });
        fall.latest = at;
        if fall.is_counted {
            let last = self.reductions.last_mut().expect("it is counted");
            last.window = last.window.map(|(first, _)| (first, window));
        } else if is_large(fall.before) && self.reductions.len() < MAX {
            if self.open.is_empty() {
                self.small_since = fall.since;
            }
            self.open.push((self.reductions.len(), fall.before));
            self.reductions.push(Reduction { at: fall.since, window: Some((fall.before, window)), regained: None });
            fall.is_counted = true;
        }
        self.fall = Some(fall);
    }

    fn regain(&mut self, window: u64, at: Instant) {
        while let Some((index, _)) = self.open.pop_if(|(_, before)| *before <= window) {
            self.reductions[index].regained = Some(at);
            if self.open.is_empty() {
                self.small += at.since(self.small_since);
            }
        }
    }

    /// A new state of congestion control.
    pub(super) fn on_state(&mut self, is_recovery: bool, at: Instant) {
        self.is_recovering = is_recovery;
        if is_recovery {
            self.fall = self.fall.filter(|fall| fall.since == at); // the window may be logged before the state
            if self.recoveries.len() < MAX {
                self.recoveries.push(at);
            }
        }
    }

    /// The log ends.
    pub(super) fn end(&mut self, at: Instant) {
        if !self.open.is_empty() {
            self.small += at.since(self.small_since);
        }
        if self.current.is_none() {
            let of_state = |at: &Instant| Reduction { at: *at, window: None, regained: None };
            self.reductions = self.recoveries.iter().map(of_state).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_falls_step_by_step_is_reduced() {
        let mut windows = Windows::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for ms in 0..=20 {
            windows.on_window(100 - 2 * ms, at(ms), Duration::from_millis(50));
        }
        // A small step much later is not a reduction.
        windows.on_window(58, at(200), Duration::from_millis(50));
        let seen: Vec<_> = windows.reductions.iter().map(|r| (r.at, r.window.unwrap())).collect();
        assert_eq!(seen, [(at(1), (100, 60))]);
    }

    #[test]
    fn decreases_that_follow_each_other_are_one_reduction() {
        let mut windows = Windows::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let samples = [(0, 100), (1, 120), (10, 110), (12, 60), (20, 61), (30, 30), (50, 62), (90, 120), (100, 118)];
        for (ms, window) in samples {
            windows.on_window(window, at(ms), Duration::from_millis(5));
        }
        windows.end(at(200));
        let seen: Vec<_> = windows.reductions.iter().map(|r| (r.at, r.window.unwrap(), r.regained)).collect();
        assert_eq!(seen, [(at(10), (120, 60), Some(at(90))), (at(30), (61, 30), Some(at(50)))]);
        assert_eq!(windows.small, Duration::from_millis(80));
    }
}
