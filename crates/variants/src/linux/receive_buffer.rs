//! How the receive window of Linux grows: dynamic right-sizing (Fisk, Feng: Dynamic right-sizing in TCP, LACSI
//! Symposium, 2001) of a buffer that counts memory, not data (`ip-sysctl`: `tcp_rmem`, `tcp_moderate_rcvbuf`).
//!
//! **Rules.** The numbers were observed in windows announced by Linux 6.18.
//! - 1: a connection starts with half of `tcp_rmem[1]` (128 KiB), less what is not a whole segment. Once a segment has shown how much memory its data needs,
//!   the space for data is that share of the buffer.
//! - 2: each segment with data, in order or not, lets the window grow by two segments, as long as the space is not used
//!   up by the window and by data that has arrived and was not read. Such a segment is acknowledged at once
//!   ([`super::acks`]).
//! - 3: once per round trip, if the application has read more than in any round trip before, the space becomes enough for
//!   the round trip after the next: twice what was read, and twice as much again for each factor by which the amount has
//!   grown. Data that waits above a gap comes on top.
//! - 4: the window is at most the space less the data that waits above a gap or was not read. Its right edge never moves
//!   back (RFC 9293 §3.8.6).
//! - 5: whole units of the window scale are announced, rounded up.
//!
//! **Departure.** When a gap is filled, the kernel acknowledges before the application reads, and announces the rest of the
//! window with the next ACK. The simulated application reads first.

use reknit_tcp::seams::{Plugin, Reading, ReceiveBuffer, RxFacts, Space};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Segments of the initial window, the most that is expected in the first round trip (RFC 6928).
const FIRST_ROUND: u64 = 10;

/// The receive buffers of Linux are smaller.
const LARGEST: u64 = 1 << 31;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxReceiveBufferConfig {
    /// The initial size of the buffer (`tcp_rmem[1]`), in bytes of memory.
    #[schemars(range(min = 4096, max = 1_073_741_824))]
    pub initial: u32,
    /// The memory of a full segment, in bytes. It depends on the network device.
    #[schemars(range(min = 256, max = 65_536))]
    pub segment_memory: u32,
}

impl Default for LinuxReceiveBufferConfig {
    fn default() -> LinuxReceiveBufferConfig {
        LinuxReceiveBufferConfig { initial: 131_072, segment_memory: 2304 }
    }
}

impl Algorithm<dyn ReceiveBuffer> for LinuxReceiveBufferConfig {
    fn build(&self) -> Box<dyn ReceiveBuffer> {
        Box::new(Buffer {
            config: self.clone(),
            window: self.initial / 2,
            space: 0,
            most: 0,
            began: Instant::NEVER,
            from: Offset::DATA,
        })
    }
}

/// Sizes in bytes of data. Every connection has one, so they are small numbers.
#[derive(Clone, Debug)]
struct Buffer {
    config: LinuxReceiveBufferConfig,
    /// The window that may be announced (`rcv_ssthresh`).
    window: u32,
    /// How much data the buffer can hold (`window_clamp`).
    space: u32,
    /// The most that was read in a round trip so far (`rcvq_space`).
    most: u32,
    /// When the current round trip began, and what had been read then.
    began: Instant,
    from: Offset,
}

impl Buffer {
    /// Rule 1: how much data the buffer of the beginning can hold. The share of data is in 256ths, rounded down.
    fn first_space(&self, rmss: Bytes) -> u64 {
        let share = (rmss.0 * 256 / u64::from(self.config.segment_memory)).min(256);
        u64::from(self.config.initial) * share / 256
    }

    /// Rule 2. True if the window grows.
    fn grow_window(&mut self, rx: &RxFacts<'_>) -> bool {
        self.grow_to(self.first_space(rx.rmss));
        let waiting = rx.rcv_nxt.since(rx.read) + rx.held;
        let room = u64::from(self.space.saturating_sub(self.window)).saturating_sub(waiting.0);
        self.window += room.min(2 * rx.rmss.0) as u32;
        room > 0
    }

    /// Rule 3.
    fn grow_space(&mut self, rx: &Reading) {
        if !self.began.is_set() {
            self.began = rx.now;
            self.most = (FIRST_ROUND * rx.rmss.0) as u32;
        }
        if rx.rtt.is_none_or(|rtt| rx.now.since(self.began) < rtt) {
            return;
        }
        let read = rx.read.since(self.from).0.min(LARGEST);
        (self.began, self.from) = (rx.now, rx.read);
        let most = u64::from(self.most);
        if read <= most {
            return;
        }
        let growth = 2 * read * (read - most) / most.max(1);
        self.most = read as u32;
        self.grow_to(2 * read + 2 * growth + rx.above_gap.0);
    }

    fn grow_to(&mut self, space: u64) {
        self.space = self.space.max(space.min(LARGEST) as u32);
    }

    fn size(&self, held: Bytes) -> Bytes {
        Bytes(u64::from(self.space)) - held
    }
}

impl Plugin for Buffer {}

impl ReceiveBuffer for Buffer {
    /// Rule 1.
    fn initial(&mut self, mss: Bytes) -> Bytes {
        let most = self.config.initial / 2;
        self.window = most - most % (mss.0 as u32).clamp(1, most.max(1));
        Bytes(u64::from(self.window))
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) -> Space {
        let grew = self.grow_window(rx);
        // Rule 4.
        Space { size: self.size(rx.held), grew }
    }

