//! The network between the ends, time, and the attacker.

use std::collections::VecDeque;

use reknit_tcp::segment::{Ecn, Flags};
use reknit_tcp::{CloseReason, Config, Segment, State};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

use super::end::{TestedEnd, content};
use super::options;
use crate::input::Input;
use crate::segments::{Expected, mutated};

/// The most packets on their way to an end; further ones are lost.
const MAX_FLYING: usize = 2000;
/// The most events of an input, after which it goes on for ever.
const MAX_EVENTS: u32 = 400_000;
/// The most events at one time.
const MAX_AT_ONCE: u32 = 5000;
/// How long both ends may take after the last operation: longer than all of their timeouts.
const LAST: Duration = Duration::from_secs(4 * 3600);
/// The same with an attacker, whose victims may wait for each other without end.
const LAST_ATTACKED: Duration = Duration::from_secs(2000);
/// One-way delay after the last operation.
const DELAY: Duration = Duration::from_millis(10);

type Packet = (Segment, Vec<u8>);

pub(super) struct World {
    now: Instant,
    ends: [TestedEnd; 2],
    /// Packets on their way to each end, oldest first.
    flying: [VecDeque<Packet>; 2],
    is_attacked: bool,
    is_simultaneous: bool,
    events: u32,
    at_once: u32,
}

impl World {
    pub(super) fn new(input: &mut Input<'_>, compositions: [&Composition; 2]) -> World {
        let now = Instant::ZERO + Duration::from_secs(10);
        let simultaneous_open = input.u8() % 16 == 1;
        let configs = [(); 2].map(|()| Config { simultaneous_open, ..options::config(input) });
        let [first, second] = configs;
        let ends = [
            TestedEnd::new(now, 0, compositions[0], first, true),
            TestedEnd::new(now, 1, compositions[1], second, simultaneous_open),
        ];
        let mut world = World {
            now,
            ends,
            flying: [VecDeque::new(), VecDeque::new()],
            is_attacked: false,
            is_simultaneous: simultaneous_open,
            events: 0,
            at_once: 0,
        };
        world.collect(0);
        world.collect(1);
        world
    }

    /// The next operation.
    pub(super) fn act(&mut self, input: &mut Input<'_>) {
        let operation = input.u8();
        let (argument, end) = (usize::from(operation >> 4), usize::from(operation >> 7));
        let small = argument & 7;
        match operation & 15 {
            0 => self.attack(input, end),
            1 => self.wait(Duration::from_millis(MILLIS[argument])),
            2 => _ = (0..=small).all(|_| self.deliver(end, 0)),
            3 => _ = self.deliver(end, small),
            4 => _ = self.take(end, small),
            5 => self.duplicate(end, small),
            6 => self.delay(end, small),
            7 => self.write(end, WRITES[small]),
            8 => self.read(end, WRITES[small]),
            9 => self.finish(end, small),
            10 => self.mark(end, small),
            11 => self.change(input, end, small),
            12 => self.lose_all(end),
            13 => self.wait_for_timer(),
            14 => self.read(end, usize::MAX),
            _ => self.round(),
        }
    }

    /// Sends everything that an end wants to send.
    fn collect(&mut self, end: usize) {
        let mut released = 0;
        while let Some(packet) = self.ends[end].poll(self.now) {
            released += 1;
            let flying = &mut self.flying[1 - end];
            if flying.len() < MAX_FLYING {
                flying.push_back(packet);
            }
        }
        self.events += 1;
        assert!(self.events < MAX_EVENTS, "it goes on for ever: {:?}", self.states());
        self.ends[end].check(released);
    }

    fn states(&self) -> [State; 2] {
        self.ends.each_ref().map(TestedEnd::state)
    }

    /// The packet at `place` arrives at `end`. False if nothing is on its way.
    fn deliver(&mut self, end: usize, place: usize) -> bool {
        let Some((segment, payload)) = self.take(end, place) else { return false };
        self.arrive(end, &segment, &payload);
        true
    }

    fn arrive(&mut self, end: usize, segment: &Segment, payload: &[u8]) {
        crate::count_segments(1);
        let now = self.now;
        // A timer that is due fires first.
        self.fire(end);
        self.ends[end].apply(|stream| stream.on_segment(now, segment, payload));
        self.collect(end);
    }

    fn take(&mut self, end: usize, place: usize) -> Option<Packet> {
        let place = place.min(self.flying[end].len().checked_sub(1)?);
        self.flying[end].remove(place)
    }

    fn duplicate(&mut self, end: usize, place: usize) {
        if let Some(packet) = self.flying[end].get(place).cloned() {
            self.flying[end].push_back(packet);
        }
    }

    /// The packet at `place` goes to the end of the queue.
    fn delay(&mut self, end: usize, place: usize) {
        if let Some(packet) = self.take(end, place) {
            self.flying[end].push_back(packet);
        }
    }

    /// A router marks packets (RFC 3168).
    fn mark(&mut self, end: usize, most: usize) {
        let capable = |ecn: Ecn| matches!(ecn, Ecn::Ect0 | Ecn::Capable1);
        for (segment, _) in self.flying[end].iter_mut().filter(|(segment, _)| capable(segment.ecn)).take(most + 1) {
            segment.ecn = Ecn::Congested;
        }
    }

