//! # reknit
//!
//! This project's own algorithm. On 84 random paths that lose packets only in queues, its goodput is 97.7 % of the
//! oracle's on average. It responds to losses as CUBIC or Reno does.
//!
//! **What it changes.** A segment is retransmitted if it has been missing for longer than late segments usually take on
//! this path, which the sender learns. The window is reduced at once only if most of the recent retransmissions were
//! needed. Otherwise it is reduced once the retransmission has been acknowledged without any sign of the original. Each
//! reduction can be undone.
//!
//! **State.** `lateness`: a histogram of how late segments arrive. `repairs`: the last 12 groups of retransmissions.
//! `reductions`: the last 4 reductions. `outcomes`: how many of the last retransmissions were needed, and how many were
//! spurious. `rounds`: the smallest RTTs of the last 8 rounds. About 1.2 kB.
//!
//! **Rules.**
//! - *Learn.* A segment counts as missing once a segment above it has been SACKed or a later retransmission acknowledged.
//!   The time counts from then, or from 1.5 round trips after it was sent if that is earlier. Its lateness is the time from when
//!   the first segment above it was SACKed until its own acknowledgment.
//! - *Wait.* The wait is the 99.9th percentile of the lateness. If there have been more congestion events than late
//!   segments above it, the wait is shortened until as many late segments exceed it as there were congestion events.
//!   After that time, the segment is more likely lost than late. The wait is multiplied by a margin: 2 while fewer
//!   than 16 late segments have been seen, 1.5 while fewer than 128, then 9/8. Before the first one, the wait is a quarter of the round trip, and zero once
//!   three segments are SACKed (as in RFC 8985 §6.2).
//! - *Repair.* A segment that has been missing for longer than the wait is retransmitted; the window does not change. A
//!   retransmission that is not acknowledged within a round trip plus the wait (but at least 1.5 round trips) is lost,
//!   and the segment is sent again; from the sixth transmission on, this time doubles.
//! - *Decide.* If an acknowledgment follows sooner after the retransmission than any round trip took, or if a DSACK
//!   reports both copies, the original has arrived: the retransmission was spurious, and the sender learns the
//!   lateness. If the retransmission has been acknowledged and 1.5 times the wait has passed (1.5 round trips before
//!   the first late segment), or if it has not been acknowledged in time, the segment was lost.
//! - *Reduce.* A loss reduces the window (CUBIC or Reno), and recovery uses PRR. More than ten undecided
//!   retransmissions reduce it at once; so does the first one if most of the recent
//!   retransmissions were needed.
//! - *Once per congestion event.* Losses of segments that were sent before the sender could have known of the first
//!   loss belong to the same event. If all RTTs of that round trip show a queue, losses in the next round trip belong
//!   to it too: the queue overflows until the sender responds. If the window is reduced because more than ten
//!   retransmissions are undecided, losses of everything sent before the reduction belong to it too: so many at once mean that a queue
//!   overflowed.
//! - *Trust.* The evidence comes from the receiver, which may lie. While the undo limit
//!   `bounded` forbids undos, each loss reduces the window at once, and the reduction is final.
//! - *Undo.* A reduction is undone when all retransmissions of its event turn out to be spurious. The window
//!   becomes what it would be without this reduction, even if others followed. More losses of the event reduce it only when certain.
//! - *Grow.* The window grows by the bytes delivered, including SACKed ones. Slow start pauses while a retransmission
//!   is undecided, if the window has more than 32 segments or the RTTs of the last round trip show a queue. The window limits the
//!   pipe.
//! - *In order, as Linux.* As long as everything arrives in order, CUBIC leaves slow start by HyStart (ACK train, rise of
//!   the RTT) and then grows by at least 5 % in each round trip until the first reduction, and segments leave in pairs.
//!   When a segment arrives late, slow start resumes and ends by HyStart++, and segments leave singly for ten round trips.
//!   The Reno-friendly window grows as in Linux, not by RFC 9438 §4.3. So when `reknit` and Linux share a bottleneck,
//!   neither gets much more than its share.
//! - *Resume.* The segments that the burst limit (`max_burst`) holds back follow at the rate of one window per
//!   round trip, as long as the SACKed bytes do not exceed the pipe. When a hole that had stopped the sender at the
//!   end of the receive window is filled, hardly anything is in flight, and bursts released by ACKs alone would
//!   take several round trips to fill a large window.
//! - *Restart.* If, of a window of more than ten segments, hardly anything arrives before three quarters are lost, the path was
//!   down: a queue that overflows lets packets through. The reduced window is then filled at once, at the rate of one
//!   window per round trip, because there are too few ACKs to send by. Not if two probes were not answered.
//! - *Probe.* There is no retransmission timer. If no ACK arrives for 1.5 round trips plus the wait, the sender sends a
//!   probe. If two probes are not answered, everything outstanding is marked lost, as after a timeout.
//! - *Timestamps.* If they were negotiated, a retransmission carries the timestamp of the first transmission, or
//!   the newest that the receiver has echoed. The receiver discards older ones (PAWS, RFC 7323 §5), and with a
//!   newer one it would discard the originals of later segments. ACKs that others have overtaken are processed if
//!   they are at most 8 s late. RTTs are not measured from echoed timestamps.
//!
//! **Departures.** There is no paper. Retransmissions with an earlier timestamp depart from RFC 7323 §3.2, and
//! processing overtaken ACKs departs from §5.3.
//!
//! **Status.** Original; `docs/design/reknit.md` describes it.

use super::detector;
use crate::algorithms::LossDetector;
use crate::base::{delivery_clocked, newreno, prr};
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const REKNIT: Variant = Variant {
    name: "reknit",
    aliases: &[],
    summary: "waits as long as late segments usually take on this path, and reduces the window only for real losses; grows as CUBIC",
    source: "this project",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, better with DSACK",
    status: Status::Original,
    page: &pages::REKNIT_VARIANT,
    compose: || composition(delivery_clocked::with_cubic),
};

/// The registry entry.
pub(crate) const REKNIT_RENO: Variant = Variant {
    name: "reknit-reno",
    summary: "reknit whose window grows as in Reno",
    page: &pages::REKNIT_VARIANT,
    compose: || composition(delivery_clocked::with_reno),
    ..REKNIT
};

/// The detector of `reknit` in what `with` makes of it.
pub(super) fn composition(with: fn(LossDetector) -> Composition) -> Composition {
    Composition {
        without_sack: Some(newreno::with_its_timer),
        fast_recovery: prr::PrrConfig { restarts_after_outage: true, ..prr::PrrConfig::default() }.into(),
        ..with(detector::LearnedLatenessConfig::default().into())
    }
}
