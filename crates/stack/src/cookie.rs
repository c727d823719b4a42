//! SYN cookies (RFC 4987 §3.6): a SYN beyond the backlog is answered without any state. What is needed later is in the sequence
//! number of the answer: the period (2 bits), the segment size (2 bits, one of four), SACK (1 bit), the window scale (4 bits),
//! and a keyed hash of all this, the flow and the peer's sequence number (23 bits). Made in `stack/opening.rs` for a SYN that
//! finds the SYN backlog full; checked for an ACK that belongs to no connection.
//!
//! Timestamps take no bits: if they were negotiated, the next segment has them. ECN and experimental options are lost.

use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_units::{Duration, Instant};

use crate::flow::{FourTuple, HashDomain, Secret};

/// A cookie is valid in the period in which it was made and in the next.
const PERIOD: Duration = Duration::from_secs(64);
/// Segment sizes that a cookie can encode: those of common paths. Others are rounded down to one of them.
const SIZES: [u16; 4] = [536, 1220, 1360, 1460];
/// The window scale of a peer that does not scale.
const NO_SCALE: u32 = 15;
const MAC_BITS: u32 = 23;
const MAC: u32 = (1 << MAC_BITS) - 1;

/// How long after the last cookie an answer to one may arrive.
pub(crate) const LIFETIME: Duration = Duration::from_secs(128);

/// The sequence number of the SYN-ACK. `sack`: both ends offer it.
pub(crate) fn make(secret: &Secret, now: Instant, flow: &FourTuple, syn: &Segment, sack: bool) -> SeqNum {
    let mss = syn.options.mss.unwrap_or(SIZES[0]);
    let size = SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0) as u32;
    let scale = syn.options.window_scale.map_or(NO_SCALE, |scale| u32::from(scale.min(14)));
    let period = period(now);
    let kept = (period as u32 % 4) << 7 | size << 5 | u32::from(sack) << 4 | scale;
    SeqNum(kept << MAC_BITS | mac(secret, flow, period, syn.seq, kept))
}

/// The SYN of the handshake that `ack` completes, as far as the cookie encodes it. None if the cookie is not ours or too old.
pub(crate) fn check(secret: &Secret, now: Instant, flow: &FourTuple, ack: &Segment) -> Option<Segment> {
    let cookie = ack.ack.0.wrapping_sub(1);
    let irs = SeqNum(ack.seq.0.wrapping_sub(1));
    let kept = cookie >> MAC_BITS;
    let age = (period(now) as u32).wrapping_sub(kept >> 7) % 4;
    let period = period(now).checked_sub(u64::from(age))?;
    if age > 1 || mac(secret, flow, period, irs, kept) != cookie & MAC {
        return None;
    }
    let options = Options {
        mss: Some(SIZES[(kept >> 5) as usize % 4]),
        sack_permitted: kept & 16 != 0,
        window_scale: Some((kept & 15) as u8).filter(|scale| u32::from(*scale) != NO_SCALE),
        timestamps: ack.options.timestamps.map(|theirs| Timestamps { val: theirs.val, ecr: 0 }),
        ..Options::default()
    };
    Some(Segment { seq: irs, flags: Flags::SYN, options, ..Segment::default() })
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

fn mac(secret: &Secret, flow: &FourTuple, period: u64, irs: SeqNum, kept: u32) -> u32 {
    let extra = u64::from(irs.0) << 32 | (period << 9 | u64::from(kept)) & 0xffff_ffff;
    (secret.hash(flow, HashDomain::Cookie(extra)) >> 20) as u32 & MAC
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FourTuple {
        FourTuple { local: "10.0.0.1:80".parse().unwrap(), remote: "10.0.0.2:4000".parse().unwrap() }
    }

    fn syn(mss: u16, window_scale: Option<u8>) -> Segment {
        let options = Options { mss: Some(mss), window_scale, ..Options::default() };
        Segment { seq: SeqNum(u32::MAX), flags: Flags::SYN, options, ..Segment::default() }
    }

    fn answer(cookie: SeqNum) -> Segment {
        let options = Options { timestamps: Some(Timestamps { val: 78, ecr: 5 }), ..Options::default() };
        Segment { seq: SeqNum(0), ack: cookie.plus(1), flags: Flags::ACK, options, ..Segment::default() }
    }

    #[test]
    fn what_a_cookie_keeps_comes_back() {
        let secret = Secret::new([1; 16]);
        for (mss, kept, scale, sack) in [
            (1460, 1460, Some(9), true),
            (1459, 1360, None, false),
            (65_000, 1460, Some(14), true),
            (100, 536, Some(0), false),
        ] {
            let now = Instant::ZERO + Duration::from_secs(1000);
            let cookie = make(&secret, now, &flow(), &syn(mss, scale), sack);
            for later in [Duration::ZERO, PERIOD] {
                let found = check(&secret, now + later, &flow(), &answer(cookie)).unwrap();
                assert_eq!(found.seq, SeqNum(u32::MAX));
                let timestamps = Some(Timestamps { val: 78, ecr: 0 });
                let options = Options { sack_permitted: sack, timestamps, ..syn(kept, scale).options };
                assert_eq!(found.options, options);
            }
        }
    }

    #[test]
    fn old_and_foreign_cookies_are_refused() {
        let secret = Secret::new([1; 16]);
        let now = Instant::ZERO + Duration::from_secs(1000);
        let cookie = make(&secret, now, &flow(), &syn(1460, None), true);
        let ack = answer(cookie);
        for later in 2..8 {
            assert!(check(&secret, now + PERIOD * later, &flow(), &ack).is_none());
        }
        let other = FourTuple { remote: "10.0.0.2:4001".parse().unwrap(), ..flow() };
        assert!(check(&secret, now, &other, &ack).is_none());
        assert!(check(&secret, now, &flow(), &Segment { seq: SeqNum(9), ..ack }).is_none());
        let guessed = (0..1 << 14).filter(|n| check(&secret, now, &flow(), &answer(SeqNum(n << 17))).is_some());
        assert_eq!(guessed.count(), 0);
    }
}
