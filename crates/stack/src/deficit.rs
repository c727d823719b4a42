//! The share of its owner's time that each socket gets: deficit round robin (Shreedhar, Varghese: Efficient Fair Queuing Using
//! Deficit Round-Robin, 1996) over what arrives for it and what it sends. [`crate::sockets`] charges each segment. A socket that
//! has used its share while others wait in the send queue gets its next turn after them, and so do segments that arrive for it.
//! A part of each socket.

use reknit_units::Segments;

/// The most segments that one event of a connection sends: about 20 us of work. The rest waits for its turn.
pub(crate) const MOST_PER_EVENT: Segments = Segments(128);
/// What a turn allows, as bytes to copy: 58 packets of 1500 bytes to send, or 13 of 64 KiB; about 0.3 ms.
const QUANTUM: i64 = 1 << 20;
/// Receiving a packet, sending one, takes as long as copying so many bytes: above all, it is a system call.
const RECEIVING: usize = 8 << 10;
const SENDING: usize = 16 << 10;

/// What a socket may still do before it is the turn of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deficit(i64);

impl Deficit {
    /// A whole share.
    pub(crate) fn new() -> Deficit {
        Deficit(QUANTUM)
    }

    pub(crate) fn is_used_up(self) -> bool {
        self.0 <= 0
    }

    /// Its turn begins. What it has used too much in the last one is missing in this one.
    pub(crate) fn begin_turn(&mut self) {
        self.0 = (self.0 + QUANTUM).min(QUANTUM);
    }

    /// A segment with `len` bytes of data is processed. Only reading the data from the packet is left to do.
    pub(crate) fn charge_arrival(&mut self, len: usize) {
        self.charge(RECEIVING + len / 4);
    }

    /// A segment with `len` bytes of data is sent, in the packet of the one before if `is_joined`.
    pub(crate) fn charge_sent(&mut self, len: usize, is_joined: bool) {
        self.charge(if is_joined { len } else { SENDING + len });
    }

    fn charge(&mut self, cost: usize) {
        self.0 = (self.0 - cost.cast_signed() as i64).max(-QUANTUM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_pays_for_what_the_last_one_used_too_much() {
        let mut deficit = Deficit::new();
        let mut sent = 0;
        while !deficit.is_used_up() {
            deficit.charge_sent(1448, false);
            sent += 1;
        }
        assert_eq!(sent, 59);
        deficit.begin_turn();
        deficit.charge_sent(QUANTUM as usize - 30_000, true);
        assert!(!deficit.is_used_up());
        deficit.charge_arrival(0);
        deficit.charge_arrival(60_000);
        assert!(deficit.is_used_up());
        deficit.begin_turn();
        deficit.begin_turn();
        assert_eq!(deficit.0, QUANTUM);
    }
}
