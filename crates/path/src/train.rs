//! What a path does to a train of packets, in the terms of RFC 4737.

use reknit_units::{Bytes, Duration, Instant};

use crate::{Direction, Packet, Phases, Pipe, Profile, Reordering};

/// Packets of equal size at equal intervals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Train {
    /// The number of packets.
    pub packets: u32,
    /// Size of each, bytes.
    pub size: Bytes,
    /// Time between packets.
    pub gap: Duration,
}

/// A packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its position in the train, from 0.
    pub number: u32,
    /// When it left the sender.
    pub sent: Instant,
    /// When it arrived.
    pub arrived: Instant,
    /// False for the second and every further copy of a packet.
    pub first: bool,
}

impl Arrival {
    /// Its one-way delay.
    pub fn delay(&self) -> Duration {
        self.arrived.since(self.sent)
    }
}

/// What happened to a train of packets.
#[derive(Clone, PartialEq, Debug)]
pub struct TrainResult {
    /// Every copy that arrived, in the order of arrival.
    pub copies: Vec<Arrival>,
    /// The number of packets sent.
    pub sent: u32,
}

#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u32,
    size: Bytes,
}

impl Packet for Numbered {
    fn size(&self) -> Bytes {
        self.size
    }

    fn copy(&self) -> Numbered {
        *self
    }

    fn flow(&self) -> u32 {
        0 // a train has one flow
    }
}

impl Train {
    /// When packet `number` is sent.
    pub fn departure(self, number: u32) -> Instant {
        Instant::ZERO + self.gap * u64::from(number)
    }

    /// Sends the train through one direction of `profile`.
    pub fn through(self, profile: &Profile, direction: Direction, seed: u64) -> TrainResult {
        let mut pipe = Pipe::new(profile, direction, seed, Phases::Fixed);
        let departure = |number| self.departure(number);
        let mut copies: Vec<Arrival> = Vec::with_capacity(self.packets as usize);
        let mut known = vec![false; self.packets as usize];
        let mut collect = |pipe: &mut Pipe<Numbered>, until: Instant| {
            while let Some((arrived, Numbered { number, .. })) = pipe.pop(until) {
                let first = !std::mem::replace(&mut known[number as usize], true);
                copies.push(Arrival { number, sent: departure(number), arrived, first });
            }
            while pipe.pop_lost().is_some() {}
        };
        for number in 0..self.packets {
            collect(&mut pipe, departure(number));
            pipe.push(departure(number), Numbered { number, size: self.size });
        }
        while pipe.next_at().is_set() {
            let next = pipe.next_at();
            collect(&mut pipe, next);
        }
        TrainResult { copies, sent: self.packets }
    }
}

impl TrainResult {
    /// Packets of which no copy arrived.
    pub fn lost(&self) -> u32 {
        self.sent - self.arrivals().count() as u32
    }

    /// Their numbers.
    pub fn missing(&self) -> Vec<u32> {
        let mut arrived: Vec<u32> = self.arrivals().map(|packet| packet.number).collect();
        arrived.sort_unstable();
        let mut arrived = arrived.into_iter().peekable();
        (0..self.sent).filter(|number| arrived.next_if_eq(number).is_none()).collect()
    }

    /// Copies beyond the first.
    pub fn duplicates(&self) -> u32 {
        (self.copies.len() - self.arrivals().count()) as u32
    }

    /// First copies, in the order of arrival.
    pub fn arrivals(&self) -> impl Iterator<Item = &Arrival> {
        self.copies.iter().filter(|p| p.first)
    }

    /// The reordering of the packets, with the extent of each reordered packet (RFC 4737).
    pub fn reordering(&self) -> (Reordering, Vec<u32>) {
        let mut reordering = Reordering::default();
        let late = self.arrivals().filter_map(|packet| reordering.on_arrival(packet.number.into(), packet.arrived));
        let extents = late.map(|late| late.extent).collect();
        (reordering, extents)
    }

    /// The reordering extent of each reordered packet: from the earliest arrival with a larger number to its own
    /// arrival (RFC 4737 §4.2). A packet is reordered if a packet that was sent later arrived before it (§3.3).
    pub fn extents(&self) -> Vec<u32> {
        self.reordering().1
    }

    /// The share of arrived packets that are reordered.
    pub fn reordered_ratio(&self) -> f64 {
        self.reordering().0.ratio()
    }

    /// A quantile of the delay of the arrived packets.
    pub fn delay_quantile(&self, quantile: f64) -> Duration {
        let mut delays: Vec<Duration> = self.arrivals().map(Arrival::delay).collect();
        if delays.is_empty() {
            return Duration::ZERO;
        }
        delays.sort_unstable();
        #[expect(clippy::cast_sign_loss, reason = "a quantile is not negative")]
        let rank = (quantile * (delays.len() - 1) as f64 + 0.5) as usize;
        delays[rank.min(delays.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A train whose packets arrived in this order, a millisecond apart.
    fn arrivals(order: &[u32]) -> TrainResult {
        let copies = order.iter().zip(1..).map(|(number, ms)| Arrival {
            number: *number,
            sent: Instant::ZERO,
            arrived: Instant::ZERO + Duration::from_millis(ms),
            first: true,
        });
        TrainResult { copies: copies.collect(), sent: order.len() as u32 }
    }

    #[test]
    fn examples_of_the_rfc() {
        // RFC 4737 §4.2.3 and §10.1: 7 and 8 overtaken by 9 and 10.
        let result = arrivals(&[1, 2, 3, 4, 5, 6, 9, 10, 7, 8]);
        assert_eq!(result.extents(), [2, 3]);
        assert!((result.reordered_ratio() - 0.2).abs() < 1e-12);
        // §5.4: 3-reordering of 1 after 2, 3, 4, and of nothing else.
        let result = arrivals(&[2, 3, 4, 1, 5]);
        let (reordering, _) = result.reordering();
        assert_eq!([1, 3, 4].map(|n| reordering.n_reordered(n)), [1, 1, 0]);
    }

    #[test]
    fn in_order_there_is_nothing_to_report() {
        let result = arrivals(&[1, 2, 0]);
        assert_eq!((result.missing(), result.lost()), (vec![], 0));
        let result = TrainResult { sent: 5, ..arrivals(&[3, 1]) };
        assert_eq!((result.missing(), result.lost()), (vec![0, 2, 4], 3));
        let result = arrivals(&[1, 2, 3]);
        assert_eq!((result.extents(), result.lost()), (vec![], 0));
        assert_eq!(result.delay_quantile(0.5), Duration::from_millis(2));
    }
}
