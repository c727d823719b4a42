//! # Eifel
//!
//! Ludwig, Katz: The Eifel Algorithm: Making TCP Robust Against Spurious Retransmissions. ACM CCR 30(1), 2000. Ludwig,
//! Meyer: The Eifel Detection Algorithm for TCP. RFC 3522, 2003. Ludwig, Gurtov: RFC 4015, 2005 (the response). The bit of
//! `eifel-rtx`: Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI TR-02-006, 2002, §3.
//!
//! **What it changes.** The first ACK after a retransmission shows by its timestamp, or by an echoed bit, whether it
//! was sent for the original or for the retransmission. If it was sent for the original, nothing was lost and the
//! reduction was spurious; after a timeout, nothing else is retransmitted. The response then decides about the window
//! (`rfc4015`, or `oldest-only` as described in the survey §5.1.1). The timeout becomes
//! more conservative (`rfc4015`).
//!
//! **State.** `retransmitted`: when the first retransmission of the episode was sent (`RetransmitTS`) and when its
//! original was sent, until the episode is judged. `begun`: the first retransmission of the episode has not been sent
//! yet. `live`: an episode is in progress. `seen_dsack`: the receiver reports duplicates (for the whole connection).
//!
//! **Rules** (RFC 3522 §3.2).
//! - 1: the first retransmission of an episode is recorded; a timeout during the episode does not record another.
//! - 2: it is recorded whether the receiver has ever sent a DSACK.
//! - 3: the first ACK that advances SND.UNA decides. If it was sent for the retransmission, or does not show for which
//!   copy, the loss was genuine.
//! - 4: the loss also counts as genuine if that ACK carries a DSACK, or if it covers everything outstanding and the
//!   receiver has never sent a DSACK: in both cases it may be that only ACKs were lost.
//! - 5: otherwise the retransmission was spurious.
//!
//! **Departures.** Rule 4 also applies with the bit. If the ACK has no bit (because the peer does not support it, or
//! the ACK carries data), timestamps decide. RFC 4015 responds to spurious timeouts only; here its rules for the window
//! also apply to spurious fast retransmits, those for the timer do not.
//!
//! **Status.** Faithful. An original that arrives within the tick of the timestamp clock in which its retransmission
//! was sent is not recognized (RFC 3522 §3.2).

use reknit_tcp::experiment::Features;
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Spurious, TIMESTAMP_TICK, Trigger};
use reknit_tcp::scoreboard::{SegId, SendReason};
use reknit_tcp::seams::{Plugin, SpuriousDetector};
use reknit_units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// What distinguishes an original from its retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The echoed timestamp.
    #[default]
    Timestamps,
    /// The echoed retransmission bit; timestamps in ACKs without it.
    Retransmitted,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EifelConfig {
    /// What distinguishes the copies of a segment.
    pub evidence: Evidence,
    /// Accept only an echo of the original's own timestamp, which a receiver cannot guess (RFC 3522 §3.4). Spurious
    /// retransmissions then stay undetected if ACKs are lost.
    pub safe: bool,
}

impl Algorithm<dyn SpuriousDetector> for EifelConfig {
    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(Eifel { config: self.clone(), live: false, begun: false, retransmitted: None, seen_dsack: false })
    }
}

/// The first retransmission of an episode, in ticks of the timestamp clock.
#[derive(Clone, Copy, Debug)]
struct Retransmitted {
    /// `RetransmitTS`.
    at: Instant,
    original: Instant,
}

#[derive(Clone, Debug)]
struct Eifel {
    config: EifelConfig,
    live: bool,
    begun: bool,
    retransmitted: Option<Retransmitted>,
    seen_dsack: bool,
}

impl Eifel {
    fn begin(&mut self) {
        self.live = true;
        self.begun = true;
        self.retransmitted = None;
    }

    fn end(&mut self) {
        self.live = false;
        self.begun = false;
        self.retransmitted = None;
    }

    /// Rule 3.
    fn answers_original(&self, cx: &Context<'_>, ack: &AckFacts<'_>, retransmitted: Retransmitted) -> bool {
        let has_bit = self.config.evidence == Evidence::Retransmitted && cx.snd.features.has(Features::RESENT);
        match (ack.experiment.retransmitted, ack.echoed) {
            (Some(again), _) if has_bit => !again,
            (_, Some(echoed)) if self.config.safe => echoed == retransmitted.original,
            (_, Some(echoed)) => echoed < retransmitted.at,
            (_, None) => false,
        }
    }

    /// Rule 4. `seen_dsack` is the value before this ACK.
    fn may_be_ack_loss(cx: &Context<'_>, ack: &AckFacts<'_>, seen_dsack: bool) -> bool {
        let covers_all = cx.snd.flight_size() == Bytes::ZERO;
        ack.dsack.is_some() || (covers_all && !seen_dsack)
    }
}

impl SpuriousDetector for Eifel {
    /// Rule 1.
    fn on_retransmitted(&mut self, cx: &Context<'_>, id: SegId, _cause: SendReason) {
        if std::mem::take(&mut self.begun) {
            let tick = |at: Instant| at.floor_to(TIMESTAMP_TICK);
            let original = cx.board.get(id).map(|record| tick(record.first_sent));
            self.retransmitted = original.map(|original| Retransmitted { at: tick(cx.now), original });
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        let seen_dsack = self.seen_dsack;
        self.seen_dsack |= ack.dsack.is_some(); // rule 2
        if !ack.advances() {
            return None;
        }
        let retransmitted = self.retransmitted.take()?;
        let spurious = self.answers_original(cx, ack, retransmitted) && !Eifel::may_be_ack_loss(cx, ack, seen_dsack);
        let snapshot = cx.snd.snapshot.as_ref().filter(|_| spurious)?;
        Some(match snapshot.trigger {
            Trigger::Timeout => Spurious::Timeout,
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => Spurious::FastRetransmit,
        })
    }
}

impl Plugin for Eifel {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::Timeout { .. } if self.live => {}
            RecoveryEvent::EnterRecovery | RecoveryEvent::Timeout { .. } => self.begin(),
            RecoveryEvent::LeaveRecovery | RecoveryEvent::Spurious(_) => self.end(),
        }
    }
}
