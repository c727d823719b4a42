//! The send buffer of Linux, which grows with the window (`ip-sysctl`: `tcp_wmem`). The application writes whenever it can.
//!
//! **Rules.** What the documentation does not say was observed in Linux 6.18 (`ss -tm`: `tb` is the size, `w` what is used).
//! - 1: the size counts memory. It is enough for two windows of full segments, three with BBR, and at most `tcp_wmem[2]`. A window
//!   counts here as at least the initial one, and as one more than the learned degree of reordering. The size never shrinks.
//! - 2: it grows only when an ACK leaves room in the window, or if that ACK let more than one batch be sent.
//! - 3: an application that waits for room is woken when a third of the buffer is free.
//! - 4: it fills packets of up to half of the largest window that the peer has announced, at most 64 KiB, in full segments. Packets
//!   are divided when they are sent. It goes on with the last packet whether there is room or not, and begins another
//!   as long as the buffer is not full.
//! - 5: each packet takes some memory besides its data: one for each batch in flight, one for each run of SACKed
//!   segments, because these are joined, and those that were not sent.
//! - 6: a packet that nothing waits before is sent without waiting until there is room for a batch.
//!
//! **Departures.** The application is woken, and writes, without delay. Batches in flight are taken to have two segments.

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{Fill, Plugin, SendBuffer, SendQueue};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Segments of the initial window (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Segments that leave together.
const BATCH: u64 = 2;
/// The most data of a packet, before it is divided.
const LARGEST_PACKET: u64 = 64 << 10;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxSendBufferConfig {
    /// How many windows the buffer can hold.
    #[schemars(range(min = 1, max = 16))]
    pub windows: u32,
    /// The largest size (`tcp_wmem[2]`), in bytes of memory.
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub max: u32,
    /// The memory for which the size reckons with each segment, in bytes.
    #[schemars(range(min = 256, max = 65_536))]
    pub segment_memory: u32,
    /// The memory that a packet takes besides its data, in bytes.
    #[schemars(range(min = 0, max = 65_536))]
    pub packet_memory: u32,
}

impl Default for LinuxSendBufferConfig {
    fn default() -> LinuxSendBufferConfig {
        LinuxSendBufferConfig { windows: 2, max: 4 << 20, segment_memory: 2304, packet_memory: 832 }
    }
}

impl Algorithm<dyn SendBuffer> for LinuxSendBufferConfig {
    fn build(&self) -> Box<dyn SendBuffer> {
        Box::new(Buffer { config: self.clone(), size: 0 })
    }
}

#[derive(Clone, Debug)]
struct Buffer {
    config: LinuxSendBufferConfig,
    /// In bytes of memory (`sk_sndbuf`).
    size: u64,
}

impl Buffer {
    /// Rules 1 and 2.
    fn grow(&mut self, cx: &Context<'_>, room: Bytes) {
        let left = cx.snd.cwnd - cx.board.pipe().bytes;
        if left >= cx.snd.smss || room > cx.snd.smss * BATCH {
            let degree = u64::from(cx.snd.dup_thresh.0) + 1;
            let segments = (cx.snd.cwnd.0 / cx.snd.smss.0).max(INITIAL_WINDOW).max(degree);
            let enough = u64::from(self.config.windows) * segments * u64::from(self.config.segment_memory);
            self.size = self.size.max(enough.min(u64::from(self.config.max)));
        }
    }

    /// Rule 5.
    fn used(&self, cx: &Context<'_>, unsent: Bytes) -> u64 {
        let data = cx.snd.flight_size() + unsent;
        let unsacked = (cx.board.sent().segments - cx.board.sacked().segments).0;
        let packets =
            u64::from(unsacked).div_ceil(BATCH) + u64::from(cx.board.sacked_runs()) + unsent.0.div_ceil(packet(cx).0);
        data.0 + packets * u64::from(self.config.packet_memory)
    }
}

/// Rule 4: the most data of a packet.
fn packet(cx: &Context<'_>) -> Bytes {
    let smss = cx.snd.smss.0;
    let most = (cx.snd.max_snd_wnd.0 / 2).min(LARGEST_PACKET);
    Bytes((most - most % smss).max(smss))
}

impl Plugin for Buffer {}

impl SendBuffer for Buffer {
    /// Rule 3.
    fn wakes_writer(&mut self, cx: &Context<'_>, queue: &SendQueue) -> bool {
        self.grow(cx, queue.room);
        let used = self.used(cx, queue.unsent);
        used + used / 2 <= self.size
    }

    /// Rules 4 and 6.
    fn next_fill(&self, cx: &Context<'_>, unsent: Bytes) -> Option<Fill> {
        let packet = packet(cx);
        if unsent > Bytes::ZERO && unsent < packet {
            return Some(Fill { bytes: packet - unsent, alone: true });
        }
        (self.used(cx, unsent) < self.size).then_some(Fill { bytes: packet, alone: unsent == Bytes::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Config as Tcp;
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_tcp::seq::Offset;
    use reknit_units::{Instant, Segments};

    use super::*;
    use crate::base::given;

    const SMSS: u64 = 1448;
    /// Half of this is a packet of 22 segments.
    const WINDOW: u64 = 65_160;

    /// The state with this window and this much in flight. The scoreboard is empty, so nothing is in the pipe.
    fn state(cwnd: u64, flight: u64) -> SendState {
        SendState {
            smss: Bytes(SMSS),
            cwnd: Bytes(cwnd * SMSS),
            dup_thresh: Segments(3),
            snd_una: Offset::DATA,
            snd_nxt: Offset::DATA + Bytes(flight * SMSS),
            max_snd_wnd: Bytes(WINDOW),
            ..given::state()
        }
    }

    fn with<T>(snd: &SendState, body: impl FnOnce(&Context<'_>) -> T) -> T {
        let (config, board) = (Tcp::default(), Scoreboard::default());
        body(&Context { now: Instant::ZERO, config: &config, snd, board: &board })
    }

    fn buffer(size: u64) -> Buffer {
        Buffer { config: LinuxSendBufferConfig::default(), size }
    }

    fn size_for(snd: &SendState, room: u64, config: LinuxSendBufferConfig) -> u64 {
        let mut buffer = Buffer { config, size: 0 };
        with(snd, |cx| buffer.grow(cx, Bytes(room * SMSS)));
        buffer.size
    }

    /// Rule 1: sizes that `ss -tm` showed.
    #[test]
    fn the_size_follows_the_window_and_the_degree_of_reordering() {
        assert_eq!(size_for(&state(4, 0), 0, LinuxSendBufferConfig::default()), 46_080);
        assert_eq!(size_for(&state(24, 0), 0, LinuxSendBufferConfig::default()), 110_592);
        assert_eq!(
            size_for(&state(10, 0), 0, LinuxSendBufferConfig { windows: 3, ..LinuxSendBufferConfig::default() }),
            69_120
        );
        let reordering = SendState { dup_thresh: Segments(12), ..state(9, 0) };
        assert_eq!(size_for(&reordering, 0, LinuxSendBufferConfig::default()), 59_904);
        assert_eq!(size_for(&state(10_000, 0), 0, LinuxSendBufferConfig::default()), 4 << 20);
    }

    /// Rule 1: a smaller window leaves the size as it is.
    #[test]
    fn the_size_never_shrinks() {
        let mut buffer = buffer(110_592);
        with(&state(4, 0), |cx| buffer.grow(cx, Bytes::ZERO));
        assert_eq!(buffer.size, 110_592);
    }

    /// Rule 3: at a size of 175,104, the application of Linux was woken at 115,104, and not at 118,000.
    #[test]
    fn a_third_must_be_free() {
        let used = |flight: u64, unsent: u64| {
            let snd = state(38, flight);
            let mut buffer = buffer(175_104);
            with(&snd, |cx| {
                let queue = SendQueue { unsent: Bytes(unsent * SMSS), room: Bytes::ZERO };
                (buffer.used(cx, queue.unsent), buffer.wakes_writer(cx, &queue))
            })
        };
        // 79 segments take 114,392 bytes, and the queue is of two packets.
        assert_eq!(used(38, 41), (116_056, true));
        assert_eq!(used(38, 42), (117_504, false));
    }

    /// Rules 4 and 6.
    #[test]
    fn the_last_packet_is_completed_and_others_are_begun_while_there_is_room() {
        let fill = |size: u64, unsent: u64| with(&state(10, 0), |cx| buffer(size).next_fill(cx, Bytes(unsent * SMSS)));
        assert_eq!(fill(46_080, 0), Some(Fill { bytes: Bytes(22 * SMSS), alone: true }));
        assert_eq!(fill(0, 20), Some(Fill { bytes: Bytes(2 * SMSS), alone: true }));
        assert_eq!(fill(46_080, 22), Some(Fill { bytes: Bytes(22 * SMSS), alone: false }));
        assert_eq!(fill(46_080, 44), None);
    }
}
