//! What mistakes cost: the three functions of RR-TCP (Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002, §4.3.1 to
//! §4.3.3), in segments that were not sent although they could have been.
//!
//! `w`: W, the steady window, at least one segment. Times are given in round trips: `t` is T/R, `d` is D/R, `i` is I/R.

/// §4.3.1: a timeout of `t` round trips, where limited transmit sends `k` windows.
///
/// The sender is idle for what T leaves after the window and limited transmit are sent, then slow start climbs to half
/// the window. An idle time cannot be negative.
pub(crate) fn timeout(w: f64, t: f64, k: f64) -> f64 {
    let idle = (w * t - w * (1.0 + k)).max(0.0);
    let slow_start = w * (libm::log2(w) - 1.0) + 1.0;
    idle + slow_start
}

/// §4.3.2: a false fast retransmit after whose `d` round trips a DSACK returns the window.
///
/// Between whole numbers of round trips the cost is interpolated. A DSACK takes at least one; after W/2 the window has
/// grown back.
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
            (8.0, 1.0, 0.5, 1.0, 17.0), // idle for exactly nothing
            (8.0, 1.0, 0.8, 1.0, 17.0), // for less than nothing
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
            (16.0, 50.0, 36.0), // no longer than W/2 round trips
            (7.0, 10.0, 7.75),
            (10.0, 0.5, 5.0), // no shorter than one
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
