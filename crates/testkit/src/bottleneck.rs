//! A sender and one link with a queue, whose receiver acknowledges every segment at once.

use std::collections::VecDeque;

use reknit_tcp::Info;
use reknit_units::{Bytes, Instant, Rate};

use crate::{SMSS, TestSender};

/// The state of the sender after an event.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Microseconds since time zero.
    pub at_us: u64,
    /// The sender's variables.
    pub info: Info,
}

impl Look {
    /// cwnd in segments.
    pub fn cwnd(&self) -> f64 {
        self.info.cwnd.0 as f64 / SMSS as f64
    }

    /// The pacing rate relative to the rate of the link.
    pub fn pace(&self, link: Rate) -> f64 {
        self.info.pacing_rate.map_or(0.0, |rate| rate.bits_per_second() as f64 / link.bits_per_second() as f64)
    }
}

/// A link, and the segments on it.
pub struct Bottleneck {
    /// The sender.
    pub script: TestSender,
    /// The link's rate; payload only.
    pub rate: Rate,
    /// The capacity of the queue in segments.
    pub queue: usize,
    /// Transmissions, counted from 1, that are lost regardless of the queue.
    pub losses: Vec<u64>,
    /// Segments sent.
    pub sent: u64,
    /// Segments lost.
    pub lost: u64,
    rtt_us: u64,
    now_us: u64,
    /// When the link has sent everything in its queue.
    busy_until_us: u64,
    /// When each segment leaves the link.
    departures: VecDeque<u64>,
    /// When the ACK of each segment arrives.
    acks: VecDeque<(u64, u32)>,
}

impl Bottleneck {
    /// A link after `script`, which begins at `begin_us`. `rtt_us` is the round-trip time without the queue.
    pub fn new(script: TestSender, begin_us: u64, rate: Rate, rtt_us: u64, queue: usize) -> Bottleneck {
        Bottleneck {
            script,
            rate,
            queue,
            losses: Vec::new(),
            sent: 0,
            lost: 0,
            rtt_us,
            now_us: begin_us,
            busy_until_us: 0,
            departures: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    /// The bandwidth-delay product in segments.
    pub fn bdp(&self) -> f64 {
        self.rate.bits_per_second() as f64 / 8e6 * self.rtt_us as f64 / SMSS as f64
    }

    /// Processes all events until `until_us`, and records the sender's state after each.
    pub fn run(&mut self, until_us: u64) -> Vec<Look> {
        let mut looks = Vec::new();
        loop {
            self.transmit();
            let deadline = self.script.connection.deadline();
            let timer = if deadline.is_set() { self.to_us(deadline) } else { u64::MAX };
            let ack = self.acks.front().map_or(u64::MAX, |(at, _)| *at);
            let next = timer.min(ack);
            if next > until_us {
                break;
            }
            self.now_us = self.now_us.max(next);
            self.script.at_us(self.now_us);
            if ack <= timer
                && let Some((_, segment)) = self.acks.pop_front()
            {
                let ack = self.script.arrive(segment);
                self.script.deliver(&ack);
            }
            self.transmit();
            looks.push(Look { at_us: self.now_us, info: self.script.info() });
        }
        self.now_us = until_us;
        self.script.at_us(until_us);
        looks
    }

    /// The application writes `n` segments.
    pub fn write(&mut self, n: u64) {
        self.script.connection.write(Bytes(n * SMSS));
    }

    fn to_us(&self, at: Instant) -> u64 {
        at.since(self.script.zero()).as_nanos().div_ceil(1000)
    }

    fn transmit(&mut self) {
        for segment in self.script.sent() {
            self.sent += 1;
            while self.departures.front().is_some_and(|at| *at <= self.now_us) {
                self.departures.pop_front();
            }
            if self.losses.contains(&self.sent) || self.departures.len() >= self.queue {
                self.lost += 1;
                continue;
            }
            let takes = self.rate.time_for(Bytes(SMSS)).as_nanos() / 1000;
            self.busy_until_us = self.busy_until_us.max(self.now_us) + takes;
            self.departures.push_back(self.busy_until_us);
            self.acks.push_back((self.busy_until_us + self.rtt_us, segment));
        }
    }
}
