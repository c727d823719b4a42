//! # DSACK detection of spurious retransmissions
//!
//! Floyd, Mahdavi, Mathis, Podolsky: RFC 2883, 2000. Blanton, Allman: RFC 3708, 2004. Zhang, Karp, Floyd, Peterson:
//! RR-TCP, ICSI TR-02-006, 2002, §3 ("DSACK-R").
//!
//! **What it changes.** If the receiver reports every segment that an episode retransmitted as a duplicate, nothing was
//! lost and the reduction was spurious. The response then decides about the window (`base/spurious_response.rs`).
//!
//! **State.** `unproven`: segments retransmitted in this episode, last sent between `began` and `ended`, that no DSACK
//! has reported. `no_undo`: this episode cannot be judged. `off`: the network itself duplicates packets, so DSACKs
//! prove nothing (for the whole connection).
//!
//! **Rules**, on an ACK with a DSACK.
//! - 1: if detection is off, or the segment is unknown, nothing happens.
//! - 2: if nothing was SACKed and the report begins at SND.UNA, a whole window of ACKs was lost: no undo.
//! - 3: if the segment was sent once, the network duplicated it: detection is turned off (RFC 3708), or the report is
//!   ignored (`duplication`).
//! - 4: if the segment was sent more than twice, the report is ambiguous: no undo.
//! - 5: otherwise its retransmission was spurious. If `no_undo` is set, or the ACK carries an ECN echo, nothing else
//!   happens.
//! - 6: once every retransmission of the episode is proven spurious, so is the reduction. This also applies after
//!   another detector has found it spurious, if the response allows a later undo.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, Snapshot, Spurious, Trigger, Turn};
use reknit_tcp::scoreboard::{Cause, Duplicate, SegId};
use reknit_tcp::seams::{Plugin, SpuriousDetector};
use reknit_units::{Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};
use crate::rule::{Need, Rule};

/// What a DSACK for a segment that was sent once means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplication {
    /// Turn detection off for the rest of the connection (RFC 3708 §3).
    #[default]
    Disable,
    /// Ignore it.
    Ignore,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What to do about duplicates made by the network.
    pub duplication: Duplication,
}

impl Algorithm for Config {
    const NAME: &'static str = "dsack";
    const SOURCE: &'static str = include_str!("dsack_det.rs");
    const RULES: &'static [Rule] = &[Rule::Needs(Need::Sack, "spurious retransmissions are not detected")];
}

impl Part<dyn SpuriousDetector> for Config {
    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(DsackDetection {
            config: self.clone(),
            off: false,
            no_undo: false,
            unproven: Segments::ZERO,
            began: Instant::NEVER,
            ended: Instant::NEVER,
        })
    }
}

#[derive(Debug)]
struct DsackDetection {
    config: Config,
    off: bool,
    no_undo: bool,
    unproven: Segments,
    /// When the last episode that can still be judged began; [`Instant::NEVER`] if there is none.
    began: Instant,
    /// When it ended; [`Instant::NEVER`] during the episode.
    ended: Instant,
}

impl DsackDetection {
    fn begin(&mut self, now: Instant) {
        self.began = now;
        self.ended = Instant::NEVER;
        self.no_undo = false;
        self.unproven = Segments::ZERO;
    }

    /// True during the episode: retransmissions belong to it.
    fn is_live(&self) -> bool {
        self.began.is_set() && !self.ended.is_set()
    }

    /// True if the last transmission of `segment` was a retransmission of this episode.
    fn retransmitted_in_episode(&self, segment: &Duplicate) -> bool {
        let when = segment.last_sent;
        self.began <= when && when <= self.ended && segment.cause != Cause::WindowProbe
    }

    /// Rules 3 to 5 for one segment. Returns true if its retransmission is now proven spurious.
    fn prove(&mut self, segment: &Duplicate) -> bool {
        match segment.transmissions {
            0 | 1 => {
                self.off |= self.config.duplication == Duplication::Disable;
                false
            }
            2 => {
                let proven = self.retransmitted_in_episode(segment) && segment.reports == 1;
                if proven {
                    self.unproven -= Segments(1);
                }
                proven
            }
            _ => {
                self.no_undo |= self.retransmitted_in_episode(segment);
                false
            }
        }
    }

    /// Rule 6, for a reduction of this episode. It ends the episode.
    fn verdict(&mut self, snapshot: &Snapshot) -> Option<Spurious> {
        let ours = self.began <= snapshot.at && snapshot.at <= self.ended;
        let all_proven = self.unproven == Segments::ZERO && !self.no_undo && !self.off;
        if !ours || !all_proven {
            return None;
        }
        self.began = Instant::NEVER;
        Some(match snapshot.trigger {
            Trigger::Timeout => Spurious::LateTimeout,
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => Spurious::FastRetransmit,
        })
    }
}

impl SpuriousDetector for DsackDetection {
    fn on_retransmitted(&mut self, cx: &Context<'_>, id: SegId, cause: Cause) {
        match cx.board.get(id).map(|record| record.transmissions) {
            _ if !self.is_live() || cause == Cause::WindowProbe => {}
            Some(2) => self.unproven += Segments(1),
            _ => self.no_undo = true,
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        let dsack = ack.dsack.filter(|dsack| !self.off && !dsack.segments.is_empty())?;
        if dsack.ack_loss {
            self.no_undo = true;
            return None;
        }
        let mut proven = false;
        for segment in dsack.segments {
            proven |= self.prove(segment);
        }
        if !proven || ack.ece {
            return None;
        }
        self.verdict(cx.snd.snapshot.as_ref()?)
    }
}

impl Plugin for DsackDetection {
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        match turn {
            // A timeout during an episode continues it: an undo restores the window from before the start of the
            // episode.
            Turn::Timeout { .. } if self.is_live() => {}
            Turn::EnterRecovery | Turn::Timeout { .. } => self.begin(cx.now),
            Turn::LeaveRecovery | Turn::Spurious(_) => self.ended = self.ended.min(cx.now),
        }
    }
}
