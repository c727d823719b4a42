//! A link: packets wait in a queue, are serialised one after the other, and propagate. The queue drops packets when it
//! is full, or earlier with RED (Floyd and Jacobson, 1993).

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate, Share};
use serde::{Deserialize, Serialize};

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::positive;
use crate::queue::QueueSize;
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Serialisation rate; without it, packets of any size leave at once.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// Capacity of the queue, excluding the packet that is being serialised.
    pub queue: QueueSize,
    /// Drops packets early and at random as the queue grows.
    pub red: Option<Red>,
}

/// Random early detection. The thresholds apply to the average queue length, in packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Below this nothing is dropped.
    pub min: f64,
    /// From this length on every packet is dropped.
    pub max: f64,
    /// Probability of a drop just below `max`.
    #[serde(default = "a_tenth")]
    pub probability: Share,
    /// Weight of the current queue length in the average, per arrival.
    #[serde(default = "usual_weight")]
    pub weight: f64,
}

fn a_tenth() -> Share {
    Share::new(0.1).unwrap_or(Share::ONE)
}

fn usual_weight() -> f64 {
    0.002
}

impl Default for Link {
    fn default() -> Link {
        Link { rate: None, delay: Duration::ZERO, queue: QueueSize::HUNDRED_PACKETS, red: None }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) if self.delay.is_zero() => write!(f, "{rate}, queue of {}", self.queue)?,
            Some(rate) => write!(f, "{rate}, {} one way, queue of {}", self.delay, self.queue)?,
            None => write!(f, "{} one way", self.delay)?,
        }
        match &self.red {
            Some(red) => write!(f, " with RED between {} and {} packets", red.min, red.max),
            None => Ok(()),
        }
    }
}

impl Parameters for Link {
    type Running = Serving;

    fn checked(self) -> Result<Link, KeyError> {
        positive(self.rate, "rate")?;
        match &self.red {
            Some(_) if self.rate.is_none() => Err(KeyError::new("red", "a link without a `rate` has no queue")),
            Some(red) if !(red.min >= 0.0 && red.min < red.max) => {
                Err(KeyError::new("red.max", "must be more than `min`, which must not be negative"))
            }
            Some(red) if !(red.weight > 0.0 && red.weight <= 1.0) => {
                Err(KeyError::new("red.weight", "must be between 0 and 1"))
            }
            _ => Ok(self),
        }
    }

