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

#[derive(Debug, Default)]
pub(super) struct Windows {
    current: Option<u64>,
    pub(super) reductions: Vec<Reduction>,
    /// Those after which the window has not been as large as before, and how large that was; the smallest last.
    open: Vec<(usize, u64)>,
    /// It has not grown since the last reduction.
    is_falling: bool,
    /// Since when a reduction is open.
    small_since: Instant,
    pub(super) small: Duration,
    /// When the states say that recovery began.
    recoveries: Vec<Instant>,
}

impl Windows {
    /// `together`: decreases in this time are one reduction, unless it grew in between.
    pub(super) fn on_window(&mut self, window: u64, at: Instant, together: Duration) {
        let before = self.current.replace(window).unwrap_or(window);
        if window > before {
            self.is_falling = false;
            self.regain(window, at);
        }
        if window >= before {
            return;
        }
        if let Some(last) = self.reductions.last_mut()
            && self.is_falling
            && at.since(last.at) <= together
        {
            last.window = last.window.map(|(first, _)| (first, window));
        } else if ((before - window) as f64) >= LEAST * before as f64 && self.reductions.len() < MAX {
            if self.open.is_empty() {
                self.small_since = at;
            }
            self.open.push((self.reductions.len(), before));
            self.reductions.push(Reduction { at, window: Some((before, window)), regained: None });
            self.is_falling = true;
        }
    }

    fn regain(&mut self, window: u64, at: Instant) {
        while let Some((index, _)) = self.open.pop_if(|(_, before)| *before <= window) {
            self.reductions[index].regained = Some(at);
            if self.open.is_empty() {
                self.small += at.since(self.small_since);
            }
        }
    }

    pub(super) fn on_recovery(&mut self, at: Instant) {
        if self.recoveries.len() < MAX {
            self.recoveries.push(at);
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
