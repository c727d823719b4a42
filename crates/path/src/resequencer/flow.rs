//! One flow: what has passed, what is held, and for how long.

use std::collections::BTreeMap;

use reknit_recovery::{FROM_1_MS, Lateness, Nanos};
use reknit_units::{Duration, Instant};

use super::gaps::{Arrival, Gaps, Verdict};
use super::trial::Trial;
use super::{Counts, FlowState, TcpHeader};

/// Sequence numbers are counted without wrapping from here, so that those before the first are positive too.
const ORIGIN: u64 = 1 << 32;

/// A packet that arrives.
pub(super) struct Arriving<H> {
    pub(super) header: TcpHeader,
    pub(super) handle: H,
}

/// What a call to the resequencer returns.
pub(super) struct Call<'a, H> {
    pub(super) counts: &'a mut Counts,
    /// The packets that go on.
    pub(super) out: &'a mut Vec<H>,
}

#[derive(Debug)]
pub(super) struct Flow<H> {
    /// The end of what has passed or is no longer waited for.
    next: u64,
    /// The end of what has arrived.
    highest: u64,
    /// By position, then in the order of arrival.
    held: BTreeMap<(u64, u64), (u64, H)>,
    serial: u64,
    /// When to give up waiting for what is missing at `next`.
    deadline: Instant,
    gaps: Gaps,
    lateness: Lateness<FROM_1_MS>,
    trial: Trial,
    last: Instant,
    late: u64,
    spurious: u64,
    bytes: u64,
}

