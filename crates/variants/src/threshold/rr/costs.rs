//! The cost of mistakes: the three functions of RR-TCP (Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002, §4.3.1 to
//! §4.3.3). A cost is the number of segments that could have been sent but were not.
//!
//! `w` is W, the steady window, at least one segment. Times are in round trips: `t` is T/R, `d` is D/R, `i` is I/R.

/// §4.3.1: a timeout after `t` round trips, with limited transmit of `k` windows.
///
/// The sender is idle for the part of T that remains after the window and limited transmit have been sent; then slow
/// start grows to half the window. The idle time is at least zero; the paper has no such limit, and its cost is smaller if
/// `t` is below 1 + k.
pub(crate) fn timeout(w: f64, t: f64, k: f64) -> f64 {
    let idle = (w * t - w * (1.0 + k)).max(0.0);
    let slow_start = w * (libm::log2(w) - 1.0) + 1.0;
    idle + slow_start
}

/// §4.3.2: a false fast retransmit; after `d` round trips a DSACK restores the window.
///
/// The cost is interpolated between whole numbers of round trips. `d` is at least one: the paper has no such limit, but the
/// SRTT contains late samples, so that the DSACK of an early copy seems to take less. After W/2 round trips the window has
/// grown back anyway.
pub(crate) fn false_fast_retransmit(w: f64, d: f64) -> f64 {
    let rounds = d.clamp(1.0, (w / 2.0).max(1.0));
    let (low, high) = (libm::floor(rounds), libm::ceil(rounds));
    let cost = |k: f64| k * (w - k + 1.0) / 2.0;
    cost(low) + (rounds - low) * (cost(high) - cost(low))
}

/// §4.3.3: an idle period of `i` round trips, in which `arrived` segments still reached the receiver.
pub(crate) fn idle(w: f64, i: f64, arrived: f64) -> f64 {
    (i * w - arrived).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(cost: f64, expected: f64) {
        assert!((cost - expected).abs() < 5e-4, "{cost} instead of {expected}");
    }

    #[test]
    fn the_cost_of_timeouts() {
        // W, T, R, k and the cost.
        for (w, t, r, k, cost) in [
            (16.0, 1.0, 0.1, 1.0, 177.0),
            (50.0, 1.0, 0.1, 1.0, 633.193),
            (32.0, 1.0, 0.2, 1.0, 225.0),
            (8.0, 1.0, 0.5, 1.0, 17.0), // the idle time is exactly zero
            (8.0, 1.0, 0.8, 1.0, 17.0), // it would be negative
            (16.0, 1.0, 0.1, 0.0, 193.0),
            (16.0, 1.0, 0.1, 2.0, 161.0),
            (64.0, 2.0, 0.25, 1.0, 705.0),
            (1.0, 1.0, 0.1, 1.0, 8.0),
        ] {
            assert_close(timeout(w, t / r, k), cost);
        }
    }

    #[test]
    fn the_cost_of_false_fast_retransmits() {
        for (w, d, cost) in [
            (50.0, 1.0, 25.0),
            (50.0, 1.5, 37.0),
            (50.0, 2.0, 49.0),
            (50.0, 2.3, 55.9),
            (20.0, 1.25, 12.25),
            (20.0, 3.5, 30.5),
            (16.0, 50.0, 36.0), // at most W/2 round trips
            (7.0, 10.0, 7.75),
            (10.0, 0.5, 5.0), // at least one
            (2.0, 3.0, 1.0),
        ] {
            assert_close(false_fast_retransmit(w, d), cost);
        }
    }

    #[test]
    fn the_cost_of_idle_periods() {
        for (i, r, w, arrived, cost) in [
            (0.2, 0.1, 20.0, 3.0, 37.0),
            (0.05, 0.1, 20.0, 3.0, 7.0),
            (0.3, 0.1, 50.0, 12.0, 138.0),
            (0.01, 0.1, 20.0, 5.0, 0.0),
        ] {
            assert_close(idle(w, i / r, arrived), cost);
        }
    }
}
