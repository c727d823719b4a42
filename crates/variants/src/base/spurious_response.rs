//! The window after a reduction that turned out to be spurious.
//!
//! | response | window afterwards | source |
//! |---|---|---|
//! | `none` | unchanged | |
//! | `instant` | cwnd and ssthresh at least as large as before the reduction | RR-TCP §2.1 |
//! | `slow-start` | ssthresh at least the old cwnd, so that slow start leads back to it | RFC 2883 §5.2, survey §5.1.3 |
//! | `rfc4015` | FlightSize plus the bytes acknowledged (at most IW), at most the old cwnd; the old ssthresh | RFC 4015 §3 |
//! | `halve` | still halved, in congestion avoidance; at most three segments are sent at once | F-RTO §3 |
//! | `halve-then-slow-start` | `halve` when F-RTO detects a spurious timeout, `slow-start` if another detector does so later | F-RTO §3 says to revert the last adjustments, §6 leaves open how far; slow start is that of RFC 2883 §5.2 |
//! | `restore` | as `instant`, and the back-off of the timer is reset; fast recovery continues | TCP-DOOR, cited from the survey §5.1.2 |
//! | `oldest-only` | restored if only the oldest segment was retransmitted | Ludwig and Katz, cited from the survey §5.1.1 |

use reknit_tcp::facts::{AckFacts, Context, Snapshot, Spurious, Window};
use reknit_tcp::seams::{Plugin, SpuriousResponse, Undo};
use reknit_units::Bytes;

/// The responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Response {
    None,
    Instant,
    SlowStart,
    Rfc4015,
    Halve,
    HalveThenSlowStart,
    Restore,
    OldestOnly,
}

impl Plugin for Response {}

impl SpuriousResponse for Response {
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, spurious: Spurious, snapshot: &Snapshot) -> Undo {
        match self {
            Response::Instant => instant(cx, snapshot).into(),
            Response::Rfc4015 => rfc4015(cx, ack, snapshot).into(),
            Response::Halve => halve(cx),
            Response::HalveThenSlowStart if spurious == Spurious::Timeout => Undo { stays_open: true, ..halve(cx) },
            Response::SlowStart | Response::HalveThenSlowStart => slow_start(cx, snapshot).into(),
            Response::Restore => Undo { ends_back_off: true, continues_recovery: true, ..instant(cx, snapshot).into() },
            // The first retransmission of an episode is that of the oldest segment.
            Response::OldestOnly if snapshot.retransmitted == 1 => instant(cx, snapshot).into(),
            // The reduction stays. It must not be made again for what is still being repaired.
            Response::None | Response::OldestOnly => Undo { continues_recovery: true, ..Undo::default() },
        }
    }
}

/// The reduction stays. An ACK for many segments must not release a burst (F-RTO §3), so slow start leads to the
/// remaining window.
fn halve(cx: &Context<'_>) -> Undo {
    let ssthresh = cx.snd.ssthresh;
    let cwnd = ssthresh.min(cx.snd.flight_size() + cx.snd.smss * 3);
    Undo { stays_reduced: true, ..Window { cwnd, ssthresh }.into() }
}

/// The old window is restored.
fn instant(cx: &Context<'_>, snapshot: &Snapshot) -> Window {
    Window { cwnd: cx.snd.cwnd.max(snapshot.cwnd), ssthresh: cx.snd.ssthresh.max(snapshot.ssthresh) }
}

/// Slow start ends at the old window.
fn slow_start(cx: &Context<'_>, snapshot: &Snapshot) -> Window {
    Window { cwnd: cx.snd.cwnd, ssthresh: cx.snd.ssthresh.max(snapshot.cwnd) }
}