    fn build(&self, id: StreamId) -> Serving {
        let server = Server::new(self);
        match &self.red {
            None => Serving::DropTail(server),
            Some(red) => {
                let red = red.clone();
                Serving::Red(Managed { server, red, chance: id.stream(0), average: 0.0, since_drop: 0 })
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.rate.is_none() && self.delay.is_zero()
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Link(self.clone()))
    }

    fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// A link in operation.
///
/// What happens between an arrival and a departure can be computed, so there are no events: each arrival determines how
/// many of the earlier packets are still waiting.
#[derive(Debug)]
pub struct Server {
    rate: Option<Rate>,
    delay: Duration,
    queue: Capacity,
    /// When the last accepted packet leaves the serialiser.
    free_at: Instant,
    /// The waiting packets: when their serialisation begins, and their sizes.
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
    /// The last size and its serialisation time; the next packet mostly has the same size.
    last: (Bytes, Duration),
}

impl Server {
    /// An idle link.
    pub fn new(link: &Link) -> Server {
        Server {
            rate: link.rate,
            delay: link.delay,
            queue: link.queue.at(link.rate.unwrap_or(Rate::from_bits_per_second(1))),
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            last: (Bytes::ZERO, Duration::ZERO),
        }
    }

    /// A packet of `size` bytes arrives at `at`. Returns when it reaches the other end.
    ///
    /// # Errors
    /// [`DropReason::QueueFull`] if it does not fit the queue.
    #[inline]
    pub fn pass(&mut self, at: Instant, size: Bytes) -> Result<Instant, DropReason> {
        let Some(rate) = self.rate else { return Ok(at + self.delay) };
        if self.last.0 != size {
            self.last = (size, rate.time_for(size));
        }
        let serialisation = self.last.1;
        self.pass_served(at, size, |start| start + serialisation)
    }

    /// The same with a service time given by `end`, which maps its beginning to its end.
    ///
    /// # Errors
    /// [`DropReason::QueueFull`] if it does not fit the queue.
    #[inline]
    pub(super) fn pass_served(
        &mut self,
        at: Instant,
        size: Bytes,
        end: impl FnOnce(Instant) -> Instant,
    ) -> Result<Instant, DropReason> {
        if self.free_at <= at {
            self.waiting.clear();
            self.waiting_bytes = Bytes::ZERO;
            self.free_at = end(at);
        } else {
            self.enqueue(at, size)?;
            self.free_at = end(self.free_at);
        }
        Ok(self.free_at + self.delay)
    }

    /// When the server becomes idle if nothing more arrives.
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The number of packets that wait at `at`.
    fn backlog(&mut self, at: Instant) -> usize {
        while let Some(&(starts, waited)) = self.waiting.front()
            && starts <= at
        {
            self.waiting_bytes -= waited;
            self.waiting.pop_front();
        }
        self.waiting.len()
    }

    fn enqueue(&mut self, at: Instant, size: Bytes) -> Result<(), DropReason> {
        let backlog = self.backlog(at);
        let fits = match self.queue {
            Capacity::Count(count) => backlog < count.0 as usize,
            Capacity::Bytes(bytes) => self.waiting_bytes + size <= bytes,
        };
        if !fits {
            return Err(DropReason::QueueFull);
        }
        self.waiting.push_back((self.free_at, size));
        self.waiting_bytes += size;
        Ok(())
    }
}

/// A link in operation, by what its queue drops.
#[derive(Debug)]
pub(crate) enum Serving {
    /// What does not fit the queue.
    DropTail(Server),
    /// Packets at random, earlier.
    Red(Managed),
}

impl Stage for Serving {
    #[inline]
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let passed = match self {
            Serving::DropTail(server) => server.pass(at, item.size),
            Serving::Red(managed) => managed.pass(at, item.size),
        };
        match passed {
            Ok(exit) => StageOutcome::Departure(exit),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }
}

/// A link with a RED queue.
#[derive(Debug)]
pub(crate) struct Managed {
    server: Server,
    red: Red,
    chance: Stream,
    /// The average queue length in packets.
    average: f64,
    /// Packets accepted since the last drop while the average was between the thresholds.
    since_drop: u32,
}

impl Managed {
    fn pass(&mut self, at: Instant, size: Bytes) -> Result<Instant, DropReason> {
        self.update_average(at, size);
        if self.drops() { Err(DropReason::Early) } else { self.server.pass(at, size) }
    }

    /// While the link is idle, the average decays as if small packets had passed.
    fn update_average(&mut self, at: Instant, size: Bytes) {
        let free_at = self.server.free_at();
        if free_at < at
            && let Some(rate) = self.server.rate
        {
            let packet = rate.time_for(size).max(Duration::from_nanos(1));
            let missed = at.since(free_at).as_secs_f64() / packet.as_secs_f64();
            self.average *= libm::pow(1.0 - self.red.weight, missed);
        }
        self.average += self.red.weight * (self.server.backlog(at) as f64 - self.average);
    }

    /// Drops are spread evenly: the probability grows with the number of packets since the last drop.
    fn drops(&mut self) -> bool {
        if self.average < self.red.min {
            self.since_drop = 0;
            return false;
        }
        let share = (self.average - self.red.min) / (self.red.max - self.red.min);
        let base = self.red.probability.get() * share;
        let spread = 1.0 - f64::from(self.since_drop) * base;
        let hit = self.average >= self.red.max || spread <= 0.0 || self.chance.chance(base / spread);
        self.since_drop = if hit { 0 } else { self.since_drop + 1 };
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn link(queue: &str) -> Server {
        let rate = Some(Rate::from_bits_per_second(8_000_000)); // one byte per microsecond
        Server::new(&Link { rate, delay: Duration::from_micros(100), queue: queue.parse().unwrap(), red: None })
    }

    #[test]
    fn packets_are_serialised_one_after_the_other() {
        let mut link = link("10 packets");
        assert_eq!(link.pass(at(0), Bytes(1000)), Ok(at(1100)));
        assert_eq!(link.pass(at(0), Bytes(500)), Ok(at(1600)));
        assert_eq!(link.pass(at(5000), Bytes(500)), Ok(at(5600)));
    }

    #[test]
    fn the_queue_counts_packets_that_wait() {
        let mut link = link("2 packets");
        // One packet is being serialised, two wait, and the fourth does not fit.
        let outcomes: Vec<_> = (0..4).map(|_| link.pass(at(0), Bytes(1000))).collect();
        assert_eq!(outcomes, [Ok(at(1100)), Ok(at(2100)), Ok(at(3100)), Err(DropReason::QueueFull)]);
        // After a millisecond the next packet is being serialised, so there is room for one.
        assert_eq!(link.pass(at(1000), Bytes(1000)), Ok(at(4100)));
        assert_eq!(link.pass(at(1000), Bytes(1000)), Err(DropReason::QueueFull));
    }

    #[test]
    fn the_queue_counts_bytes_or_the_time_in_which_they_leave() {
        for queue in ["1500 B", "1500 us"] {
            let mut link = link(queue);
            link.pass(at(0), Bytes(1000)).unwrap();
            link.pass(at(0), Bytes(1000)).unwrap();
            assert_eq!(link.pass(at(0), Bytes(600)), Err(DropReason::QueueFull));
            assert_eq!(link.pass(at(0), Bytes(500)), Ok(at(2600)));
        }
    }

    #[test]
    fn without_a_rate_there_is_only_delay() {
        let mut link = Server::new(&Link { delay: Duration::from_micros(7), ..Link::default() });
        assert_eq!(link.pass(at(1), Bytes(1_000_000)), Ok(at(8)));
    }
}
