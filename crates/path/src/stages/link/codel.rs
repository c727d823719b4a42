//! CoDel (RFC 8289): once all packets have waited for more than a target during an interval, packets are dropped when their
//! turn comes, more often the longer that lasts. The names are those of RFC 8289 section 5.

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{Departures, DropReason, StagePacket};

/// With less than a packet of this size in the queue, nothing is dropped.
const MAX_PACKET: Bytes = Bytes(1500);

/// CoDel's parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoDel {
    /// How long packets may wait.
    pub target: Duration,
    /// For how long all of them must wait longer before one is dropped: a typical round trip.
    pub interval: Duration,
}

impl Default for CoDel {
    fn default() -> CoDel {
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

impl fmt::Display for CoDel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoDel, target {}, interval {}", self.target, self.interval)
    }
}

impl CoDel {
    pub(super) fn check(&self, key: &str) -> Result<(), KeyError> {
        if self.target.is_zero() || self.target >= self.interval {
            let key = format!("{key}.target");
            return Err(KeyError::new(key, "must be more than 0 and less than `interval`"));
        }
        Ok(())
    }

    /// The time from one drop to the next.
    fn control_law(&self, from: Instant, count: u32) -> Instant {
        from + Duration::from_secs_f64(self.interval.as_secs_f64() / libm::sqrt(f64::from(count.max(1))))
    }
}

/// Packets in the order of arrival, with their times.
#[derive(Debug, Default)]
pub(super) struct Queue {
    packets: VecDeque<(Instant, StagePacket)>,
    bytes: Bytes,
    control: Control,
}

/// The state of CoDel.
#[derive(Debug, Default)]
struct Control {
    /// When it may drop, unless the time that packets wait gets below the target before.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// A packet, and whether CoDel may drop it.
struct Dequeued {
    item: Option<StagePacket>,
    ok_to_drop: bool,
}

impl Queue {
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(super) fn push(&mut self, at: Instant, item: StagePacket) {
        self.packets.push_back((at, item));
        self.bytes += item.size;
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, StagePacket)> {
        let first = self.packets.pop_front()?;
        self.bytes -= first.1.size;
        Some(first)
    }

    /// The packet whose turn has come. Those before it may be dropped.
    pub(super) fn dequeue(&mut self, now: Instant, codel: &CoDel, exits: &mut Departures) -> Option<StagePacket> {
        let mut next = self.dodequeue(now, codel);
        if self.control.dropping {
            self.control.dropping &= next.ok_to_drop;
            while self.control.dropping && now >= self.control.drop_next {
                next = self.drop(now, &next, codel, exits);
                self.control.count += 1;
                self.control.dropping &= next.ok_to_drop;
                if self.control.dropping {
                    self.control.drop_next = codel.control_law(self.control.drop_next, self.control.count);
                }
            }
        } else if next.ok_to_drop {
            next = self.drop(now, &next, codel, exits);
            self.begin_dropping(now, codel);
        }
        next.item
    }

    fn dodequeue(&mut self, now: Instant, codel: &CoDel) -> Dequeued {
        let Some((arrived, item)) = self.pop() else {
            self.control.first_above_time = None;
            return Dequeued { item: None, ok_to_drop: false };
        };
        let mut ok_to_drop = false;
        if now.since(arrived) < codel.target || self.bytes <= MAX_PACKET {
            self.control.first_above_time = None;
        } else {
            match self.control.first_above_time {
                None => self.control.first_above_time = Some(now + codel.interval),
                Some(first) => ok_to_drop = now >= first,
            }
        }
        Dequeued { item: Some(item), ok_to_drop }
    }

    /// Drops `next` and returns the following packet.
    fn drop(&mut self, now: Instant, next: &Dequeued, codel: &CoDel, exits: &mut Departures) -> Dequeued {
        if let Some(item) = next.item {
            exits.push_drop(now, item, DropReason::Early);
        }
        self.dodequeue(now, codel)
    }

    /// If it has stopped dropping only a short time ago, it goes on at the rate that it had reached.
    fn begin_dropping(&mut self, now: Instant, codel: &CoDel) {
        let control = &mut self.control;
        let delta = control.count - control.lastcount;
        let recently = control.drop_next + codel.interval * 16 > now;
        control.count = if delta > 1 && recently { delta } else { 1 };
        control.lastcount = control.count;
        control.drop_next = codel.control_law(now, control.count);
        control.dropping = true;
    }
}