/// RFC 4015 §3 steps 0 and 9: `pipe_prev` is the larger of FlightSize and ssthresh before the reduction; an ssthresh
/// that was never set is ignored. Data sent beyond the old window by limited transmit or F-RTO does not make the window
/// larger.
fn rfc4015(cx: &Context<'_>, ack: &AckFacts<'_>, snapshot: &Snapshot) -> Window {
    let ssthresh_before = if snapshot.ssthresh == Bytes::MAX { Bytes::ZERO } else { snapshot.ssthresh };
    let initial_window = cx.config.initial_window.of(cx.snd.smss);
    Window {
        cwnd: (cx.snd.flight_size() + ack.advance().min(initial_window)).min(snapshot.cwnd),
        ssthresh: snapshot.flight_size.max(ssthresh_before),
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::Trigger;
    use reknit_tcp::scoreboard::{Scoreboard, SegId};
    use reknit_tcp::seq::Offset;
    use reknit_units::{Instant, Segments};

    use super::*;
    use crate::base::given::{self, SMSS, segments};

    /// cwnd and ssthresh, in segments, after an ACK of one segment: before the reduction cwnd was 16 and ssthresh 12;
    /// now cwnd, ssthresh and FlightSize are 8.
    fn respond(mut response: Response, flight_before: u32) -> Option<(u64, u64)> {
        let (snd, board, config) = (given::state(), Scoreboard::default(), reknit_tcp::Config::default());
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let ack = AckFacts { ack: Offset::DATA + SMSS, flight_before: segments(9), delivered: SMSS, ..given::ack() };
        let undo = response.respond(&cx, &ack, Spurious::FastRetransmit, &snapshot(flight_before));
        let window = undo.window?;
        Some((window.cwnd.0 / SMSS.0, window.ssthresh.0 / SMSS.0))
    }

    fn snapshot(flight_before: u32) -> Snapshot {
        Snapshot {
            trigger: Trigger::FastRetransmit,
            at: Instant::ZERO,
            cwnd: segments(16),
            ssthresh: segments(12),
            flight_size: segments(flight_before),
            dup_acks: Segments(3),
            hole: SegId(0),
            snd_nxt: Offset::DATA,
            retransmitted: 1,
            is_final: false,
        }
    }

    #[test]
    fn instant_restores_both() {
        assert_eq!(respond(Response::Instant, 16), Some((16, 12)));
        assert_eq!(respond(Response::Restore, 16), Some((16, 12)));
    }

    #[test]
    fn slow_start_keeps_cwnd_and_sets_ssthresh_to_the_old_one() {
        assert_eq!(respond(Response::SlowStart, 16), Some((8, 16)));
    }

    #[test]
    fn rfc4015_adds_what_the_ack_released() {
        assert_eq!(respond(Response::Rfc4015, 16), Some((9, 16)));
        // The larger of FlightSize and ssthresh before the reduction.
        assert_eq!(respond(Response::Rfc4015, 10), Some((9, 12)));
    }

    #[test]
    fn halve_keeps_the_reduced_window() {
        assert_eq!(respond(Response::Halve, 16), Some((8, 8)));
    }

    #[test]
    fn the_response_of_rfc4015_does_not_exceed_the_old_window() {
        let (snd, board, config) = (given::state(), Scoreboard::default(), reknit_tcp::Config::default());
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let ack = AckFacts { ack: Offset::DATA + segments(10), ..given::ack() };
        // FlightSize is 8 and ten segments are acknowledged; the old window was 16.
        assert_eq!(rfc4015(&cx, &ack, &snapshot(16)).cwnd, segments(16));
    }

    #[test]
    fn halve_allows_three_segments_at_once() {
        let (board, config) = (Scoreboard::default(), reknit_tcp::Config::default());
        let snd = reknit_tcp::facts::SendState { ssthresh: segments(20), ..given::state() };
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        assert_eq!(halve(&cx).window, Some(Window { cwnd: segments(11), ssthresh: segments(20) }));
    }

    #[test]
    fn none_does_not_change_the_window() {
        assert_eq!(respond(Response::None, 16), None);
    }
}