    fn on_read(&mut self, reading: &Reading) -> Option<Bytes> {
        self.grow_space(reading);
        Some(self.size(reading.held))
    }

    fn largest_window(&self) -> Bytes {
        Bytes(u64::from(self.window))
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Config as Tcp;
    use reknit_tcp::experiment::ExperimentalOption;
    use reknit_tcp::seams::Arrival;
    use reknit_units::Duration;

    use super::*;

    const SMSS: u64 = 1448;
    /// 45 segments.
    const FIRST: u64 = 65_160;

    /// A receiver whose application reads at once, on a path with a round trip of 182 ms.
    struct Receiver {
        buffer: Box<dyn ReceiveBuffer>,
        tcp: Tcp,
        rcv_nxt: u64,
    }

    impl Receiver {
        fn new() -> Receiver {
            let mut buffer = LinuxReceiveBufferConfig::default().build();
            assert_eq!(buffer.initial(Bytes(SMSS)), Bytes(FIRST));
            Receiver { buffer, tcp: Tcp::default(), rcv_nxt: 0 }
        }

        /// `n` segments arrive in order, one every 1.2 ms. Returns the size after each, and whether it grew.
        fn in_order(&mut self, at_us: u64, n: u64) -> Vec<(u64, bool)> {
            (0..n).map(|i| self.arrive(at_us + 1200 * i, self.rcv_nxt, 0)).collect()
        }

        /// Segment `start`, counted from 0, arrives. If it is not the next one, `held` segments wait above the gap then.
        fn arrive(&mut self, at_us: u64, start: u64, held: u64) -> (u64, bool) {
            let read = self.rcv_nxt;
            if held == 0 {
                self.rcv_nxt += 1;
            }
            let at = |segment: u64| Offset::DATA + Bytes(segment * SMSS);
            let space = self.buffer.on_data(&RxFacts {
                now: Instant::ZERO + Duration::from_micros(at_us),
                config: &self.tcp,
                arrival: if held == 0 { Arrival::InOrder } else { Arrival::OutOfOrder },
                start: at(start),
                end: at(start + 1),
                rcv_nxt: at(self.rcv_nxt),
                highest: at((start + 1).max(self.rcv_nxt)),
                read: at(read),
                held: Bytes(held * SMSS),
                gaps: held > 0,
                newer_blocks: 0,
                rmss: Bytes(SMSS),
                fin: false,
                push: false,
                window: Bytes(65_535),
                buffer_grew: false,
                timestamp: None,
                experiment: &ExperimentalOption::default(),
                dropped: None,
                rtt: Some(Duration::from_millis(182)),
            });
            let size = space.size.min(self.buffer.largest_window()).0;
            if held == 0 {
                self.buffer.on_read(&Reading {
                    now: Instant::ZERO + Duration::from_micros(at_us),
                    read: at(self.rcv_nxt),
                    left: Bytes::ZERO,
                    held: Bytes::ZERO,
                    above_gap: Bytes::ZERO,
                    rmss: Bytes(SMSS),
                    rtt: Some(Duration::from_millis(182)),
                });
            }
            (size, space.grew)
        }
    }

    /// The windows that Linux 6.18 announced in slow start, before they were rounded up to its units of 1024 bytes.
    #[test]
    fn the_window_grows_with_what_was_read_in_a_round_trip() {
        let mut receiver = Receiver::new();
        let first = receiver.in_order(184_000, 10);
        assert_eq!(first[0], (FIRST + 2896, true));
        assert_eq!(first[4], (FIRST + 5 * 2896, true));
        assert_eq!(first[5], (81_920 - SMSS, true));
        assert_eq!(first[6], (81_920 - SMSS, false));
        // 11 segments were read when the first round trip ends: one more than expected.
        let second = receiver.in_order(367_800, 20);
        assert!(second.iter().all(|step| *step == (81_920 - SMSS, false)));
        // 20 in the second. The space becomes 2 * 20 segments and 4 * 20 * 9/11.
        let third = receiver.in_order(551_600, 40);
        assert_eq!(third[0], (81_920 - SMSS, false));
        assert_eq!(third[1], (81_920 - SMSS + 2896, true));
        assert_eq!(third[39], (152_698 - SMSS, false));
    }

    #[test]
    fn segments_above_a_gap_let_it_grow_too_but_take_space() {
        let mut receiver = Receiver::new();
        receiver.in_order(184_000, 1);
        let steps: Vec<u64> = (1..=6).map(|held| receiver.arrive(190_000 + held, 1 + held, held).0).collect();
        // Six segments wait at the end.
        assert_eq!(steps, [70_952, 73_848, 76_744, 76_128, 74_680, 73_232]);
    }

    #[test]
    fn a_slower_round_trip_changes_nothing() {
        let mut receiver = Receiver::new();
        for (round, segments) in [10, 20, 40, 30, 40, 5].into_iter().enumerate() {
            receiver.in_order(184_000 + 184_000 * round as u64, segments);
        }
        let (size, _) = receiver.in_order(1_500_000, 1)[0];
        let (later, grew) = receiver.in_order(1_700_000, 1)[0];
        assert_eq!((later, grew), (size, false));
    }
}
