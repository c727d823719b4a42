//! The flows that passed both points, in one direction each, and which point they passed first.

use std::collections::BTreeMap;

use super::clock::{Clock, Sample};
use super::pairs::Pairs;
use super::passage::{Captured, Ends, Passage};

/// For each flow of each capture, the capture that was made nearer to its sender.
#[derive(Debug)]
pub(super) struct Sides([Vec<usize>; 2]);

impl Sides {
    /// The capture nearer to the sender of a flow of `capture`.
    pub(super) fn near(&self, capture: usize, flow: u32) -> usize {
        self.0[capture][flow as usize]
    }
}

/// The evidence for the point that the packets of a flow pass first: positive for the first capture.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    /// By the times of packets in both directions.
    times: i64,
    /// Routers lower the TTL.
    ttl: i64,
    /// Packets that only one capture has.
    lost: i64,
    /// By the times of packets in this direction alone: only right if the clocks are.
    later: i64,
}

impl Votes {
    /// The decision, if there is one.
    fn decided(self) -> Option<usize> {
        let vote = [self.times, self.ttl, self.lost].into_iter().find(|vote| *vote != 0)?;
        Some(usize::from(vote < 0))
    }
}

/// Decides for each flow which point its packets pass first.
pub(super) fn sides(captures: &[Captured; 2], pairs: &Pairs) -> Sides {
    let [a, b] = captures;
    let mut votes: Vec<Votes> = vec![Votes::default(); a.flows.len()];
    let mut last: Vec<Option<i64>> = vec![None; a.flows.len()];
    let mut other_names: Vec<Option<u32>> = vec![None; b.flows.len()];
    let reversed: Vec<Option<u32>> = a.flows.iter().map(|flow| a.number(flow.ends.reversed())).collect();
    for (passage, pair) in a.passages.iter().zip(&pairs.of_a) {
        let Some(other) = pair.map(|pair| &b.passages[pair as usize]) else {
            votes[passage.flow as usize].lost += 1;
            continue;
        };
        other_names[other.flow as usize].get_or_insert(passage.flow);
        votes[passage.flow as usize].ttl += i64::from(passage.ttl) - i64::from(other.ttl);
        let difference = other.at.wrapping_sub(passage.at).cast_signed();
        last[passage.flow as usize] = Some(difference);
        votes[passage.flow as usize].later += difference.signum();
        // A packet of each direction, close in time: the sum of their delays, or its negative, does not depend on the clocks.
        let reverse = reversed[passage.flow as usize];
        if let Some((reverse, before)) = reverse.and_then(|flow| Some((flow, last[flow as usize]?))) {
            let vote = difference.saturating_sub(before).signum();
            votes[passage.flow as usize].times += vote;
            votes[reverse as usize].times -= vote;
        }
    }
    for (passage, pair) in b.passages.iter().zip(&pairs.of_b) {
        if let (None, Some(flow)) = (pair, other_names[passage.flow as usize].or_else(|| a.number(b.ends(passage)))) {
            votes[flow as usize].lost -= 1;
        }
    }
    let hosts = hosts(a, &votes);
    let by_host = |ends: Ends| {
        let of = |address| hosts.get(address).copied().unwrap_or(0);
        let vote = of(&ends.source.address) - of(&ends.destination.address);
        (vote != 0).then(|| usize::from(vote < 0))
    };
    let first = a.flows.iter().zip(&votes).map(|(flow, votes)| by_host(flow.ends).or(votes.decided()));
    let first: Vec<Option<usize>> = first.collect();
    // Packets of the other direction pass the points in the other order.
    let reverse = |of: &dyn Fn(usize) -> Option<usize>, flow: usize| Some(1 - of(reversed[flow]? as usize)?);
    let later = |flow: usize| (votes[flow].later != 0).then(|| usize::from(votes[flow].later < 0));
    let all = (0..first.len()).map(|flow| {
        let known = first[flow].or_else(|| reverse(&|flow| first[flow], flow)).or_else(|| later(flow));
        known.or_else(|| reverse(&later, flow)).unwrap_or(0)
    });
    let first: Vec<usize> = all.collect();
    let second = b.flows.iter().zip(&other_names).map(|(flow, name)| {
        let known = name.or_else(|| a.number(flow.ends)).map(|flow| first[flow as usize]);
        known.or_else(|| by_host(flow.ends)).unwrap_or(0)
    });
    let second = second.collect();
    Sides([first, second])
}

/// On which side each host is: positive for the first capture. Only what times and TTLs show counts.
fn hosts(a: &Captured, votes: &[Votes]) -> BTreeMap<[u8; 16], i64> {
    let mut hosts = BTreeMap::new();
    for (flow, votes) in a.flows.iter().zip(votes) {
        if let Some(near) = (Votes { lost: 0, ..*votes }).decided() {
            let vote = if near == 0 { 1 } else { -1 };
            *hosts.entry(flow.ends.source.address).or_insert(0) += vote;
            *hosts.entry(flow.ends.destination.address).or_insert(0) -= vote;
        }
    }
    hosts
}

