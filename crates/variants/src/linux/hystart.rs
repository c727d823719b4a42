//! HyStart as Linux has it (Ha, Rhee: Taming the elephants: New TCP slow start, Computer Networks 55(9), 2011): leave slow
//! start when the ACKs of one round make a train as long as half the round trip, or when the round-trip time rises.
//!
//! Not HyStart++ (RFC 9406): there is no train there, and no sudden end here but this one.

use reknit_tcp::facts::Context;
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant};

/// Below this window slow start goes on in any case, in segments (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// ACKs further apart end the train (`hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Samples before a round's smallest round-trip time counts.
const MIN_SAMPLES: u32 = 8;
/// The rise that counts is an eighth of the smallest round-trip time, within these bounds.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// What the kernel's largest burst may add to a train, as long as that takes a millisecond or more at the sender's rate.
const BURST: Duration = Duration::from_millis(1);

/// One round of slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The round ends when more than this is acknowledged.
    end_seq: Offset,
    round_start: Instant,
    last_ack: Instant,
    smallest: Duration,
    samples: u32,
}

impl HyStart {
    pub(super) const NEW: HyStart = HyStart {
        end_seq: Offset::SYN,
        round_start: Instant::ZERO,
        last_ack: Instant::ZERO,
        smallest: Duration::MAX,
        samples: 0,
    };

    /// Takes the round-trip time that an ACK shows; `min_rtt` is the smallest of the connection. True if slow start is to
    /// end.
    pub(super) fn ends(&mut self, cx: &Context<'_>, rtt: Duration, min_rtt: Duration) -> bool {
        if cx.snd.snd_una > self.end_seq {
            let (now, end_seq) = (cx.now, cx.snd.snd_nxt);
            *self = HyStart { end_seq, round_start: now, last_ack: now, ..HyStart::NEW };
        }
        if cx.snd.cwnd < Bytes(LOW_WINDOW * cx.snd.smss.0) {
            return false;
        }
        self.train_is_long(cx.now, min_rtt) | self.delay_rises(rtt, min_rtt)
    }

    fn train_is_long(&mut self, now: Instant, min_rtt: Duration) -> bool {
        if now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        now.since(self.round_start) > (min_rtt + BURST) / 2
    }

    fn delay_rises(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        self.smallest = self.smallest.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.smallest > min_rtt + (min_rtt / 8).max(DELAY_MIN).min(DELAY_MAX)
    }
}