    fn lose_all(&mut self, end: usize) {
        self.flying[end].clear();
    }

    fn write(&mut self, end: usize, n: usize) {
        self.ends[end].write(n);
        self.collect(end);
    }

    fn read(&mut self, end: usize, n: usize) {
        let now = self.now;
        self.ends[end].read(now, n);
        self.collect(end);
    }

    /// The application closes, or seldom aborts.
    fn finish(&mut self, end: usize, how: usize) {
        if how == 7 {
            let now = self.now;
            self.ends[end].stream.abort(now);
        } else if how >= 4 {
            self.ends[end].close();
        }
        self.collect(end);
    }

    /// What the owner of a connection may change while it is open.
    fn change(&mut self, input: &mut Input<'_>, end: usize, what: usize) {
        let now = self.now;
        match what {
            0 | 1 => self.ends[end].stream.shrink(self.now),
            2 | 3 => {
                let mss = input.of(&[1000, 536, 64, 9000]);
                self.ends[end].stream.connection_mut().limit_segment_size(now, mss);
            }
            4 | 5 => {
                let plugins = Box::new(options::composition(input).build());
                let _ = self.ends[end].stream.connection_mut().replace_sender_plugins(now, plugins);
            }
            _ => {
                let size = Bytes(2000 + u64::from(input.u16()));
                self.ends[end].stream.connection_mut().limit_receive_window(size);
            }
        }
        self.collect(end);
    }

    /// The attacker sends a segment to `end`. Its payload is what the other end would send there: an attacker who sees the
    /// stream can put other bytes into it, and no TCP can tell.
    fn attack(&mut self, input: &mut Input<'_>, end: usize) {
        let expected = self.ends[end].last.as_ref().map(Expected::after).unwrap_or_default();
        let segment = mutated(input, &expected);
        self.is_attacked = true;
        let opens = matches!(self.ends[end].state(), State::Listen | State::SynSent | State::SynReceived);
        self.ends[end].is_taken_over |= opens && segment.flags.has(Flags::SYN);
        let other = 1 - end;
        let first = segment.seq.0.wrapping_sub(self.ends[other].isn.wrapping_add(1));
        let first = first.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
        let payload = content(other, i64::from(first.cast_signed()), usize::from(segment.len.min(9000)));
        let segment = Segment { len: payload.len() as u16, ..segment };
        self.arrive(end, &segment, payload);
    }

    /// Fires the timers of `end` that are due.
    fn fire(&mut self, end: usize) {
        let now = self.now;
        while self.ends[end].stream.connection().deadline() <= now {
            self.at_once += 1;
            assert!(self.at_once < MAX_AT_ONCE, "timers fire for ever at the same time");
            self.ends[end].apply(|stream| stream.on_timer(now));
            self.collect(end);
        }
    }

    fn next_timer(&self) -> Instant {
        self.ends.iter().map(|end| end.stream.connection().deadline()).fold(Instant::NEVER, Instant::min)
    }

    fn go_to(&mut self, time: Instant) {
        self.at_once = 0;
        self.now = self.now.max(time);
        self.fire(0);
        self.fire(1);
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.next_timer() <= until {
            self.go_to(self.next_timer());
        }
        self.now = until;
    }

    fn wait_for_timer(&mut self) {
        let next = self.next_timer();
        if next.is_set() {
            self.go_to(next);
        }
    }

    /// Everything on its way arrives after the usual delay, and the applications read.
    fn round(&mut self) {
        self.wait(DELAY);
        for end in 0..2 {
            for _ in 0..self.flying[end].len() {
                self.deliver(end, 0);
            }
            self.read(end, usize::MAX);
        }
    }

    /// The network works from now on, the applications write what is left, and close.
    pub(super) fn end(mut self) {
        let limit = self.now + if self.is_attacked { LAST_ATTACKED } else { LAST };
        while self.states() != [State::Closed; 2] {
            let is_idle = self.flying.iter().all(VecDeque::is_empty);
            if is_idle {
                let next = self.next_timer();
                if !next.is_set() {
                    break;
                }
                self.go_to(next.max(self.now));
            }
            self.round();
            for end in 0..2 {
                self.ends[end].close();
                self.collect(end);
            }
            if self.now > limit {
                assert!(self.is_attacked, "not over: {:?}", self.states());
                return;
            }
        }
        if !self.is_attacked {
            self.check_whole();
        }
    }

    /// Everything has arrived, or an end has failed.
    fn check_whole(&self) {
        let failed =
            |end: &TestedEnd| end.stream.connection().close_reason().is_some_and(|r| r != CloseReason::Finished);
        if self.ends.iter().any(failed) {
            return;
        }
        // An end that only listens has nobody to write to.
        for (end, other) in [(0, 1), (1, 0)] {
            let written = self.ends[other].written as u64;
            let never_opened = !self.is_simultaneous && self.states().contains(&State::Listen);
            assert!(self.ends[end].read == written || never_opened, "{} of {written}", self.ends[end].read);
        }
    }
}

/// Waits of [`World::act`].
const MILLIS: [u64; 16] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 3000, 10_000, 60_000, 400_000];
/// Bytes that are written or read at once.
const WRITES: [usize; 8] = [1, 10, 100, 1000, 1460, 5000, 20_000, 40_000];
