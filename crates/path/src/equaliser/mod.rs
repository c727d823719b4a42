//! Gives parallel branches of a path the same delay: packets of any protocol that arrive by a faster branch are held for the
//! difference.
//!
//! An [`Equaliser`] has no clock: give it each packet with a handle and the branch by which it arrived, and it says which packets
//! go on now. The difference is given, or learned from TCP flows whose segments arrive by several branches; as long as nothing
//! was learned, nothing is held.

mod differences;

use std::collections::VecDeque;

use reknit_units::{Duration, Instant};

use self::differences::Differences;
use crate::resequencer::TcpHeader;

/// What is held, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Equal {
    /// How much later packets of the other branches arrive than those of the first. None: it is learned.
    pub difference: Option<Duration>,
    /// The longest time that a packet is held; larger differences are left alone.
    pub longest: Duration,
    /// The most packets that are held.
    pub most: usize,
}

/// The packets of one direction. `K` tells flows apart; `H` is the caller's handle of a packet.
#[derive(Debug)]
pub struct Equaliser<K, H> {
    settings: Equal,
    branches: Vec<Branch<H>>,
    differences: Differences<K>,
    counts: Counts,
}

/// What it has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that it has seen.
    pub packets: u64,
    /// Packets that it held.
    pub held: u64,
    /// Pairs of segments from which it has learned.
    pub learned: u64,
}

#[derive(Debug)]
struct Branch<H> {
    delay: Duration,
    /// Packets that are held, and when they go on.
    held: VecDeque<(Instant, H)>,
}

impl<K: Copy + Ord, H> Equaliser<K, H> {
    /// Without packets.
    pub fn new(settings: Equal) -> Equaliser<K, H> {
        let first = Branch { delay: settings.difference.unwrap_or_default(), held: VecDeque::new() };
        Equaliser { settings, branches: vec![first], differences: Differences::new(), counts: Counts::default() }
    }

    /// A packet has arrived by `branch` at `now`, not before the packets so far; with its flow and header, if it is TCP. Adds to
    /// `out` the packets that go on now, in this order.
    pub fn on_packet(&mut self, now: Instant, branch: usize, tcp: Option<(K, TcpHeader)>, handle: H, out: &mut Vec<H>) {
        self.on_timer(now, out);
        self.counts.packets += 1;
        if branch >= self.branches.len() {
            self.branches.resize_with(branch + 1, || Branch { delay: Duration::ZERO, held: VecDeque::new() });
        }
        if self.settings.difference.is_none() {
            self.learn(now, branch, tcp);
        }
        let arrived = &mut self.branches[branch];
        // Not before those that are held already.
        let last = arrived.held.back().map_or(Instant::ZERO, |(at, _)| *at);
        let leaves = (now + arrived.delay).max(last);
        if leaves <= now {
            return out.push(handle);
        }
        arrived.held.push_back((leaves, handle));
        self.counts.held += 1;
        if self.held() > self.settings.most {
            out.extend(self.branches[branch].held.pop_front().map(|(_, handle)| handle));
        }
    }

    fn learn(&mut self, now: Instant, branch: usize, tcp: Option<(K, TcpHeader)>) {
        if let Some((flow, header)) = tcp {
            self.counts.learned += self.differences.on_segment(now, branch, flow, header);
        }
        if let Some(later) = self.differences.pop_changed(now) {
            let longest = later.iter().copied().max().unwrap_or_default();
            let delays = later.iter().map(|later| longest.saturating_sub(*later));
            let is_bearable = delays.clone().all(|delay| delay <= self.settings.longest);
            for (branch, delay) in self.branches.iter_mut().zip(delays) {
                branch.delay = if is_bearable { delay } else { Duration::ZERO };
            }
        }
    }

    /// When to call [`Equaliser::on_timer`] if no packet arrives before; [`Instant::NEVER`] if nothing is held.
    pub fn deadline(&self) -> Instant {
        self.next().map_or(Instant::NEVER, |(at, _)| at)
    }

    /// The branch whose first packet goes on next, and when.
    fn next(&self) -> Option<(Instant, usize)> {
        let firsts = self.branches.iter().enumerate().filter_map(|(i, branch)| Some((branch.held.front()?.0, i)));
        firsts.min()
    }

    /// Adds to `out` the packets that have been held long enough at `now`, in this order.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<H>) {
        while let Some((_, i)) = self.next().filter(|(at, _)| *at <= now) {
            out.extend(self.branches[i].held.pop_front().map(|(_, handle)| handle));
        }
    }

    /// Adds to `out` everything that is held.
    pub fn release_all(&mut self, out: &mut Vec<H>) {
        self.on_timer(Instant::NEVER, out);
    }

    /// The number of packets that are held.
    pub fn held(&self) -> usize {
        self.branches.iter().map(|branch| branch.held.len()).sum()
    }

    /// For how long packets of each branch are held.
    pub fn delays(&self) -> impl Iterator<Item = Duration> {
        self.branches.iter().map(|branch| branch.delay)
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
