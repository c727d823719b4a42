//! # F-RTO
//!
//! Sarolahti, Kojo, Raatikainen: F-RTO: A New Recovery Algorithm for TCP Retransmission Timeouts. Helsinki C-2002-07,
//! 2002 (`2002`). Sarolahti, Kojo, Yamamoto, Hata: RFC 5682, 2009, §2 (`basic`) and §3 (`sack`).
//!
//! **What it changes.** After a timeout only the first segment is retransmitted. If the first ACK advances, new data is
//! sent instead of more retransmissions. If the second ACK advances too, it was sent for an original: the timeout was
//! spurious, and nothing else is retransmitted.
//!
//! **State.** `step`: which ACK comes next. `recover`: SND.NXT when the first ACK arrived (`recover` in §2,
//! `RecoveryPoint` in §3). `retransmitted_end`: the end of the retransmitted segment.
//!
//! **Rules.**
//! - 1: when the timer expires, the first segment is retransmitted, and the sender waits for ACKs. `basic` and `sack`
//!   do this only if no recovery from an earlier loss is in progress.
//! - 2, the first ACK: if it advances, up to two new segments are sent. If it is a duplicate, or there is no new data,
//!   the timeout is genuine, and everything is retransmitted in slow start: from one segment after a duplicate,
//!   otherwise from two. `basic` and `sack` also treat the timeout as genuine if the ACK covers everything that was
//!   sent, and `basic` if it covers only a part of the retransmitted segment. `sack` ignores duplicates.
//! - 3, the second ACK: if it advances, the timeout was spurious (or only the first segment was lost, and the others were late: the
//!   halved window is right then, too, §3 of the paper). If it is a duplicate, the timeout is genuine, and slow start begins at
//!   three segments. `sack` looks at the acknowledged data instead: if all of it was sent before
//!   the timeout, the timeout was spurious; if it includes the new data, or nothing is acknowledged, the timeout is
//!   genuine.
//! - On the ACK that decides, at most three segments are sent at once (`2002`). Later ACKs are limited by `max_burst` of
//!   the path, which is 3 in the paper.
//!
//! The response then decides about the window (`spurious_response`). `2002` keeps it halved. The RFC leaves it
//! open; here RFC 4015 is used. With DSACK, even the halving can be undone later (§3 and §6 of the paper): `frto-2002+dsack`.
//!
//! **Departures.** Until the timeout is judged, cwnd is one segment, as in RFC 5682; the paper does not change it. This
//! has no effect on what is sent. `max_burst` delays what exceeds it, where the paper's Linux lowers cwnd, after
//! which slow start follows (§4.2). After a timeout in fast recovery, ssthresh is half of the window that recovery was to end
//! with; the paper says half of what is outstanding, and Linux 2.4 does not reduce it again. Nagle's algorithm is not overridden. SACK information is kept after the timeout (RFC
//! 6675 §5.1). With SACK, `basic` also does nothing after a timeout in fast recovery; without SACK, `sack` works like
//! `basic`. After a genuine timeout the new segments of step 2 count as in flight, so slow start from three segments
//! retransmits fewer at first. The hard limit on data in flight also applies to the two new segments.
//!
//! **Status.** Faithful; `frto-2002+dsack` is partial: §3 says that the sender can revert the last adjustments, which is
//! `instant`; §6 leaves open how far to revert, and whether at once; here in slow start. The test like F-RTO's that §6 wishes for Eifel when ACKs are
//! lost is not implemented.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent};
use reknit_tcp::scoreboard::SegmentRecord;
use reknit_tcp::seams::{AfterTimeout, Plugin, TimeoutRecovery, TimeoutStep};
use reknit_tcp::seq::Offset;
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Which version of the algorithm is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The paper.
    #[serde(rename = "2002")]
    Paper2002,
    /// RFC 5682 §2.1.
    Basic,
    /// RFC 5682 §3.1.
    #[default]
    Sack,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FrtoConfig {
    /// Which version of the algorithm is used.
    pub version: Version,
}

impl Algorithm<dyn TimeoutRecovery> for FrtoConfig {
    fn build(&self) -> Box<dyn TimeoutRecovery> {
        Box::new(Frto {
            version: self.version,
            step: Step::First,
            recover: Offset::SYN,
            retransmitted_end: Offset::SYN,
        })
    }
}

/// Which ACK comes next, in the numbering of the RFC: that of step 2 or of step 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    First,
    Second,
}

#[derive(Clone, Debug)]
struct Frto {
    version: Version,
    step: Step,
    recover: Offset,
    retransmitted_end: Offset,
}

