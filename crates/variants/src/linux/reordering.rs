//! The degree of reordering that Linux learns (`tcp_reordering`), in segments: at least 3 and at most 300
//! (`tcp_max_reordering`).
//!
//! **Rules** (`ip-sysctl`: `tcp_reordering`, `tcp_max_reordering`; RFC 4737 §4.2 defines the extent).
//! - 1: when a segment that was sent once is delivered below the highest segment delivered so far, the degree becomes
//!   at least the distance between the two, counting both.
//! - 2: the same applies to a retransmitted segment if the receiver holds it and reports the other copy (DSACK), or if
//!   a partial ACK has a timestamp that belongs to the original transmission.
//! - 3: a timeout in the disorder state with at least 3 SACKed segments resets the degree to 3, because it was too
//!   large. Nothing else lowers it.
//!
//! The degree is used twice. Until reordering has been seen, that many SACKed segments indicate a loss without any wait
//! ([`super::rack`]). Above 3, SACKed segments let the window grow ([`super::cubic`]).
//!
//! **Departure.** Rule 2 compares the timestamp with the retransmission of that segment; Linux compares it with the
//! first retransmission of the episode.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent, TIMESTAMP_TICK};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxReorderingConfig {
    /// The initial degree (`tcp_reordering`).
    #[schemars(range(min = 1, max = 1000))]
    pub initial: Segments,
    /// The largest degree (`tcp_max_reordering`).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max: Segments,
}

impl Default for LinuxReorderingConfig {
    fn default() -> LinuxReorderingConfig {
        LinuxReorderingConfig { initial: Segments(3), max: Segments(300) }
    }
}

impl Algorithm<dyn DupThresh> for LinuxReorderingConfig {
    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Degree::new(self.clone()))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Degree {
    config: LinuxReorderingConfig,
    learned: Segments,
    /// The highest segment delivered before the current ACK.
    highest: Option<SegId>,
    in_episode: bool,
}

impl Degree {
    pub(super) fn new(config: LinuxReorderingConfig) -> Degree {
        Degree { learned: config.initial, highest: None, in_episode: false, config }
    }

    pub(super) fn learned(&self) -> Segments {
        self.learned
    }

    /// Another part has learned more.
    pub(super) fn raise(&mut self, learned: Segments) {
        self.learned = self.learned.max(learned);
    }

    /// Returns the distance that this ACK shows, if any.
    pub(super) fn learn(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Segments> {
        let late = self.latecomer(cx, ack);
        self.highest = self.highest.max(ack.highest);
        let distance = Segments(ack.highest?.beyond(late?).0 + 1);
        self.learned = self.learned.max(distance.min(self.config.max));
        Some(distance)
    }

    /// Rules 1 and 2: the lowest segment that this ACK shows to have been late.
    fn latecomer(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<SegId> {
        let first = lowest_overtaken(cx, ack, self.highest);
        let reported = ack.dsack.iter().flat_map(|dsack| dsack.segments);
        let twice = reported.filter(|d| d.transmissions > 1).map(|d| d.id);
        let held = twice.filter(|id| cx.board.get(*id).is_some_and(SegmentRecord::is_sacked)).min();
        first.into_iter().chain(held).chain(delayed_by_timestamp(cx, ack)).min()
    }
}

/// The lowest segment sent once that `ack` delivers below `highest`.
pub(super) fn lowest_overtaken(cx: &Context<'_>, ack: &AckFacts<'_>, highest: Option<SegId>) -> Option<SegId> {
    let sent_once = |id: &SegId| cx.board.get(*id).is_some_and(|record| record.transmissions == 1);
    ack.newly.iter().copied().filter(|id| Some(*id) < highest).filter(sent_once).min()
}

/// The first hole, if a partial ACK fills it and its timestamp belongs to the original transmission.
fn delayed_by_timestamp(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<SegId> {
    let partial = cx.snd.phase == Phase::Recovery && ack.advances() && cx.snd.snd_una < cx.snd.recover;
    let hole = ack.newly.first().copied().filter(|_| partial)?;
    let record = cx.board.get(hole)?;
    let is_older = ack.echoed? < record.last_sent.floor_to(TIMESTAMP_TICK);
    (record.transmissions > 1 && is_older).then_some(hole)
}

impl DupThresh for Degree {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        self.learn(cx, ack);
    }

    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        self.learned
    }
}

impl Plugin for Degree {
    /// Rule 3.
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        if let RecoveryEvent::Timeout { .. } = event
            && !self.in_episode
            && cx.board.sacked().segments >= self.config.initial
        {
            self.learned = self.learned.min(self.config.initial);
        }
        self.in_episode = matches!(event, RecoveryEvent::EnterRecovery | RecoveryEvent::Timeout { .. });
    }
}
