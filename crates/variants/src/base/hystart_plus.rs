//! HyStart++ (Balasubramanian, Huang, Olson; RFC 9406, 2023): leave slow start when the round-trip time rises, before
//! the queue overflows.

use std::num::NonZeroU32;

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration};

use crate::base::progress::Progress;

/// The constants of §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// By how many segments one ACK may increase cwnd. The sender does not pace.
const L: u64 = 8;

/// What slow start does with an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth {
    /// cwnd grows by this.
    By(Bytes),
    /// Slow start is over; congestion avoidance begins at the current cwnd.
    Leave,
}

/// The state of one slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStartPlus {
    /// The round ends when data up to here is acknowledged.
    window_end: Offset,
    /// The longest duration without a sample, as in the RFC.
    last_round_min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u32,
    css: Option<Css>,
}

impl Default for HyStartPlus {
    fn default() -> HyStartPlus {
        HyStartPlus {
            window_end: Offset::default(),
            last_round_min_rtt: Duration::MAX,
            current_round_min_rtt: Duration::MAX,
            rtt_sample_count: 0,
            css: None,
        }
    }
}

/// Conservative slow start: it checks whether the rise of the round-trip time lasts.
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline_min_rtt: Duration,
    /// The number of the current round, from 1.
    round: NonZeroU32,
}

impl HyStartPlus {
    /// §4.2, on each ACK that advances.
    pub(crate) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, progress: Progress) -> Growth {
        if progress.edge(cx, ack) >= self.window_end && self.begin_round(cx) {
            return Growth::Leave;
        }
        if let Some(rtt) = ack.rtt {
            self.rtt_sample_count += 1;
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
        }
        self.judge_rtt();
        let growth = progress.of(ack).min(cx.snd.smss * L);
        Growth::By(if self.css.is_some() { Bytes(growth.0 / CSS_GROWTH_DIVISOR) } else { growth })
    }

    /// Begins a round. Returns true if conservative slow start has lasted long enough.
    fn begin_round(&mut self, cx: &Context<'_>) -> bool {
        self.window_end = cx.snd.snd_nxt;
        self.last_round_min_rtt = std::mem::replace(&mut self.current_round_min_rtt, Duration::MAX);
        self.rtt_sample_count = 0;
        match &mut self.css {
            Some(css) => {
                css.round = css.round.saturating_add(1);
                css.round.get() > CSS_ROUNDS
            }
            None => false,
        }
    }

    /// A rise by an eighth starts conservative slow start; a fall below its baseline ends it.
    fn judge_rtt(&mut self) {
        let (current, last) = (self.current_round_min_rtt, self.last_round_min_rtt);
        if self.rtt_sample_count < N_RTT_SAMPLE || last == Duration::MAX {
            return;
        }
        match self.css {
            None => {
                let thresh = (last / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH);
                if current >= last + thresh {
                    self.css = Some(Css { baseline_min_rtt: current, round: NonZeroU32::MIN });
                }
            }
            Some(css) if current < css.baseline_min_rtt => self.css = None,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Config;
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_units::Instant;

    use super::*;
    use crate::base::given::{self, SMSS};

    /// A slow start whose window is full.
    struct Flow {
        hystart: HyStartPlus,
        una: Offset,
    }

    impl Flow {
        fn new() -> Flow {
            Flow { hystart: HyStartPlus::default(), una: Offset::DATA }
        }

        /// A round of `acks` ACKs with this RTT, each of `each` segments. Returns what each does.
        fn round(&mut self, acks: u64, each: u64, rtt_ms: u64) -> Vec<Growth> {
            let snd_nxt = self.una + SMSS * (acks * each + 1);
            let (config, board) = (Config::default(), Scoreboard::default());
            let mut answers = Vec::new();
            for _ in 0..acks {
                let snd = SendState { snd_una: self.una, snd_nxt, ..given::state() };
                let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
                let rtt = Some(Duration::from_millis(rtt_ms));
                let ack = AckFacts { ack: self.una + SMSS * each, una_before: self.una, rtt, ..given::ack() };
                answers.push(self.hystart.on_ack(&cx, &ack, Progress::Acked));
                self.una += SMSS * each;
            }
            answers
        }

        fn is_conservative(&self) -> bool {
            self.hystart.css.is_some()
        }
    }

    #[test]
    fn growth_is_limited_and_slower_in_conservative_slow_start() {
        let mut flow = Flow::new();
        assert_eq!(flow.round(8, 1, 100), [Growth::By(SMSS); 8]);
        assert_eq!(flow.round(1, 20, 100), [Growth::By(SMSS * 8)]);
        flow.round(8, 1, 100);
        flow.round(8, 1, 200);
        assert!(flow.is_conservative());
        assert_eq!(flow.round(1, 1, 200), [Growth::By(Bytes(SMSS.0 / 4))]);
        assert_eq!(flow.round(1, 20, 200), [Growth::By(Bytes(SMSS.0 * 2))]);
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        for (before, below, reached) in [(16, 19, 20), (80, 89, 90), (400, 415, 416)] {
            for (rtt, conservative) in [(below, false), (reached, true)] {
                let mut flow = Flow::new();
                flow.round(8, 1, before);
                flow.round(8, 1, rtt);
                assert_eq!(flow.is_conservative(), conservative, "{before} ms, then {rtt} ms");
            }
        }
    }

    #[test]
    fn seven_samples_are_too_few() {
        let mut flow = Flow::new();
        flow.round(8, 1, 100);
        flow.round(7, 1, 200);
        assert!(!flow.is_conservative());
    }

    #[test]
    fn a_rise_that_ends_resumes_slow_start() {
        let mut flow = Flow::new();
        flow.round(8, 1, 100);
        flow.round(8, 1, 120);
        assert!(flow.is_conservative());
        assert_eq!(flow.round(8, 1, 119).last(), Some(&Growth::By(SMSS)));
        assert!(!flow.is_conservative());
    }

    #[test]
    fn a_lasting_rise_ends_slow_start() {
        let mut flow = Flow::new();
        flow.round(8, 1, 100);
        flow.round(8, 1, 120);
        for _ in 0..4 {
            assert!(!flow.round(8, 1, 120).contains(&Growth::Leave));
        }
        assert_eq!(flow.round(8, 1, 120)[0], Growth::Leave);
    }
}
