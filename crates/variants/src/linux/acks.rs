//! When the Linux receiver sends ACKs.
//!
//! **Rules.**
//! - 1 (RFC 5681 §4.2): an ACK is sent at once when more than one full segment has arrived in order since the last ACK,
//!   for a duplicate, and for a segment that closes the last gap. A segment with PSH in order is acknowledged as soon
//!   as the application has read everything (observed).
//! - 2, quick ACKs: the first 16 segments of a connection, and 16 segments after a duplicate (observed), are
//!   acknowledged one by one, but no more than half the receive window in this way. So is each segment that lets the
//!   window grow ([`super::receive_buffer`]). If the very first segment arrives out of order, there are no other quick
//!   ACKs at the start: it lets the window grow, and its ACK ends them (observed).
//! - 3, delayed ACKs: otherwise an ACK waits for a smoothed estimate of the time between segments, at least 40 ms. The
//!   upper limit is the round-trip time, but between 40 and 200 ms (observed: 40 ms in bulk transfers). The estimate is of
//!   segments in order, and it is 40 ms again when quick ACKs end. The timer has the ticks of the kernel.
//! - 4, compressed SACKs (`tcp_comp_sack_*` in `ip-sysctl`): while there is a gap, the first three ACKs for each
//!   RCV.NXT are sent at once. Later ones wait for a twentieth of the round-trip time, at most 1 ms, or until 44
//!   segments have arrived. If a segment extends neither of the two blocks that changed last, an ACK that is delayed is
//!   sent first (observed: an ACK for every segment on three paths).
//!
//! **Departure.** The ACK that is sent first already reports the new segment, and the delayed one repeats it.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, Plugin, Reading, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticks::expiry;
use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxAcksConfig {
    /// Segments that are acknowledged one by one at the start of a connection and after a duplicate.
    #[schemars(range(min = 0, max = 1000))]
    pub quick: u32,
    /// The shortest delay of an ACK.
    pub min_delay: Duration,
    /// The longest delay of an ACK.
    pub max_delay: Duration,
    /// The longest delay of a SACK (`tcp_comp_sack_delay_ns`).
    pub sack_delay: Duration,
    /// The most segments that one delayed SACK covers (`tcp_comp_sack_nr`). With 0, SACKs are not delayed.
    #[schemars(range(min = 0, max = 255))]
    pub sack_segments: u32,
}

impl Default for LinuxAcksConfig {
    fn default() -> LinuxAcksConfig {
        LinuxAcksConfig {
            quick: 16,
            min_delay: Duration::from_millis(40),
            max_delay: Duration::from_millis(200),
            sack_delay: Duration::from_millis(1),
            sack_segments: 44,
        }
    }
}

impl Algorithm<dyn AckPolicy> for LinuxAcksConfig {
    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(Acks {
            config: self.clone(),
            unacknowledged: Bytes::ZERO,
            quick: 0,
            delay: None,
            last_data: Instant::ZERO,
            duplicates: 0,
            duplicates_of: Offset::SYN,
            compressed: 0,
            follows: false,
            pushed: false,
        })
    }
}

/// Duplicate ACKs that are sent at once: RFC 5681 §3.2 needs three.
const DUP_THRESH: u32 = 3;

/// Before an older block changes, what waits is acknowledged: later ACKs may have no room left to report it.
const FEW_BLOCKS: usize = 2;

#[derive(Clone, Debug)]
struct Acks {
    config: LinuxAcksConfig,
    /// Bytes in order since the last ACK.
    unacknowledged: Bytes,
    /// Quick ACKs left.
    quick: u32,
    /// `ato`: how long an ACK waits; `None` before the first data.
    delay: Option<Duration>,
    last_data: Instant,
    /// ACKs for the current RCV.NXT that were sent at once.
    duplicates: u32,
    duplicates_of: Offset,
    /// Segments that a compressed ACK will cover.
    compressed: u32,
    /// A compressed ACK follows the one that is sent now.
    follows: bool,
    /// A segment with PSH has arrived in order since the last ACK.
    pushed: bool,
}

