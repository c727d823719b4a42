//! Segments that an attacker makes up. They are near those of the connection, as if the attacker saw all of them.

use std::net::IpAddr;

use reknit_tcp::experiment::{AckOrdinal, Dropped, ExperimentalOption};
use reknit_tcp::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Segment, SeqNum};

use crate::input::Input;

/// An address that is written in a fuzzer.
pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().expect("a valid address")
}

/// The segment after `last`, which the other end has sent, as far as it is known: in sequence and acceptable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// What the receiver of the made-up segment waits for.
    pub(crate) seq: u32,
    /// The receiver's next sequence number.
    pub(crate) ack: u32,
    /// The timestamps of an honest segment.
    pub(crate) stamps: (u32, u32),
}

impl Expected {
    /// What the peer of the one who has sent `last` may send next.
    pub(crate) fn after(last: &Segment) -> Expected {
        let stamps = last.options.timestamps.map_or((0, 0), |stamps| (stamps.ecr.wrapping_add(1), stamps.val));
        Expected { seq: last.ack.0, ack: last.seq.0.wrapping_add(last.seq_len()), stamps }
    }
}

/// A segment that differs from what is expected in some fields.
pub(crate) fn mutated(input: &mut Input<'_>, expected: &Expected) -> Segment {
    let changed = input.u8();
    let has = |bit: u8| changed >> bit & 1 == 1;
    let mut segment = Segment {
        seq: SeqNum(expected.seq),
        ack: SeqNum(expected.ack),
        window: 60_000,
        flags: Flags::ACK,
        ..Segment::default()
    };
    if has(0) {
        segment.flags = Flags::from_bits(input.u8());
    }
    if has(1) {
        segment.seq.0 = segment.seq.0.wrapping_add(input.delta());
    }
    if has(2) {
        segment.ack.0 = segment.ack.0.wrapping_add(input.delta());
    }
    if has(3) {
        segment.len = input.of(&[1, 10, 100, 536, 1000, 1460, 9000, u16::MAX]);
    }
    if has(4) {
        segment.window = input.u16();
    }
    let (val, ecr) = expected.stamps;
    segment.options.timestamps = Some(Timestamps { val, ecr });
    if has(5) {
        segment.options.sack = blocks(input, expected.ack);
    }
    if has(6) {
        change_options(input, &mut segment.options);
    }
    if has(7) {
        segment.ecn = input.of(&[Ecn::NotCapable, Ecn::Ect0, Ecn::Capable1, Ecn::Congested]);
        segment.options.experiment = experiment(input, expected.ack);
    }
    segment
}

/// SACK blocks below `next`, or anywhere.
fn blocks(input: &mut Input<'_>, next: u32) -> SackBlocks {
    let mut blocks = SackBlocks::EMPTY;
    for _ in 0..=input.below(4) {
        let left = match input.u8() {
            back @ 0..=191 => next.wrapping_sub(u32::from(back) * 100),
            _ => next.wrapping_add(input.delta()),
        };
        let len = match input.u8() {
            segments @ 0..=199 => u32::from(segments) * 100,
            _ => input.u32(),
        };
        blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(left.wrapping_add(len)) });
    }
    blocks
}

fn change_options(input: &mut Input<'_>, options: &mut Options) {
    let which = input.u8();
    if which & 1 == 1 {
        options.timestamps = None;
    }
    if let Some(stamps) = options.timestamps.as_mut().filter(|_| which & 2 != 0) {
        stamps.val = stamps.val.wrapping_add(input.delta());
        stamps.ecr = stamps.ecr.wrapping_add(input.delta());
    }
    options.mss = (which & 4 != 0).then(|| input.u16());
    options.window_scale = (which & 8 != 0).then(|| input.u8());
    options.sack_permitted = which & 16 != 0;
}

fn experiment(input: &mut Input<'_>, near: u32) -> ExperimentalOption {
    let which = input.u8();
    let has = |bit: u8| which >> bit & 1 == 1;
    ExperimentalOption {
        retransmitted: has(0).then(|| input.flag()),
        transmission: has(1).then(|| input.u16()),
        ack_ordinal: has(2).then(|| AckOrdinal { repetition: input.u8(), overtaken: input.flag() }),
        dropped: has(3).then(|| Dropped {
            lowest: SeqNum(near.wrapping_sub(u32::from(input.u16()))),
            highest: SeqNum(near.wrapping_sub(u32::from(input.u16()))),
        }),
        reordered: has(4).then(|| input.flag()),
        dup_thresh: has(5).then(|| input.u8()),
        ..ExperimentalOption::default()
    }
}
