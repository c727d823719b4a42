//! Packets that are sent, acknowledged and lost in any order, told to the loss detector for other transports.

use std::collections::{BTreeMap, BTreeSet};

use reknit_recovery::{Nanos, Recovery, Rtt};

use crate::input::Input;

/// What a transport knows, and the detector.
struct Transport {
    recovery: Recovery,
    now: Nanos,
    next: u64,
    rtt: Rtt,
    outstanding: BTreeMap<u64, Nanos>,
    largest: Option<u64>,
    reduced: BTreeSet<u64>,
}

/// The steps in which time passes, in nanoseconds.
const STEPS: [u64; 6] = [0, 300, 5_000, 1_000_000, 70_000_000, 4_000_000_000_000];

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let first = u64::from(input.u8()) << input.below(56);
    let mut transport = Transport {
        recovery: Recovery::new(),
        now: Nanos::ZERO,
        next: first,
        rtt: Rtt::default(),
        outstanding: BTreeMap::new(),
        largest: None,
        reduced: BTreeSet::new(),
    };
    input.operations(|input| transport.operate(input));
}

impl Transport {
    fn operate(&mut self, input: &mut Input<'_>) {
        match input.below(9) {
            0 | 1 => self.send(input.u8()),
            2 | 3 => self.acknowledge(input),
            6 => self.mark(),
            7 => {
                self.recovery.settle();
                self.reduced.clear();
            }
            8 => self.recovery = self.recovery.on_new_path(),
            4 => self.now = self.now + Nanos(input.of(&STEPS)),
            _ => {
                let sample = Nanos(u64::from(input.u32()));
                self.rtt = Rtt { smoothed: (self.rtt.smoothed * 7 + sample) / 8, latest: sample };
                self.recovery.on_rtt(self.rtt);
            }
        }
        self.detect();
        self.decide();
    }

    fn send(&mut self, packets: u8) {
        for _ in 0..packets % 40 {
            self.recovery.on_sent(self.next);
            self.outstanding.insert(self.next, self.now);
            self.next += 1;
        }
    }

    /// One range: what is outstanding, was acknowledged before, or was declared lost.
    fn acknowledge(&mut self, input: &mut Input<'_>) {
        let last = self.next.saturating_sub(1 + u64::from(input.u8()));
        let first = last.saturating_sub(u64::from(input.u8() % 8));
        self.recovery.on_acked_range(self.now, first, last);
        let acked: Vec<u64> = self.outstanding.range(first..=last).map(|(number, _)| *number).collect();
        for number in acked {
            self.outstanding.remove(&number);
            self.largest = self.largest.max(Some(number));
            self.recovery.on_acked(self.now, number);
        }
    }

    fn mark(&mut self) {
        let Some(largest) = self.largest else { return };
        self.recovery.on_marked(largest);
        assert!(!self.recovery.on_marked(largest), "a second reduction for packet {largest}");
    }

    fn detect(&mut self) {
        let mut earlier = Nanos::ZERO;
        let mut lost = Vec::new();
        for (&number, &sent) in &self.outstanding {
            let time = self.recovery.loss_time(number, sent);
            assert!(time >= earlier, "packet {number} is lost before an earlier one");
            assert_eq!(time == Nanos::NEVER, self.largest <= Some(number), "packet {number}");
            earlier = time;
            if time <= self.now {
                let threshold = (self.rtt.smoothed.max(self.rtt.latest) * 9 / 8).max(Nanos::from_millis(1));
                let is_due = self.largest >= Some(number + 3) || sent + threshold <= self.now;
                assert!(is_due, "packet {number} is lost earlier than in RFC 9002");
                lost.push(number);
            }
        }
        for number in lost {
            self.outstanding.remove(&number);
            self.recovery.on_lost(self.now, number);
        }
    }

    fn decide(&mut self) {
        let decision = self.recovery.decide(self.now);
        for event in decision.undone() {
            assert!(self.reduced.remove(event), "event {event} was not reduced, or undone twice");
        }
        if let Some(event) = decision.reduce {
            assert!(event < self.next && self.reduced.insert(event), "event {event}");
        }
        assert!(decision.next > self.now);
        assert!(self.recovery.wait() != Some(Nanos::ZERO));
    }
}
