//! What the window becomes when a reduction turns out to have been needless.
//!
//! | response | window afterwards | source |
//! |---|---|---|
//! | `none` | as it is | |
//! | `instant` | cwnd and ssthresh at least what they were | RR-TCP §3 |
//! | `slow-start` | ssthresh at least the old cwnd, so that slow start climbs back | RFC 2883 §5.2, survey §5.1.3 |
//! | `rfc4015` | cwnd as large as FlightSize plus what the ACK releases, ssthresh as before | RFC 4015 §3 |
//! | `halve` | stays halved, in congestion avoidance | F-RTO §3 |
//! | `oldest-only` | restored if exactly the oldest segment was resent | Ludwig and Katz, by the survey §5.1.1 |

use reknit_tcp::facts::{AckFacts, Context, Snapshot, Spurious, Window};
use reknit_tcp::seams::{SpuriousResponse, Undo};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::{Algorithm, Part};

/// Which response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Detect only.
    None,
    /// Restore at once.
    Instant,
    /// Restore by slow start.
    SlowStart,
    /// The Eifel response.
    Rfc4015,
    /// F-RTO's.
    Halve,
    /// The original Eifel response.
    OldestOnly,
}

impl Algorithm for Config {
    const NAME: &'static str = "undo";
    const SOURCE: &'static str = include_str!("undo.rs");
}

impl Part<dyn SpuriousResponse> for Config {
    fn build(&self) -> Box<dyn SpuriousResponse> {
        Box::new(Response(*self))
    }
}

#[derive(Debug)]
struct Response(Config);

impl SpuriousResponse for Response {
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, _spurious: Spurious, snapshot: &Snapshot) -> Undo {
        let window = match self.0 {
            Config::None => None,
            Config::Instant => Some(instant(cx, snapshot)),
            Config::SlowStart => Some(slow_start(cx, snapshot)),
            Config::Rfc4015 => Some(rfc4015(cx, ack, snapshot)),
            Config::Halve => Some(Window { cwnd: cx.snd.ssthresh, ssthresh: cx.snd.ssthresh }),
            // The first retransmission of an episode is that of the oldest segment.
            Config::OldestOnly => (snapshot.resent == 1).then(|| instant(cx, snapshot)),
        };
        Undo { window, ..Undo::default() }
    }
}

/// The old window is reinstated.
fn instant(cx: &Context<'_>, snapshot: &Snapshot) -> Window {
    Window { cwnd: cx.snd.cwnd.max(snapshot.cwnd), ssthresh: cx.snd.ssthresh.max(snapshot.ssthresh) }
}

/// The old window is where slow start ends.
fn slow_start(cx: &Context<'_>, snapshot: &Snapshot) -> Window {
    Window { cwnd: cx.snd.cwnd, ssthresh: cx.snd.ssthresh.max(snapshot.cwnd) }
}

/// RFC 4015 §3 steps 0, 8 and 9: `pipe_prev` is the larger of FlightSize and ssthresh before the reduction, where an
/// ssthresh that was never set says nothing.
fn rfc4015(cx: &Context<'_>, ack: &AckFacts<'_>, snapshot: &Snapshot) -> Window {
    let ssthresh_before = if snapshot.ssthresh == Bytes::MAX { Bytes::ZERO } else { snapshot.ssthresh };
    let initial_window = cx.config.initial_window.of(cx.snd.smss);
    Window {
        cwnd: cx.snd.flight_size() + ack.advance().min(initial_window),
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
    fn respond(response: Config, flight_before: u32) -> Option<(u64, u64)> {
        let (snd, board, config) = (given::state(), Scoreboard::default(), reknit_tcp::Config::default());
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let ack = AckFacts { ack: Offset::DATA + SMSS, flight_before: segments(9), delivered: SMSS, ..given::ack() };
        let snapshot = Snapshot {
            trigger: Trigger::FastRetransmit,
            at: Instant::ZERO,
            cwnd: segments(16),
            ssthresh: segments(12),
            flight_size: segments(flight_before),
            dup_acks: Segments(3),
            hole: SegId(0),
            snd_nxt: Offset::DATA,
            resent: 1,
        };
        let window = response.build().respond(&cx, &ack, Spurious::FastRetransmit, &snapshot).window?;
        Some((window.cwnd.0 / SMSS.0, window.ssthresh.0 / SMSS.0))
    }

    #[test]
    fn b14_instant_restores_both() {
        assert_eq!(respond(Config::Instant, 16), Some((16, 12)));
    }

    #[test]
    fn b14_slow_start_leaves_cwnd_and_aims_at_the_old_one() {
        assert_eq!(respond(Config::SlowStart, 16), Some((8, 16)));
    }

    #[test]
    fn b14_rfc4015_adds_what_the_ack_released() {
        assert_eq!(respond(Config::Rfc4015, 16), Some((9, 16)));
        // The larger of FlightSize and ssthresh before the reduction.
        assert_eq!(respond(Config::Rfc4015, 10), Some((9, 12)));
    }

    #[test]
    fn b14_halve_stays_halved() {
        assert_eq!(respond(Config::Halve, 16), Some((8, 8)));
    }

    #[test]
    fn none_leaves_the_window_alone() {
        assert_eq!(respond(Config::None, 16), None);
    }
}
