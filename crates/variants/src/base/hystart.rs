//! HyStart as implemented in Linux: leave slow start when the ACKs of one round form a train as long as half the
//! minimum RTT, or when the RTT rises. Ha, Rhee: Taming the elephants: New TCP slow start, Computer Networks 55(9),
//! 2011.
//!
//! This is not HyStart++ (RFC 9406), which has no ACK train and leaves slow start gradually.

use reknit_tcp::facts::Context;
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant};

/// Below this window, in segments, slow start always continues (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// A larger gap between ACKs ends the train (`hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Samples needed before the minimum RTT of a round is used.
const MIN_SAMPLES: u32 = 8;
/// The RTT has risen if it exceeds the minimum by an eighth of it, within these bounds.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// How much the kernel's largest burst may lengthen a train, if sending it takes a millisecond or more.
const BURST: Duration = Duration::from_millis(1);

/// One round of slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    /// The round ends when data beyond this is acknowledged.
    end_seq: Offset,
    round_start: Instant,
    last_ack: Instant,
    smallest: Duration,
    samples: u32,
}

impl HyStart {
    pub(crate) const NEW: HyStart = HyStart {
        end_seq: Offset::SYN,
        round_start: Instant::ZERO,
        last_ack: Instant::ZERO,
        smallest: Duration::MAX,
        samples: 0,
    };

    /// Takes the RTT sample of an ACK; `min_rtt` is the minimum of the connection. Returns true if slow start ends.
    pub(crate) fn ends(&mut self, cx: &Context<'_>, rtt: Duration, min_rtt: Duration) -> bool {
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