impl Acks {
    /// Rule 2.
    fn be_quick(&mut self, rx: &RxFacts<'_>) {
        let half = (rx.window.0 / (2 * rx.rmss.0.max(1))).max(2) as u32;
        self.quick = self.quick.max(half.min(self.config.quick));
    }

    /// Rule 3: updates the time between segments that arrive in order.
    fn note_arrival(&mut self, rx: &RxFacts<'_>) {
        let min = self.config.min_delay;
        let since = rx.now.since(self.last_data);
        self.last_data = rx.now;
        let Some(delay) = self.delay else {
            self.delay = Some(min);
            self.be_quick(rx);
            return;
        };
        let patience = rx.rtt.unwrap_or(self.config.max_delay) + self.config.max_delay;
        if since <= min / 2 {
            self.delay = Some(delay / 2 + min / 2);
        } else if since < delay {
            self.delay = Some((delay / 2 + since).min(patience));
        } else if since > patience {
            self.be_quick(rx);
        }
    }

    fn delayed(&self, rx: &RxFacts<'_>) -> AckAction {
        let delay = self.delay.unwrap_or(self.config.min_delay);
        let bound = rx.rtt.unwrap_or(self.config.max_delay).max(self.config.min_delay).min(self.config.max_delay);
        AckAction::By(expiry(rx.now, rx.now + delay.min(bound)))
    }

    /// Rule 4.
    fn compress(&mut self, rx: &RxFacts<'_>) -> AckAction {
        if self.compressed >= self.config.sack_segments {
            return AckAction::Now;
        }
        if self.duplicates_of != rx.rcv_nxt {
            self.duplicates_of = rx.rcv_nxt;
            self.duplicates = 0;
        }
        if self.duplicates < DUP_THRESH {
            self.duplicates += 1;
            return AckAction::Now;
        }
        let delay = rx.rtt.map_or(Duration::ZERO, |rtt| (rtt / 20).min(self.config.sack_delay));
        let at = rx.now + delay;
        self.follows = self.compressed > 0 && rx.newer_blocks >= FEW_BLOCKS;
        if self.follows {
            return AckAction::NowAndBy(at);
        }
        self.compressed += 1;
        AckAction::By(at)
    }
}

impl Plugin for Acks {}

impl AckPolicy for Acks {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        let old = rx.arrival == Arrival::Duplicate && rx.end <= rx.rcv_nxt;
        if old {
            self.be_quick(rx);
            return AckAction::Now;
        }
        self.follows = false;
        let in_order = matches!(rx.arrival, Arrival::InOrder | Arrival::FillsGap);
        if in_order {
            self.note_arrival(rx);
        } else if self.delay.is_none() {
            self.last_data = rx.now; // the first gap is not a pause of the sender
        }
        if rx.buffer_grew {
            self.quick |= 1;
        }
        if in_order {
            self.unacknowledged += rx.end.since(rx.start);
        }
        let closes = rx.arrival == Arrival::FillsGap && !rx.gaps;
        self.pushed |= in_order && rx.push;
        if closes || self.unacknowledged > rx.rmss || self.quick > 0 {
            AckAction::Now
        } else if rx.gaps {
            self.compress(rx)
        } else {
            self.delayed(rx)
        }
    }

    /// Rule 1.
    fn on_read(&mut self, reading: &Reading) -> bool {
        self.pushed && reading.left == Bytes::ZERO && reading.held == Bytes::ZERO
    }

    fn on_ack_sent(&mut self) {
        self.pushed = false;
        self.unacknowledged = Bytes::ZERO;
        self.compressed = u32::from(std::mem::take(&mut self.follows));
        if self.quick == 1 {
            self.delay = Some(self.config.min_delay);
        }
        self.quick = self.quick.saturating_sub(1);
    }
}
