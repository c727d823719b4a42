//! A link: packets wait in a queue, are serialised one after the other, and propagate. The queue drops packets when it
//! is full, or earlier if it is managed.

mod codel;
mod fair;
mod pie;
mod red;

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

pub use self::codel::CoDel;
use self::fair::FairQueues;
pub use self::fair::FqCoDel;
pub use self::pie::Pie;
pub use self::red::Red;
use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::positive;
use crate::queue::QueueSize;
use crate::random::StreamId;

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
    /// Drops packets that have waited for too long.
    pub codel: Option<CoDel>,
    /// The same for each flow, with fair shares.
    pub fq_codel: Option<FqCoDel>,
    /// Drops packets at random so that they wait for a given time.
    pub pie: Option<Pie>,
}

impl Link {
    /// The keys that manage the queue: a link has at most one.
    fn managers(&self) -> Vec<&'static str> {
        let red = self.red.is_some().then_some("red");
        let codel = self.codel.is_some().then_some("codel");
        let fq_codel = self.fq_codel.is_some().then_some("fq_codel");
        let pie = self.pie.is_some().then_some("pie");
        [red, codel, fq_codel, pie].into_iter().flatten().collect()
    }
}

impl Default for Link {
    fn default() -> Link {
        Link {
            rate: None,
            delay: Duration::ZERO,
            queue: QueueSize::HUNDRED_PACKETS,
            red: None,
            codel: None,
            fq_codel: None,
            pie: None,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) if self.delay.is_zero() => write!(f, "{rate}, queue of {}", self.queue)?,
            Some(rate) => write!(f, "{rate}, {} one way, queue of {}", self.delay, self.queue)?,
            None => write!(f, "{} one way", self.delay)?,
        }
        if let Some(red) = &self.red {
            write!(f, " with {red}")?;
        }
        if let Some(codel) = &self.codel {
            write!(f, " with {codel}")?;
        }
        if let Some(fq_codel) = &self.fq_codel {
            write!(f, " with {fq_codel}")?;
        }
        if let Some(pie) = &self.pie {
            write!(f, " with {pie}")?;
        }
        Ok(())
    }
}

impl Parameters for Link {
    type Running = Serving;

    fn checked(self) -> Result<Link, KeyError> {
        positive(self.rate, "rate")?;
        match self.managers()[..] {
            [manager, ..] if self.rate.is_none() => {
                return Err(KeyError::new(manager, "a link without a `rate` has no queue"));
            }
            [first, second, ..] => return Err(KeyError::new(second, format!("give either `{first}` or `{second}`"))),
            _ => {}
        }
        self.red.as_ref().map_or(Ok(()), Red::check)?;
        self.codel.as_ref().map_or(Ok(()), |codel| codel.check("codel"))?;
        self.fq_codel.as_ref().map_or(Ok(()), FqCoDel::check)?;
        self.pie.as_ref().map_or(Ok(()), Pie::check)?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Serving {
        if let Some(red) = &self.red {
            return Serving::Red(red::Managed::new(Server::new(self), red, id.stream(0)));
        }
        if let Some(pie) = &self.pie {
            return Serving::Pie(pie::Managed::new(Server::new(self), pie, id.stream(0)));
        }
        let fq_codel = self.fq_codel.clone().or_else(|| self.codel.as_ref().map(FqCoDel::single));
        match (self.rate, fq_codel) {
            (Some(rate), Some(parameters)) => {
                Serving::Fair(Box::new(FairQueues::new(rate, self.delay, self.queue.at(rate), &parameters)))
            }
            _ => Serving::DropTail(Server::new(self)),
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

    /// The bytes that wait at `at`.
    fn waiting_bytes(&mut self, at: Instant) -> Bytes {
        self.backlog(at);
        self.waiting_bytes
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
    /// Packets at random, by the average length of the queue.
    Red(red::Managed),
    /// Packets at random, by the time that packets wait.
    Pie(pie::Managed),
    /// Packets that have waited for too long, when their turn comes.
    Fair(Box<FairQueues>),
}

impl Stage for Serving {
    #[inline]
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        let passed = match self {
            Serving::DropTail(server) => server.pass(at, item.size),
            Serving::Red(managed) => managed.pass(at, item.size),
            Serving::Pie(managed) => managed.pass(at, item.size),
            Serving::Fair(queues) => {
                queues.arrive(at, item, exits);
                return StageOutcome::Listed;
            }
        };
        match passed {
            Ok(exit) => StageOutcome::Departure(exit),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }

    fn reads_flows(&self) -> bool {
        matches!(self, Serving::Fair(_))
    }

    fn has_timers(&self) -> bool {
        matches!(self, Serving::Fair(_))
    }

    fn deadline(&self) -> Instant {
        match self {
            Serving::Fair(queues) => queues.deadline(),
            _ => Instant::NEVER,
        }
    }

    fn on_timer(&mut self, now: Instant, exits: &mut Departures) {
        if let Serving::Fair(queues) = self {
            queues.serve(now, exits);
        }
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
        Server::new(&Link { rate, delay: Duration::from_micros(100), queue: queue.parse().unwrap(), ..Link::default() })
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
