//! How Linux detects that a reduction was spurious, and what it restores.
//!
//! **Evidence.**
//! - *DSACK* (RFC 2883, RFC 3708): as many duplicates have been reported as segments were retransmitted since the
//!   episode began. The reports are counted, not matched with segments.
//! - *Timestamps* (Eifel, RFC 3522): the ACK echoes a timestamp from before the first retransmission.
//! - *F-RTO* (RFC 5682): data that was sent once and before the timeout is acknowledged ([`super::frto`]).
//!
//! **Rules.**
//! - 1: an episode records SND.UNA (`undo_marker`). Retransmissions from earlier episodes that are still in flight
//!   count as its own, as does the probe of RFC 8985 §7. A timeout in recovery, or before any progress, continues the
//!   episode.
//! - 2: in recovery, a partial ACK proves the reduction spurious by its timestamp, if no retransmission is in flight
//!   (if one is, nothing is done). DSACKs may prove it on any ACK.
//! - 3: an ACK that ends recovery, or that advances after a timeout, may prove it by timestamps or by DSACKs.
//! - 4: F-RTO may prove it on any ACK after a timeout.
//! - 5: DSACKs that arrive after the episode count until the next episode begins.
//! - 6: the time of the first retransmission is kept after the end of the episode while retransmissions are in flight.
//!
//! **Response.** cwnd and ssthresh are raised to at least their values before the reduction; the old ssthresh counts as
//! at least 3/4 of the old cwnd. The same ACK may then let cwnd grow. Loss marks are cleared after rule 4, after any other proof following a timeout, and
//! after rule 2 by timestamps. Otherwise they stay, and begin the next recovery. The state of the congestion control is
//! not restored.

use reknit_tcp::facts::{
    AckFacts, Context, Dsack, Phase, RecoveryEvent, Snapshot, Spurious, TIMESTAMP_TICK, Trigger, Window,
};
use reknit_tcp::scoreboard::{SegId, SendReason};
use reknit_tcp::seams::{LossMarks, Plugin, SpuriousDetector, SpuriousResponse, Undo};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::linux::frto::FrtoState;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinuxUndoConfig {}

impl Algorithm<dyn SpuriousDetector> for LinuxUndoConfig {
    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(Evidence {
            episode: None,
            live: Live::No,
            high_seq: Offset::SYN,
            first: FirstRetransmission::default(),
            probe_under_way: false,
            watch: FrtoState::default(),
        })
    }
}

/// `retrans_stamp`: when the first retransmission left, in ticks of the timestamp clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstRetransmission(Option<Instant>);

impl FirstRetransmission {
    /// Something was retransmitted.
    pub(super) fn note(&mut self, now: Instant) {
        self.0 = self.0.or(Some(now.floor_to(TIMESTAMP_TICK)));
    }

    /// Rule 6, at the beginning of an episode.
    pub(super) fn begin(&mut self, cx: &Context<'_>) {
        let head_was_sent_again = cx.board.get(cx.board.first()).is_some_and(|record| record.transmissions > 1);
        if cx.board.retransmitted().segments == Segments::ZERO && !head_was_sent_again {
            self.0 = None;
        }
    }

    /// Call it on an ACK before the ACK is processed.
    pub(super) fn on_ack(&mut self, cx: &Context<'_>) {
        if cx.snd.phase == Phase::Open {
            self.0 = None;
        }
    }

    /// True if the timestamp of the ACK is from before the first retransmission. If nothing was retransmitted, only an
    /// original can have arrived.
    pub(super) fn is_later_than(self, ack: &AckFacts<'_>) -> bool {
        self.0.is_none_or(|at| ack.echoed.is_some_and(|echoed| echoed < at))
    }
}

/// What an episode has retransmitted.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// `undo_marker`: SND.UNA when it began.
    marker: Offset,
    /// `undo_retrans`: retransmissions that no DSACK has reported. `None` before the first retransmission.
    unproven: Option<Segments>,
}

/// The current episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Live {
    No,
    Recovery,
    Loss,
}

#[derive(Clone, Debug)]
struct Evidence {
    /// The last episode, unless it was undone.
    episode: Option<Episode>,
    live: Live,
    /// SND.NXT when the episode began.
    high_seq: Offset,
    first: FirstRetransmission,
    /// A tail loss probe that retransmitted data may still be reported as a duplicate.
    probe_under_way: bool,
    watch: FrtoState,
}

impl Evidence {
    /// Rules 1 and 6.
    fn begin(&mut self, cx: &Context<'_>) {
        self.first.begin(cx);
        let unproven = cx.board.retransmitted().segments + Segments(u32::from(self.probe_under_way));
        self.probe_under_way = false;
        let unproven = Some(unproven).filter(|unproven| *unproven > Segments::ZERO);
        self.episode = Some(Episode { marker: cx.snd.snd_una, unproven });
    }

