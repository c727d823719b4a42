//! # reknit
//!
//! This project's own algorithm. On paths that reorder, it is nearly as fast as a sender that is told about each
//! loss. It responds to losses as CUBIC or Reno does.
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
//! - *Learn.* A segment is missing from the time when the first segment above it is SACKed, or a retransmission that was
//!   sent later is acknowledged, but at the latest 1.5 round trips after it was sent. Its lateness is the time from when
//!   the first segment above it was SACKed until its own acknowledgment.
//! - *Wait.* The wait is the lateness that only 0.1 % of the late segments exceed. If there were more congestion
//!   events than such segments, the wait is shorter: the number of late segments that exceed it is the number of
//!   congestion events. After that time, the segment is more likely lost than late. A margin is added while few
//!   late segments have been seen. Before the first one, the wait is a quarter of the round trip, and zero once
//!   three segments are SACKed (as in RFC 8985 §6.2).
//! - *Repair.* A segment that has been missing for longer than the wait is retransmitted; the window does not change. A
//!   retransmission is repeated if it is not acknowledged within a round trip plus the wait, or within 1.5 round trips
//!   if that is longer.
//! - *Decide.* If an acknowledgment follows sooner after the retransmission than any round trip took, or if a DSACK
//!   reports both copies, the original has arrived: the retransmission was spurious, and the sender learns the
//!   lateness. If the retransmission has been acknowledged and 1.5 times the wait has passed (1.5 round trips before
//!   the first late segment), or if it has not been acknowledged in time, the segment was lost.
//! - *Again.* A retransmission that is not acknowledged within a round trip and the wait (at least half a round trip) is
//!   lost, and the segment is sent again. From the sixth transmission on, the time doubles.
//! - *Reduce.* A loss reduces the window (CUBIC or Reno), and recovery uses PRR. More than ten undecided
//!   retransmissions reduce it at once; a single one does so if most of the recent ones were needed.
//! - *Once per congestion event.* Losses of segments that were sent before the sender could have known of the first
//!   loss belong to the same event. If all RTTs of that round show a queue, so do losses in the next round trip:
//!   the queue overflows until the sender responds. If the window is reduced because more than ten retransmissions
//!   are undecided, so do losses of everything sent before the reduction: so many at once mean that a queue
//!   overflowed.
//! - *Trust.* The evidence comes from the receiver, which may lie. While an undo would do harm
//!   (`bounded`), each loss reduces the window at once, and the reduction is final.
//! - *Undo.* A reduction is undone when all retransmissions of its event turn out to be spurious. The window
//!   becomes what it would be without this reduction, even if others followed.
//! - *Grow.* The window grows by the bytes delivered, including SACKed ones. Slow start pauses while a retransmission
//!   is undecided, if the window has more than 32 segments or the last round trip had a queue. The window limits the
//!   pipe.
//! - *In order, as Linux.* As long as everything arrives in order, CUBIC leaves slow start by HyStart (ACK train, rise of
//!   the RTT) and then grows by at least 5 % in each round trip until the first reduction, and segments leave in pairs.
//!   When a segment arrives late, slow start resumes and ends by HyStart++, and segments leave singly for ten round trips.
//!   The Reno-friendly window grows as in Linux, not by RFC 9438 §4.3. So neither `reknit` nor Linux gets much more of a
//!   queue that they share.
//! - *Resume.* The segments that the burst limit (`max_burst`) holds back follow at the rate of one window per
//!   round trip, as long as no more is SACKed than is in the pipe. When a hole that had stopped the sender at the
//!   end of the receive window is filled, hardly anything is in flight, and bursts released by ACKs alone would
//!   take several round trips to fill a large window.
//! - *Probe.* There is no retransmission timer. If no ACK arrives for 1.5 round trips plus the wait, the sender sends a
//!   probe. If two probes are not answered, everything outstanding is marked lost, as after a timeout.
//! - *Timestamps.* If they were negotiated, a retransmission carries the timestamp of the first transmission, or
//!   the newest that the receiver has echoed. The receiver discards older ones (PAWS, RFC 7323 §5), and with a
//!   newer one it would discard the originals of later segments. ACKs that others have overtaken are processed if
//!   they are at most 8 s late. Round-trip times are not measured by echoed timestamps.
//!
//! **Departures.** There is no paper. Retransmissions with an earlier timestamp depart from RFC 7323 §3.2, and
//! processing overtaken ACKs departs from §5.3.
//!
//! **Reproduces.** Nothing.
//!
//! **Status.** Original; `docs/design/reknit.md` describes it.

use super::detector;
use crate::algorithms::LossDetector;
use crate::base::{delivery_clocked, newreno};
use crate::composition::Composition;
use crate::pages;
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub(crate) const REKNIT: Variant = Variant {
    name: "reknit",
    aliases: &[],
    summary: "learns how late segments arrive, and reduces the window only for those that never do; CUBIC growth",
    source: "this project",
    side: Side::Sender,
    peer_needs: "SACK, better with DSACK",
    status: Status::Original,
    page: &pages::REKNIT_VARIANT,
    compose: || composition(delivery_clocked::with_cubic),
};

/// The registry entry.
pub(crate) const REKNIT_RENO: Variant = Variant {
    name: "reknit-reno",
    summary: "reknit with Reno growth",
    page: &pages::REKNIT_VARIANT,
    compose: || composition(delivery_clocked::with_reno),
    ..REKNIT
};

fn composition(with: fn(LossDetector) -> Composition) -> Composition {
    Composition {
        without_sack: Some(newreno::with_its_timer),
        ..with(detector::LearnedLatenessConfig::default().into())
    }
}