impl<H> Flow<H> {
    /// A flow whose first packet, at `now`, begins with `seq`.
    pub(super) fn new(now: Instant, seq: u32) -> Flow<H> {
        let next = ORIGIN + u64::from(seq);
        Flow {
            next,
            highest: next,
            held: BTreeMap::new(),
            serial: 0,
            deadline: Instant::NEVER,
            gaps: Gaps::default(),
            lateness: Lateness::new(),
            trial: Trial::new(now),
            last: now,
            late: 0,
            spurious: 0,
            bytes: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the latest packet arrived.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    pub(super) fn state(&self) -> FlowState {
        FlowState {
            phase: self.trial.phase(),
            late: self.late,
            spurious: self.spurious,
            wait: self.lateness.wait().map(duration),
            bytes: self.bytes,
        }
    }

    /// `longest`: the longest time that a packet is held.
    pub(super) fn on_packet(&mut self, now: Instant, packet: Arriving<H>, longest: Duration, call: &mut Call<'_, H>) {
        let Arriving { header, handle } = packet;
        self.last = now;
        if header.opens || header.resets {
            self.release_all(call);
            *self = Flow::new(now, header.seq);
        }
        if header.len == 0 {
            return call.out.push(handle); // an ACK: a later one replaces it
        }
        let start = self.position(header.seq);
        let end = start + u64::from(header.len);
        let arrival = self.gaps.on_arrival(now, (start, end), self.highest, header.timestamp);
        self.learn(now, arrival, start < self.next, longest, call.counts);
        self.advance(now, end, call.counts);
        if matches!(arrival, Arrival::Missing(fill) if fill.verdict == Verdict::Lost) {
            // The sender no longer waits either. What is held has older timestamps, and would be refused after this
            // retransmission (RFC 7323 §5.3).
            self.release_all(call);
        }
        if start <= self.next {
            self.next = self.next.max(end);
            call.out.push(handle);
            self.release_ready(call);
        } else {
            self.hold((start, end), arrival, handle);
            call.counts.held += u64::from(self.trial.holds());
        }
        if !self.trial.holds() {
            self.release_all(call);
            self.next = self.highest;
        }
        self.wait(longest);
    }

    fn hold(&mut self, (start, end): (u64, u64), arrival: Arrival, handle: H) {
        // A repetition waits behind everything that is held, since its timestamp is newer.
        let is_repeated = matches!(arrival, Arrival::Again | Arrival::AgainAfterMissing(_));
        let position = if is_repeated { self.highest } else { start };
        self.serial += 1;
        self.held.insert((position, self.serial), (end, handle));
    }

    /// Learns how late packets are, and whether the sender retransmits those. `passed`: missing data was no longer waited for.
    fn learn(&mut self, now: Instant, arrival: Arrival, passed: bool, longest: Duration, counts: &mut Counts) {
        match arrival {
            Arrival::New | Arrival::Again => {}
            Arrival::Missing(mut fill) => {
                if fill.verdict == Verdict::Open && !passed {
                    fill.verdict = Verdict::Late; // a sender that has not seen the gap does not retransmit
                }
                self.gaps.remember(fill);
                match fill.verdict {
                    Verdict::Late => self.learn_late(now.since(fill.since), counts),
                    Verdict::Lost => self.lateness.learn_loss(),
                    Verdict::Open => {}
                }
            }
            Arrival::AgainAfterMissing(fill) => {
                if fill.verdict == Verdict::Lost {
                    self.lateness.unlearn_loss();
                }
                if fill.verdict != Verdict::Late {
                    self.learn_late(now.since(fill.since), counts);
                }
                self.spurious += 1;
                counts.spurious += 1;
                // Without its margin, which is large at first.
                let is_bearable = self.lateness.longest().is_some_and(|lateness| duration(lateness) <= longest);
                self.trial.on_spurious(now, is_bearable, counts);
            }
        }
        while let Some(fill) = self.gaps.pop_old(now) {
            if fill.verdict == Verdict::Open {
                self.lateness.learn_loss();
            }
        }
    }

    fn learn_late(&mut self, lateness: Duration, counts: &mut Counts) {
        self.lateness.learn(Nanos(lateness.as_nanos()));
        self.late += 1;
        counts.late += 1;
    }

    /// Data up to `end` has arrived.
    fn advance(&mut self, now: Instant, end: u64, counts: &mut Counts) {
        let fresh = end.saturating_sub(self.highest);
        self.highest = self.highest.max(end);
        self.bytes += fresh;
        self.trial.on_data(now, fresh, counts);
    }

    /// The position of a sequence number, which is less than 2^31 from the next one.
    fn position(&self, seq: u32) -> u64 {
        let distance = seq.wrapping_sub(self.next as u32).cast_signed();
        self.next.saturating_add_signed(distance.into())
    }

    /// Sets the deadline.
    fn wait(&mut self, longest: Duration) {
        let wait = self.lateness.wait().map_or(longest, |wait| duration(wait).min(longest));
        self.deadline = match self.gaps.missing_since(self.next) {
            _ if self.held.is_empty() => Instant::NEVER,
            Some(since) => since + wait,
            None => self.last, // too many gaps to follow
        };
    }

    pub(super) fn on_timer(&mut self, now: Instant, longest: Duration, call: &mut Call<'_, H>) {
        while self.deadline <= now {
            self.give_up(call);
            self.wait(longest);
        }
    }

    /// No longer waits for what is missing at `next`.
    pub(super) fn give_up(&mut self, call: &mut Call<'_, H>) {
        let Some(((position, _), _)) = self.held.first_key_value() else { return };
        call.counts.given_up += 1;
        self.next = self.next.max(*position);
        self.release_ready(call);
    }

    pub(super) fn release_all(&mut self, call: &mut Call<'_, H>) {
        for (_, (end, handle)) in std::mem::take(&mut self.held) {
            self.next = self.next.max(end);
            call.out.push(handle);
        }
        self.deadline = Instant::NEVER;
    }

    /// Its packets are held from now on.
    #[cfg(test)]
    pub(super) fn hold_from_now(&mut self) {
        self.trial.hold();
    }

    fn release_ready(&mut self, call: &mut Call<'_, H>) {
        while let Some(entry) = self.held.first_entry().filter(|entry| entry.key().0 <= self.next) {
            let (end, handle) = entry.remove();
            self.next = self.next.max(end);
            call.out.push(handle);
        }
    }
}

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}