impl Captured {
    fn ends(&self, passage: &Passage) -> Ends {
        self.flows[passage.flow as usize].ends
    }
}

/// The packets that passed both points.
pub(super) fn samples(captures: &[Captured; 2], pairs: &Pairs, sides: &Sides) -> impl Iterator<Item = Sample> {
    let [a, b] = captures;
    a.passages.iter().zip(&pairs.of_a).filter_map(|(passage, pair)| {
        let other = &b.passages[(*pair)? as usize];
        let difference = other.at.wrapping_sub(passage.at).cast_signed();
        Some(Sample { at: passage.at, difference, near: sides.near(0, passage.flow) })
    })
}

/// A packet that passed the point nearer to its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// When, nanoseconds.
    pub(super) at: u64,
    pub(super) size: u32,
    pub(super) len: u32,
    pub(super) fate: Delivery,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// It passed the other point: its index in that capture, and the delay in nanoseconds.
    Arrived {
        number: u32,
        delay: i64,
    },
    Lost,
    /// The other capture does not cover the time when it should have arrived.
    Unknown,
}

/// A flow in one direction.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// The ends, as in the capture near the sender.
    pub(super) ends: Ends,
    pub(super) near: usize,
    /// In the order of sending.
    pub(super) sent: Vec<Sent>,
    /// Copies that arrived, and packets that only the other capture has.
    pub(super) copies: u64,
    pub(super) unsent: u64,
}

impl Flow {
    pub(super) fn bytes(&self) -> u64 {
        self.sent.iter().map(|sent| u64::from(sent.size)).sum()
    }
}

/// The flows with a packet that passed both points, those with the most bytes first.
pub(super) fn flows(captures: &[Captured; 2], pairs: &Pairs, sides: &Sides, clock: &Clock) -> Vec<Flow> {
    let matches = [&pairs.of_a, &pairs.of_b];
    let mut flows = Vec::new();
    for near in 0..2 {
        let (at_near, at_far) = (&captures[near], &captures[1 - near]);
        let mut by_flow: Vec<Vec<Sent>> = vec![Vec::new(); at_near.flows.len()];
        let mut names: Vec<Option<u32>> = vec![None; at_far.flows.len()];
        for (number, passage) in (0..).zip(&at_near.passages) {
            if sides.near(near, passage.flow) != near || pairs.copies[near][number] {
                continue;
            }
            let fate = matches[near][number].map_or(Delivery::Lost, |other| {
                let arrived = &at_far.passages[other as usize];
                names[arrived.flow as usize].get_or_insert(passage.flow);
                Delivery::Arrived { number: other, delay: clock.delay(passage.at, arrived.at, near) }
            });
            by_flow[passage.flow as usize].push(Sent { at: passage.at, size: passage.size, len: passage.len, fate });
        }
        let mut extra = vec![(0, 0); at_near.flows.len()];
        let delays: Vec<(i64, i64)> = by_flow.iter().map(|sent| delays(sent)).collect();
        let (began, ended) = at_near.span.unwrap_or_default();
        for (number, passage) in at_far.passages.iter().enumerate().filter(|(n, _)| matches[1 - near][*n].is_none()) {
            let Some(flow) = names[passage.flow as usize] else { continue };
            let arrived = clock.on_other(passage.at, 1 - near);
            let (least, most) = delays[flow as usize];
            let sent_from = arrived.saturating_add_signed(most.saturating_neg());
            let sent_until = arrived.saturating_add_signed(least.saturating_neg());
            let counts = &mut extra[flow as usize];
            if pairs.copies[1 - near][number] {
                counts.0 += 1;
            } else if began <= sent_from && sent_until <= ended {
                counts.1 += 1;
            }
        }
        for ((flow, mut sent), (copies, unsent)) in at_near.flows.iter().zip(by_flow).zip(extra) {
            if sent.iter().any(|sent| matches!(sent.fate, Delivery::Arrived { .. })) {
                uncover(&mut sent, at_far, clock, near);
                flows.push(Flow { ends: flow.ends, near, sent, copies, unsent });
            }
        }
    }
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes()));
    flows
}

/// The shortest and the longest delay.
fn delays(sent: &[Sent]) -> (i64, i64) {
    let delays = || {
        sent.iter().filter_map(|sent| match sent.fate {
            Delivery::Arrived { delay, .. } => Some(delay),
            _ => None,
        })
    };
    (delays().min().unwrap_or(0), delays().max().unwrap_or(0))
}

/// Packets that should have arrived before the other capture began, or may do so after its end, are not lost.
fn uncover(sent: &mut [Sent], at_far: &Captured, clock: &Clock, near: usize) {
    let (least, most) = delays(sent);
    let (began, ended) = at_far.span.unwrap_or_default();
    for sent in sent.iter_mut().filter(|sent| sent.fate == Delivery::Lost) {
        let at = clock.on_other(sent.at, near);
        if at.saturating_add_signed(least) < began || at.saturating_add_signed(most) > ended {
            sent.fate = Delivery::Unknown;
        }
    }
}
