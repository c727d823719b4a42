//! The variants and options of the ends.

use reknit_tcp::Config;
use reknit_tcp::config::{DecreaseOf, KeepAlive, MaxWindowCaps, Paws, Retransmit, RttSamples};
use reknit_tcp::seams::Seam;
use reknit_testkit::mixed_composition::{MixedComposition, live};
use reknit_units::{Bytes, Capacity, Duration, Segments};
use reknit_variants::Composition;

use crate::input::Input;

/// A variant, with up to three parts of others.
pub(super) fn composition(input: &mut Input<'_>) -> Composition {
    let base = input.below(live().len());
    let parts = (0..input.below(4)).map(|_| (input.below(Seam::ALL.len()), input.below(live().len()))).collect();
    MixedComposition { base, parts }.composition()
}

/// Options within the allowed ranges.
pub(super) fn config(input: &mut Input<'_>) -> Config {
    let flags = input.u16();
    let has = |bit: u16| flags >> bit & 1 == 1;
    let mss = input.of(&[1460, 536, 100, 1000, 64, 9000]);
    let buffer = input.of(&[60_000, 3000, 6000, 20_000, 200_000, 1_000_000]);
    let millis = Duration::from_millis;
    let config = Config {
        mss,
        min_mss: input.of(&[536, 64]),
        initial_window: Segments(1 + input.below(10) as u32),
        max_window: input.of(&[None, Some(Segments(1)), Some(Segments(4)), Some(Segments(40))]),
        max_window_caps: if has(0) { MaxWindowCaps::Cwnd } else { MaxWindowCaps::Flight },
        max_burst: input.of(&[Some(Segments(4)), None, Some(Segments(1))]),
        nagle: !has(1),
        sack: !has(2),
        dsack: !has(3),
        timestamps: !has(4),
        paws: if has(15) { Paws::Linux } else { Paws::Rfc7323 },
        ecn: has(5),
        receive_buffer: Capacity::Bytes(Bytes(buffer.max(u64::from(mss)))),
        ack_every: Segments(1 + u32::from(!has(6))),
        ack_delay: input.of(&[millis(200), Duration::ZERO, millis(40), millis(499)]),
        min_rto: input.of(&[millis(200), millis(1000), millis(10)]),
        rto_tick: input.of(&[Duration::ZERO, millis(10), millis(100)]),
        rtt_samples: if has(7) { RttSamples::PerAck } else { RttSamples::PerRound },
        byte_counting: !has(8),
        decrease_of: if has(9) { DecreaseOf::Cwnd } else { DecreaseOf::FlightSize },
        retransmit: if has(10) { Retransmit::AnyHole } else { Retransmit::Lost },
        withhold_every: has(11).then_some(Segments(16)),
        idle_restart: !has(12),
        keep_alive: has(13).then_some(KeepAlive { idle: millis(5000), interval: millis(2000), probes: 20 }),
        drain_timeout: has(14).then_some(millis(30_000)),
        ..Config::default()
    };
    assert_eq!(config.check(), Ok(()));
    config
}
