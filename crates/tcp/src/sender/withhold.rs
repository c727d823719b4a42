//! Detects receivers that acknowledge data before it arrives: optimistic ACKs, or concealed losses. Each ACK is tested before
//! the pipeline, DSACKs in step 3; [`super::transmit`] withholds and releases the segments. Owned by [`super::Sender`].
//!
//! Occasionally a new segment is withheld (the skipped segments of Sherwood, Bhattacharjee and Braud, 2005): it is entered in
//! the scoreboard but not sent. An honest receiver SACKs what follows; then the segment is sent, one round trip late and
//! without a change of the window. A receiver that acknowledges it, or reports it as a duplicate, cannot have received it. To
//! a receiver, a withheld segment looks like a lost one, so a receiver that conceals losses acknowledges withheld segments
//! too.
//!
//! A receiver that reports every retransmission as a duplicate does so for withheld segments as well, although they are
//! sent once. A network can also duplicate a packet, so only a majority of such reports counts; from then on no reduction
//! is undone.

use reknit_units::{Bytes, Segments};

use super::AckInput;
use crate::facts::{Context, Phase};
use crate::scoreboard::{Duplicate, Scoreboard, SegId, SendReason};
use crate::seq::Offset;

/// The interval of a new connection. It doubles with each passed test, up to the configured one: optimistic ACKs pay most in
/// slow start.
const FIRST_INTERVAL: u32 = 64;
/// This many segments must be able to follow a withheld one, so that an honest receiver can SACK some of them.
const FOLLOWERS: u64 = 3;
/// A smaller window is too small for tests, in segments.
const SMALLEST_WINDOW: u64 = 8;
/// How many of the last withheld segments are remembered, for DSACKs.
const REMEMBERED: usize = 8;

/// The progress of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    /// The next segment is withheld when the countdown ends.
    Waiting,
    /// The segment is withheld.
    Withheld(SegId),
    /// The receiver has acknowledged what was never sent.
    Failed,
}

/// When to withhold, and what was withheld.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SkipTest {
    /// The state of a generator (`SplitMix64`) whose seed the peer does not know.
    random: u64,
    /// Segments until the next one is withheld.
    countdown: u32,
    interval: u32,
    test: Test,
    /// Withheld segments that have been sent since, the newest last.
    released: Vec<SegId>,
    /// How many of them there were, and how many of these the receiver claims to have received twice.
    tests: u32,
    claims: u32,
}

impl SkipTest {
    pub(super) fn new(secret: u64) -> SkipTest {
        let mut withholder = SkipTest {
            random: secret,
            countdown: 0,
            interval: FIRST_INTERVAL,
            test: Test::Waiting,
            released: Vec::new(),
            tests: 0,
            claims: 0,
        };
        withholder.countdown = withholder.draw();
        withholder
    }

    /// Uniform from 1 to twice the interval.
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        1 + ((mixed ^ (mixed >> 31)) >> 32) as u32 % (2 * self.interval)
    }

    /// The test is over.
    fn restart(&mut self, every: Segments) {
        self.test = Test::Waiting;
        self.interval = (self.interval * 2).min(every.0.max(1));
        self.countdown = self.draw();
    }

    fn note_released(&mut self, id: SegId) {
        if self.released.len() == REMEMBERED {
            self.released.remove(0);
        }
        self.released.push(id);
        self.tests += 1;
    }

    /// Counts claims that segments arrived twice although they were sent once.
    pub(super) fn note_duplicates(&mut self, duplicates: &[Duplicate]) {
        let before = self.released.len();
        self.released
            .retain(|id| duplicates.iter().all(|duplicate| duplicate.id != *id || duplicate.transmissions > 2));
        self.claims += (before - self.released.len()) as u32;
    }

    /// True if the receiver's DSACKs are false.
    pub(super) fn distrusts_dsacks(&self) -> bool {
        self.claims >= 2 && self.claims * 2 > self.tests
    }

    /// True if the next new segment, of `len` bytes, is to be withheld. `queued` is the end of the send buffer.
    pub(super) fn must_withhold(&mut self, cx: &Context<'_>, queued: Offset, len: u32, cause: SendReason) -> bool {
        let (snd, followers) = (cx.snd, cx.snd.smss * FOLLOWERS);
        let end = snd.snd_nxt + Bytes(u64::from(len));
        let fits = queued.since(end) >= followers && (snd.snd_una + snd.snd_wnd).since(end) >= followers;
        let calm = cause == SendReason::New && snd.phase != Phase::Loss && snd.cwnd >= snd.smss * SMALLEST_WINDOW;
        let is_full = Bytes(u64::from(len)) == snd.smss;
        if self.test != Test::Waiting || !snd.sack || !is_full || !calm || !fits {
            return false;
        }
        self.countdown = self.countdown.saturating_sub(1);
        self.countdown == 0
    }

    /// `id` was entered in the scoreboard but is not sent.
    pub(super) fn withhold(&mut self, id: SegId) {
        self.test = Test::Withheld(id);
    }

    /// True if the ACK acknowledges what was withheld. Called by `on_ack` before the pipeline.
    #[cold] // most connections withhold nothing
    pub(super) fn is_optimistic(&mut self, input: &AckInput, board: &Scoreboard) -> bool {
        let Test::Withheld(id) = self.test else { return false };
        let Some(record) = board.get(id).filter(|record| record.transmissions == 1) else { return false };
        let reported = input.sack.iter().flat_map(|report| report.blocks().iter().chain(&report.dsack));
        let is_optimistic = input.ack > record.start
            || reported.into_iter().any(|range| range.start < record.end() && record.start < range.end);
        if is_optimistic {
            self.test = Test::Failed;
        }
        is_optimistic
    }

    /// True if the receiver has acknowledged what was never sent.
    pub(super) fn has_detected_optimistic_ack(&self) -> bool {
        self.test == Test::Failed
    }

    /// The withheld segment, once something above it was SACKed: it is sent now. It is not a retransmission, and no sign
    /// of a loss. The retransmission timer may have sent it before; `every` is the configured interval.
    pub(super) fn release(&mut self, board: &Scoreboard, every: Segments) -> Option<SegId> {
        let Test::Withheld(id) = self.test else { return None };
        if board.get(id).is_none_or(|record| record.transmissions > 1) {
            self.restart(every);
            return None;
        }
        if board.highest_sacked() <= Some(id) {
            return None;
        }
        self.note_released(id);
        self.restart(every);
        Some(id)
    }
}
