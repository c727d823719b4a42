//! # DSACK detection of spurious retransmissions
//!
//! Floyd, Mahdavi, Mathis, Podolsky: RFC 2883, 2000. Blanton, Allman: RFC 3708, 2004. Zhang, Karp, Floyd, Peterson:
//! RR-TCP, ICSI TR-02-006, 2002, §2.1, §4.1 and Table 1 ("DSACK-R").
//!
//! **What it changes.** If the receiver reports every segment that an episode retransmitted as a duplicate, nothing was
//! lost and the reduction was spurious. The response then decides about the window (`spurious_response`).
//!
//! **State.** For each episode that can still be judged: `unproven`, segments retransmitted in it, last sent between
//! `began` and `ended`, that no DSACK has reported; `no_undo`: it cannot be judged. `off`: the network itself duplicates
//! packets, so DSACKs prove nothing (for the whole connection).
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
//! **Departures.** A duplicate of a segment that was sent once and has been acknowledged cumulatively is not recognized as
//! one of the network, so rule 3 applies only above a gap. With `open = 1`, the default, only the last reduction is judged:
//! the DSACKs for an episode often arrive after the next one has begun, and then count for nothing. RR-TCP (§4.1) records
//! each fast retransmit, and has no rule 3; where 30 % of packets are late, `dsack-r` with `open = 8` is faster by a fifth. With `open` above 1,
//! the last few reductions are judged, each by its own retransmissions. Undoing an earlier one leaves the later ones in
//! place: the window is then what it would be without the earlier one. A timeout makes all reductions before it final.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Snapshot, Spurious, Trigger};
use reknit_tcp::scoreboard::{Duplicate, SegId, SendReason};
use reknit_tcp::seams::{Plugin, SpuriousDetector, SpuriousDetectorTraits};
use reknit_units::{Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DsackConfig {
    /// What to do about duplicates made by the network.
    pub duplication: Duplication,
    /// How many past reductions can still be found spurious. 1: only the last one.
    #[schemars(range(min = 1, max = 8))]
    pub open: u32,
}

impl Default for DsackConfig {
    fn default() -> DsackConfig {
        DsackConfig { duplication: Duplication::default(), open: 1 }
    }
}

impl Algorithm<dyn SpuriousDetector> for DsackConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Sack, "spurious retransmissions are not detected")]
    }

    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(DsackDetection { config: self.clone(), off: false, episodes: Vec::new(), earlier: None })
    }
}

/// An episode that can still be judged: a recovery, or the time after a timeout.
#[derive(Clone, Debug)]
struct Episode {
    /// The hole for which the window was reduced; none if it was not.
    hole: Option<SegId>,
    no_undo: bool,
    unproven: Segments,
    began: Instant,
    /// [`Instant::NEVER`] during the episode.
    ended: Instant,
}

impl Episode {
    /// True during the episode: retransmissions belong to it.
    fn is_live(&self) -> bool {
        !self.ended.is_set()
    }

    /// True if something at this time belongs to the episode.
    fn includes(&self, when: Instant) -> bool {
        self.began <= when && when <= self.ended
    }
}

#[derive(Clone, Debug)]
struct DsackDetection {
    config: DsackConfig,
    off: bool,
    /// Oldest first.
    episodes: Vec<Episode>,
    /// An earlier reduction that the last ACK has proven spurious.
    earlier: Option<SegId>,
}

impl DsackDetection {
    fn begin(&mut self, cx: &Context<'_>) {
        if self.episodes.len() >= self.config.open as usize {
            self.episodes.remove(0);
        }
        let hole = cx.snd.snapshot.as_ref().map(|snapshot| snapshot.hole);
        let (no_undo, unproven) = (false, Segments::ZERO);
        self.episodes.push(Episode { hole, no_undo, unproven, began: cx.now, ended: Instant::NEVER });
    }

    /// The episode that goes on.
    fn live(&mut self) -> Option<&mut Episode> {
        self.episodes.last_mut().filter(|episode| episode.is_live())
    }

    /// Rules 3 to 5 for one segment. Returns the position of its episode if its retransmission is now proven spurious.
    fn prove(&mut self, segment: &Duplicate) -> Option<usize> {
        if segment.transmissions < 2 {
            self.off |= self.config.duplication == Duplication::Disable;
            return None;
        }
        let is_probe = segment.cause == SendReason::WindowProbe;
        let at = self.episodes.iter().position(|episode| episode.includes(segment.last_sent) && !is_probe)?;
        let episode = &mut self.episodes[at];
        if segment.transmissions > 2 {
            episode.no_undo = true;
            return None;
        }
        if segment.reports != 1 {
            return None;
        }
        episode.unproven -= Segments(1);
        Some(at)
    }

    /// Rule 6 for an episode: its reduction is `last`, or an earlier one.
    fn verdict(&mut self, at: usize, last: Option<&Snapshot>) -> Option<Spurious> {
        let episode = self.episodes.get(at)?;
        if episode.unproven > Segments::ZERO || episode.no_undo || self.off {
            return None;
        }
        let Some(snapshot) = last.filter(|snapshot| episode.includes(snapshot.at)) else {
            self.earlier = episode.hole.filter(|_| self.traits().judges_earlier);
            return None;
        };
        self.episodes.remove(at);
        Some(match snapshot.trigger {
            Trigger::Timeout => Spurious::LateTimeout,
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => Spurious::FastRetransmit,
        })
    }
}

impl SpuriousDetector for DsackDetection {
    fn traits(&self) -> SpuriousDetectorTraits {
        SpuriousDetectorTraits { judges_earlier: self.config.open > 1 }
    }

    fn on_retransmitted(&mut self, cx: &Context<'_>, id: SegId, cause: SendReason) {
        let Some(episode) = self.live().filter(|_| cause != SendReason::WindowProbe) else { return };
        match cx.board.get(id).map(|record| record.transmissions) {
            Some(2) => episode.unproven += Segments(1),
            _ => episode.no_undo = true,
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        let dsack = ack.dsack.filter(|dsack| !self.off && !dsack.segments.is_empty())?;
        if dsack.ack_loss {
            for episode in &mut self.episodes {
                episode.no_undo = true;
            }
            return None;
        }
        let mut proven = None;
        for segment in dsack.segments {
            proven = self.prove(segment).or(proven);
        }
        let proven = proven.filter(|_| !ack.ece)?;
        self.verdict(proven, cx.snd.snapshot.as_ref())
    }

    fn earlier(&mut self) -> Option<SegId> {
        self.earlier.take()
    }
}

impl Plugin for DsackDetection {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            // A timeout during an episode continues it: an undo restores the window from before the start of the
            // episode.
            RecoveryEvent::Timeout { .. } if self.live().is_some() => {
                let last = self.episodes.len() - 1;
                self.episodes.drain(..last);
            }
            RecoveryEvent::EnterRecovery => self.begin(cx),
            RecoveryEvent::Timeout { .. } => {
                self.episodes.clear();
                self.begin(cx);
            }
            RecoveryEvent::LeaveRecovery | RecoveryEvent::Spurious(_) => {
                if let Some(episode) = self.episodes.last_mut() {
                    episode.ended = episode.ended.min(cx.now);
                }
            }
        }
    }

    fn heap_size(&self) -> usize {
        self.episodes.capacity() * size_of::<Episode>()
    }
}
