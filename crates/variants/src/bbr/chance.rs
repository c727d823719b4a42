//! Pseudo-random numbers. The engine has no source of randomness.

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration};

/// A pseudo-random number from a seed, the bytes delivered so far and the smoothed RTT, mixed by the function of
/// splitmix64. The same run draws the same numbers, whatever the time at its start; flows that share a path draw
/// different ones.
pub(super) fn draw(cx: &Context<'_>, seed: u64, delivered: Bytes) -> u64 {
    let rtt = cx.snd.srtt.unwrap_or(Duration::ZERO).as_nanos();
    let mut mixed =
        seed.wrapping_add(delivered.0.rotate_left(32)).wrapping_add(rtt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
