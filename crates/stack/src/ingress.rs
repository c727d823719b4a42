//! Segments that have arrived for a socket that has used its share of time (`deficit`): they wait for its next turn. Queued and
//! taken by [`crate::sockets`].
//! A part of each socket.

use std::collections::VecDeque;

use reknit_tcp::Segment;

/// What a segment takes beside its data.
const OVERHEAD: usize = size_of::<Arrival>() + 32;
/// The most that wait when memory is scarce.
const MOST_WHEN_SHORT: usize = 8;

/// A segment that waits.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) segment: Segment,
    pub(crate) hop_limit: u8,
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug, Default)]
struct Queue {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

/// The segments of a socket that wait, in the order in which they have arrived.
#[derive(Debug, Default)]
pub(crate) struct Ingress(Option<Box<Queue>>);

impl Ingress {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes that they take.
    pub(crate) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.bytes)
    }

    /// True if a segment with `len` bytes of data may wait: there is room for as much data as the `window` allows the peer to
    /// send, in full-sized segments. If memory is scarce, only some without data may.
    pub(crate) fn has_room(&self, len: usize, window: usize, is_short: bool) -> bool {
        let (count, bytes) = self.0.as_ref().map_or((0, 0), |queue| (queue.arrivals.len(), queue.bytes));
        if is_short { len == 0 && count < MOST_WHEN_SHORT } else { bytes + len + OVERHEAD <= 2 * window }
    }

    pub(crate) fn push(&mut self, arrival: Arrival) {
        let queue = self.0.get_or_insert_default();
        queue.bytes += arrival.payload.len() + OVERHEAD;
        queue.arrivals.push_back(arrival);
    }

    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let queue = self.0.as_mut()?;
        let arrival = queue.arrivals.pop_front()?;
        queue.bytes -= arrival.payload.len() + OVERHEAD;
        if queue.arrivals.is_empty() {
            self.0 = None;
        }
        Some(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(len: usize) -> Arrival {
        Arrival { segment: Segment { len: len as u16, ..Segment::default() }, hop_limit: 64, payload: vec![0; len] }
    }

    #[test]
    fn it_has_room_for_a_window_and_frees_its_memory() {
        let mut ingress = Ingress::default();
        let mut count = 0;
        while ingress.has_room(1448, 100_000, false) {
            ingress.push(arrival(1448));
            count += 1;
        }
        assert!(count * 1448 >= 100_000 && ingress.memory() <= 200_000, "{count}, {} bytes", ingress.memory());
        assert!(!ingress.has_room(0, 100_000, true));
        while ingress.pop().is_some() {
            count -= 1;
        }
        assert_eq!((count, ingress.memory(), ingress.is_empty()), (0, 0, true));
        assert!(ingress.has_room(0, 0, true) && !ingress.has_room(1, 100, true));
    }
}
