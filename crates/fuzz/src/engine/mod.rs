//! Two engines, their applications, a network that does what the input says, and possibly an attacker who sees every
//! segment and sends its own to both.
//!
//! Checks: the bytes read are those written, a timer runs while data is outstanding, the work per event is bounded, a segment
//! that takes a fast path changes what it would on the slow path, and the connection ends. Without an attacker, both streams
//! arrive complete once the network works, or an end reports why not.

mod end;
mod options;
mod world;

use reknit_variants::Composition;

use crate::input::Input;
use world::World;

/// The most operations of an input.
const MAX_OPERATIONS: usize = 4000;

/// Takes an input: the variants and options of both ends, then what happens.
pub(crate) fn run(data: &[u8]) {
    reknit_tcp::proof::begin(1);
    let mut input = Input::new(data);
    let compositions = [options::composition(&mut input), options::composition(&mut input)];
    let mut world = World::new(&mut input, compositions.each_ref());
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        world.act(&mut input);
    }
    world.end();
}

/// Two ends with the variant `composition` exchange some data over a bad network, without an attacker.
pub(crate) fn transfer(composition: &Composition) {
    /// The bytes that [`World::new`] takes: no options.
    const OPTIONS: [u8; 23] = [0; 23];
    let mut schedule: Vec<u8> = OPTIONS.to_vec();
    schedule.extend((0..300u32).map(|i| match i.wrapping_mul(2_654_435_761) >> 28 {
        0 => 0x84, // the first data packet is lost,
        1 => 0xa3, // the third arrives,
        2 => 0x85, // the first is duplicated,
        3 => 0xb6, // the fourth is late
        4 | 5 => 0x41,
        6 => 0x67,
        _ => 0x0f,
    }));
    let mut input = Input::new(&schedule);
    let mut world = World::new(&mut input, [composition, composition]);
    while !input.is_empty() {
        world.act(&mut input);
    }
    world.end();
}
