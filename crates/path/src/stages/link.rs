//! A link: packets wait in a drop-tail queue, are serialised one after the other, and propagate.

use std::collections::VecDeque;
use std::fmt;

use reknit_units::{Bytes, Capacity, Duration, Instant, Rate, Segments};
use serde::{Deserialize, Serialize};

use super::{Drop, Exits, Fate, Item, Stage};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Serialisation rate; without one, packets of any size leave at once.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// What may wait while another packet is being serialised.
    pub queue: Capacity,
}

impl Default for Link {
    fn default() -> Link {
        Link { rate: None, delay: Duration::ZERO, queue: Capacity::Count(Segments(100)) }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{rate}, {} one way, queue of {}", self.delay, self.queue),
            None => write!(f, "{} one way", self.delay),
        }
    }
}

impl Link {
    pub(super) fn build(&self) -> Box<dyn Stage> {
        Box::new(Server::new(self))
    }
}

/// A link at work.
///
/// Nothing happens between an arrival and a departure that arithmetic could not foresee, so there are no events: each
/// arrival finds out how many of those before it have not begun to be serialised.
#[derive(Debug)]
pub struct Server {
    rate: Option<Rate>,
    delay: Duration,
    queue: Capacity,
    /// When the last accepted packet leaves the serialiser.
    free_at: Instant,
    /// Packets that had to wait: when their serialisation begins, and their sizes.
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
    /// The serialisation time of the last size, which is mostly that of the next.
    last: (Bytes, Duration),
}

impl Server {
    /// An idle link.
    pub fn new(link: &Link) -> Server {
        Server {
            rate: link.rate,
            delay: link.delay,
            queue: link.queue,
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            last: (Bytes::ZERO, Duration::ZERO),
        }
    }

    /// A packet of `size` octets arrives at `at`: when it is at the other end.
    ///
    /// # Errors
    /// [`Drop::QueueFull`] if it does not fit the queue.
    pub fn pass(&mut self, at: Instant, size: Bytes) -> Result<Instant, Drop> {
        let Some(rate) = self.rate else { return Ok(at + self.delay) };
        if self.last.0 != size {
            self.last = (size, rate.time_for(size));
        }
        let serialisation = self.last.1;
        if self.free_at <= at {
            self.waiting.clear();
            self.waiting_bytes = Bytes::ZERO;
            self.free_at = at + serialisation;
        } else {
            self.enqueue(at, size)?;
            self.free_at = self.free_at + serialisation;
        }
        Ok(self.free_at + self.delay)
    }

    fn enqueue(&mut self, at: Instant, size: Bytes) -> Result<(), Drop> {
        while let Some(&(starts, waited)) = self.waiting.front()
            && starts <= at
        {
            self.waiting_bytes -= waited;
            self.waiting.pop_front();
        }
        let fits = match self.queue {
            Capacity::Count(count) => self.waiting.len() < count.0 as usize,
            Capacity::Bytes(bytes) => self.waiting_bytes + size <= bytes,
        };
        if !fits {
            return Err(Drop::QueueFull);
        }
        self.waiting.push_back((self.free_at, size));
        self.waiting_bytes += size;
        Ok(())
    }
}

impl Stage for Server {
    fn on_packet(&mut self, at: Instant, item: Item, _exits: &mut Exits) -> Fate {
        match self.pass(at, item.size) {
            Ok(exit) => Fate::Exit(exit),
            Err(drop) => Fate::Drop(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn link(queue: Capacity) -> Server {
        let rate = Some(Rate::from_bits_per_second(8_000_000)); // an octet per microsecond
        Server::new(&Link { rate, delay: Duration::from_micros(100), queue })
    }

    #[test]
    fn packets_are_serialised_one_after_the_other() {
        let mut link = link(Capacity::Count(Segments(10)));
        assert_eq!(link.pass(at(0), Bytes(1000)), Ok(at(1100)));
        assert_eq!(link.pass(at(0), Bytes(500)), Ok(at(1600)));
        assert_eq!(link.pass(at(5000), Bytes(500)), Ok(at(5600)));
    }

    #[test]
    fn the_queue_counts_packets_that_wait() {
        let mut link = link(Capacity::Count(Segments(2)));
        // One is being serialised, two wait, the fourth does not fit.
        let fates: Vec<_> = (0..4).map(|_| link.pass(at(0), Bytes(1000))).collect();
        assert_eq!(fates, [Ok(at(1100)), Ok(at(2100)), Ok(at(3100)), Err(Drop::QueueFull)]);
        // After a millisecond the first that waited is being serialised, so there is room for one.
        assert_eq!(link.pass(at(1000), Bytes(1000)), Ok(at(4100)));
        assert_eq!(link.pass(at(1000), Bytes(1000)), Err(Drop::QueueFull));
    }

    #[test]
    fn the_queue_counts_octets() {
        let mut link = link(Capacity::Bytes(Bytes(1500)));
        link.pass(at(0), Bytes(1000)).unwrap();
        link.pass(at(0), Bytes(1000)).unwrap();
        assert_eq!(link.pass(at(0), Bytes(600)), Err(Drop::QueueFull));
        assert_eq!(link.pass(at(0), Bytes(500)), Ok(at(2600)));
    }

    #[test]
    fn without_a_rate_there_is_only_delay() {
        let mut link = Server::new(&Link { delay: Duration::from_micros(7), ..Link::default() });
        assert_eq!(link.pass(at(1), Bytes(1_000_000)), Ok(at(8)));
    }
}
