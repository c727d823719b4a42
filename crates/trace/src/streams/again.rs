//! Another reading of a capture, in which only one connection is analysed, as in the first reading.

use reknit_units::Instant;

use super::{Key, MAX_RANGES, Streams, key};
use crate::packet::{Flags, Packet};
use crate::stream::{Log, Rests};

/// What the first reading found about a connection and depends on the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Course {
    /// Its first packet, as `Streams::passed` counts them.
    pub(crate) first: u64,
    pub(crate) rests: Rests,
}

/// The connection that is analysed.
#[derive(Debug)]
pub(super) struct One {
    number: u32,
    course: Course,
    /// How many of its rests have been.
    rested: usize,
    /// Another connection between the same ends has followed.
    is_over: bool,
}

impl Streams {
    /// Only the connection with this number, of which the first reading found this course.
    pub(crate) fn with(number: u32, course: Course) -> Streams {
        let one = One { number, course, rested: 0, is_over: false };
        Streams { one: Some(one), lowest: number, ..Streams::default() }
    }

    /// A packet of any connection.
    #[inline(never)]
    pub(super) fn on_packet_again(&mut self, packet: &Packet, frame: u64, now: Instant, log: &mut Log) {
        if let Some(number) = self.one_of(packet, now) {
            // The connections together did not reach the limit.
            self.get_mut(number).on_packet(packet, frame, now, MAX_RANGES, log);
        }
        let passed = self.passed;
        let Some(one) = self.one.as_mut().filter(|one| one.course.rests.nth(one.rested) == Some(passed)) else {
            return;
        };
        one.rested += 1;
        let number = one.number;
        self.get_mut(number).rest(passed, now, log);
    }

    /// The connection that is analysed, if the packet belongs to it.
    pub(super) fn one_of(&mut self, packet: &Packet, now: Instant) -> Option<u32> {
        let one = self.one.as_ref()?;
        let (number, key) = (one.number, key(packet));
        if one.course.first == self.passed {
            self.push(number, packet, now);
            return Some(number);
        }
        self.find_one(&key)?;
        if packet.segment.flags.has(Flags::SYN) && self.get_mut(number).is_replaced_by(packet) {
            self.one.as_mut()?.is_over = true;
            return None;
        }
        Some(number)
    }

    /// The connection that is analysed, if it is the newest between these ends.
    pub(super) fn find_one(&self, key: &Key) -> Option<u32> {
        let one = self.one.as_ref().filter(|one| !one.is_over)?;
        self.all.first().filter(|slot| slot.key == *key).map(|_| one.number)
    }
}