    fn is_proven(&self) -> bool {
        self.episode.is_some_and(|episode| episode.unproven == Some(Segments::ZERO))
    }

    /// Subtracts the segments that a DSACK reports.
    fn count(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, dsack: &Dsack<'_>) {
        let Some(Episode { marker, unproven: Some(unproven) }) = &mut self.episode else { return };
        if dsack.right <= *marker {
            return;
        }
        let proven = if dsack.right <= ack.una_before {
            duplicated(cx, dsack)
        } else {
            let known = dsack.segments.iter().filter(|segment| segment.transmissions > 1);
            Segments(known.count() as u32)
        };
        *unproven -= proven;
    }

    /// Rules 2 to 5.
    fn is_spurious(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        if self.episode.is_none() {
            return false;
        }
        let by_either = || self.is_proven() || self.first.is_later_than(ack);
        match cx.snd.phase {
            Phase::Recovery if cx.snd.snd_una >= cx.snd.recover => by_either(),
            Phase::Recovery if ack.advances() && self.first.is_later_than(ack) => {
                cx.board.retransmitted().segments == Segments::ZERO
            }
            Phase::Loss => (ack.advances() && by_either()) || self.watch.is_spurious(cx, ack),
            Phase::Open | Phase::Disorder | Phase::Recovery => self.is_proven(),
        }
    }
}

/// How many segments a DSACK reports.
pub(super) fn duplicated(cx: &Context<'_>, dsack: &Dsack<'_>) -> Segments {
    Segments(dsack.right.since(dsack.left).0.div_ceil(cx.snd.smss.0) as u32)
}

impl SpuriousDetector for Evidence {
    fn on_retransmitted(&mut self, cx: &Context<'_>, _id: SegId, cause: SendReason) {
        match cause {
            SendReason::WindowProbe => {}
            SendReason::Probe => self.probe_under_way = true,
            _ => {
                self.first.note(cx.now);
                if let Some(episode) = &mut self.episode {
                    episode.unproven = Some(episode.unproven.unwrap_or_default() + Segments(1));
                }
            }
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        self.first.on_ack(cx);
        if let Some(dsack) = &ack.dsack {
            self.count(cx, ack, dsack);
        }
        let spurious = self.is_spurious(cx, ack);
        if !spurious {
            self.watch.on_ack(cx, ack);
        }
        let snapshot = cx.snd.snapshot.as_ref().filter(|_| spurious)?;
        Some(match snapshot.trigger {
            Trigger::Timeout if cx.snd.phase == Phase::Loss => Spurious::Timeout,
            Trigger::Timeout => Spurious::LateTimeout,
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => Spurious::FastRetransmit,
        })
    }
}

impl Plugin for Evidence {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::EnterRecovery => {
                self.begin(cx);
                (self.live, self.high_seq) = (Live::Recovery, cx.snd.snd_nxt);
            }
            RecoveryEvent::Timeout { first, .. } => {
                let over = self.live == Live::No || self.high_seq <= cx.snd.snd_una;
                if over || (self.live == Live::Loss && first) {
                    self.begin(cx);
                }
                (self.live, self.high_seq) = (Live::Loss, cx.snd.snd_nxt);
            }
            RecoveryEvent::LeaveRecovery => self.live = Live::No,
            RecoveryEvent::Spurious(_) => {
                self.live = Live::No;
                self.episode = None;
            }
        }
        self.watch.on_recovery_event(cx, event);
    }
}

/// The response. No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinuxUndoResponseConfig {}

impl Algorithm<dyn SpuriousResponse> for LinuxUndoResponseConfig {
    fn build(&self) -> Box<dyn SpuriousResponse> {
        Box::new(Response)
    }
}

#[derive(Clone, Debug)]
struct Response;

impl Plugin for Response {}

impl SpuriousResponse for Response {
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, _spurious: Spurious, before: &Snapshot) -> Undo {
        let ssthresh = before.ssthresh.max(Bytes(before.cwnd.0 / 4 * 3));
        let window = Window { cwnd: cx.snd.cwnd.max(before.cwnd), ssthresh: cx.snd.ssthresh.max(ssthresh) };
        let partial = ack.advances() && cx.snd.snd_una < cx.snd.recover;
        let marks = match cx.snd.phase {
            Phase::Loss => LossMarks::ClearAll,
            Phase::Recovery if partial && ack.dsack.is_none() => LossMarks::ClearAll,
            _ => LossMarks::Keep,
        };
        Undo { marks, grows: true, ..window.into() }
    }
}