impl Frto {
    /// Without SACK only the cumulative acknowledgment is available.
    fn version(&self, cx: &Context<'_>) -> Version {
        if self.version == Version::Sack && !cx.snd.sack { Version::Basic } else { self.version }
    }

    /// RFC 5682 §2.1 and §3.1, step 1: an earlier recovery is in progress. `recover` is not set before the first ACK
    /// after a timeout, so the same segment may be probed again.
    fn recovery_is_pending(&self, cx: &Context<'_>) -> bool {
        let recovering = cx.snd.phase == Phase::Recovery && cx.snd.sack;
        recovering || self.recover > cx.snd.snd_una
    }

    /// Step 2.
    fn first_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep {
        let smss = cx.snd.smss;
        let version = self.version(cx);
        if !ack.advances() {
            if !ack.duplicate || version == Version::Sack {
                return TimeoutStep::Pass;
            }
            self.recover = cx.snd.snd_nxt;
            return TimeoutStep::FallBack(smss);
        }
        self.recover = cx.snd.snd_nxt;
        let covers_all = ack.ack == self.recover;
        let says_nothing = match version {
            Version::Paper2002 => false,
            Version::Basic => covers_all || ack.ack < self.retransmitted_end,
            Version::Sack => covers_all,
        };
        if says_nothing || !cx.snd.can_send_new {
            return TimeoutStep::FallBack(smss * 2);
        }
        self.step = Step::Second;
        let cwnd = if version == Version::Paper2002 { cx.snd.ssthresh } else { smss * 2 };
        TimeoutStep::SendNew(Segments(2), cwnd)
    }

    /// Step 3. The paper and the basic algorithm use only the cumulative acknowledgment.
    fn second_ack(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep {
        let spurious = match self.version(cx) {
            Version::Paper2002 | Version::Basic => ack.advances(),
            Version::Sack => self.answers_originals_only(cx, ack),
        };
        if spurious {
            TimeoutStep::Spurious
        } else if ack.advances() || ack.duplicate {
            TimeoutStep::FallBack(cx.snd.smss * 3)
        } else {
            TimeoutStep::Pass
        }
    }

    /// RFC 5682 §3.1, step 3: everything that this ACK reports was sent before the timeout.
    fn answers_originals_only(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let starts = || ack.newly.iter().filter_map(|id| cx.board.get(*id)).map(|record| record.start);
        !ack.newly.is_empty() && starts().all(|start| start < self.recover)
    }
}

impl TimeoutRecovery for Frto {
    fn on_timeout(&mut self, cx: &Context<'_>) -> AfterTimeout {
        self.step = Step::First;
        if self.version != Version::Paper2002 && self.recovery_is_pending(cx) {
            self.recover = cx.snd.snd_nxt;
            return AfterTimeout::Conventional;
        }
        let first = cx.board.get(cx.board.first());
        self.retransmitted_end = first.map_or(cx.snd.snd_una, SegmentRecord::end);
        AfterTimeout::Probe
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep {
        match self.step {
            _ if ack.stale => TimeoutStep::Pass,
            Step::First => self.first_ack(cx, ack),
            Step::Second => self.second_ack(cx, ack),
        }
    }
}

impl Plugin for Frto {
    /// After a spurious timeout no recovery is in progress: fast retransmit is allowed at once.
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        if let RecoveryEvent::Spurious(_) = event {
            self.recover = cx.snd.snd_una;
        }
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_units::{Bytes, Instant};

    use super::*;
    use crate::base::given::{self, SMSS};

    #[test]
    fn an_ack_for_a_part_of_the_retransmission_proves_nothing_in_the_basic_algorithm() {
        let half = Offset::DATA + Bytes(SMSS.0 / 2);
        let (board, config) = (Scoreboard::default(), reknit_tcp::Config::default());
        let snd = SendState { snd_una: half, phase: Phase::Loss, ..given::state() };
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let ack = AckFacts { ack: half, ..given::ack() };
        for (version, step) in [
            (Version::Paper2002, TimeoutStep::SendNew(Segments(2), snd.ssthresh)),
            (Version::Basic, TimeoutStep::FallBack(SMSS * 2)),
            (Version::Sack, TimeoutStep::SendNew(Segments(2), SMSS * 2)),
        ] {
            let retransmitted_end = Offset::DATA + SMSS;
            let mut frto = Frto { version, step: Step::First, recover: Offset::SYN, retransmitted_end };
            assert_eq!(frto.on_ack(&cx, &ack), step, "{version:?}");
        }
    }
}
