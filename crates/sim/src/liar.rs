//! Misbehaving receivers (Savage et al. 1999), which send false acknowledgments to get more than their share of a path.
//!
//! The misbehavior is applied between a receiver's TCP and the network: [`super::flow`] passes it each segment that arrives
//! and each that is sent. It may know more than a real attacker, who has to guess, for example, SND.NXT. So an attack here
//! is at least as strong as the same attack by a real host.

use std::collections::BTreeMap;

use reknit_path::{Phases, Stream, StreamId};
use reknit_tcp::segment::{Flags, SackBlock, SackBlocks};
use reknit_tcp::{Segment, SeqNum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of the first random stream of liars, after those of the clients.
const STREAMS: u32 = (1 << 17) + (1 << 30);
/// ACKs into which one is divided.
const DIVISION: u32 = 50;
/// Duplicates of each ACK.
const DUPLICATES: usize = 10;
/// The most segments that one withheld ACK acknowledges.
const LONGEST_STRETCH: u32 = 64;
/// The longest forged segment.
const LONGEST: u64 = 65_000;

/// What a receiver lies about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehavior {
    /// It reports every retransmission as a duplicate (DSACK), so that reductions look spurious.
    Dsack,
    /// It reports every segment as a duplicate (DSACK), so that the network also seems to reorder.
    DsackAll,
    /// It echoes a timestamp from before the retransmission, so that the original seems to have arrived (Eifel).
    Timestamps,
    /// Both: a DSACK and an old timestamp for each retransmission.
    DsackAndTimestamps,
    /// It acknowledges what was lost, so that the sender never sees a loss.
    Conceal,
    /// It acknowledges everything that was sent, before it arrives (Savage et al. 1999).
    Optimistic,
    /// It SACKs everything that was sent, before it arrives, except the first segment.
    SackAhead,
    /// It SACKs random segments, whether they have arrived or not.
    SackRandom,
    /// It divides each ACK into 50 that acknowledge a few bytes each (Savage et al. 1999).
    Divide,
    /// It does not agree on SACK and sends every ACK 11 times (`DupACK` spoofing, Savage et al. 1999).
    Duplicate,
    /// It acknowledges half a window at once, which releases a burst.
    Stretch,
}

impl Misbehavior {
    /// All lies.
    pub const ALL: [Misbehavior; 11] = [
        Misbehavior::Dsack,
        Misbehavior::DsackAll,
        Misbehavior::Timestamps,
        Misbehavior::DsackAndTimestamps,
        Misbehavior::Conceal,
        Misbehavior::Optimistic,
        Misbehavior::SackAhead,
        Misbehavior::SackRandom,
        Misbehavior::Divide,
        Misbehavior::Duplicate,
        Misbehavior::Stretch,
    ];

    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Misbehavior::Dsack => "dsack",
            Misbehavior::DsackAll => "dsack-all",
            Misbehavior::Timestamps => "timestamps",
            Misbehavior::DsackAndTimestamps => "dsack-and-timestamps",
            Misbehavior::Conceal => "conceal",
            Misbehavior::Optimistic => "optimistic",
            Misbehavior::SackAhead => "sack-ahead",
            Misbehavior::SackRandom => "sack-random",
            Misbehavior::Divide => "divide",
            Misbehavior::Duplicate => "duplicate",
            Misbehavior::Stretch => "stretch",
        }
    }

    fn reports_duplicates(self) -> bool {
        matches!(self, Misbehavior::Dsack | Misbehavior::DsackAll | Misbehavior::DsackAndTimestamps)
    }

    fn forges_timestamps(self) -> bool {
        matches!(self, Misbehavior::Timestamps | Misbehavior::DsackAndTimestamps)
    }
}

/// The liar of one connection.
#[derive(Debug)]
pub(crate) struct MisbehavingReceiver {
    lie: Misbehavior,
    random: Stream,
    /// The sequence number of the sender's first byte, once its SYN has arrived. Positions count from there.
    base: Option<SeqNum>,
    /// One past the highest byte that has arrived.
    highest: u64,
    /// The ranges below `highest` that have not arrived.
    missing: BTreeMap<u64, u64>,
    /// One past what its own TCP believes to have arrived, if it forges segments.
    claimed: u64,
    /// What the next ACK reports as a duplicate.
    duplicate: Option<SackBlock>,
    /// The timestamp of the first arrival above each hole, by its position.
    above: BTreeMap<u64, u32>,
    /// The timestamp that the next ACK echoes.
    echo: Option<u32>,
    /// The acknowledgment of the last ACK that left.
    acked: Option<SeqNum>,
    /// Segments that have arrived since then.
    since: u32,
}

impl MisbehavingReceiver {
    pub(crate) fn new(lie: Misbehavior, seed: u64, flow: u32) -> MisbehavingReceiver {
        MisbehavingReceiver {
            lie,
            random: StreamId { seed, stage: STREAMS, phases: Phases::Fixed }.stream(flow),
            base: None,
            highest: 0,
            missing: BTreeMap::new(),
            claimed: 0,
            duplicate: None,
            above: BTreeMap::new(),
            echo: None,
            acked: None,
            since: 0,
        }
    }

    /// `segment` has arrived from the sender, whose SND.NXT is `snd_nxt`. Returns how many of its bytes are new, and
    /// adds to `arrivals` what the receiver's TCP gets to see instead of the segment alone: lies about data that has
    /// not arrived.
    pub(crate) fn on_arrival(&mut self, segment: &Segment, snd_nxt: SeqNum, arrivals: &mut Vec<Segment>) -> u64 {
        if segment.flags.has(Flags::SYN) {
            self.base = Some(segment.seq.plus(1));
        }
        let Some(base) = self.base.filter(|_| segment.len > 0) else {
            arrivals.push(*segment);
            return 0;
        };
        let start = position(base, self.highest, segment.seq);
        let end = start + u64::from(segment.len);
        self.prepare_echo(segment, start);
        if start < self.highest || self.lie == Misbehavior::DsackAll {
            let right = segment.seq.plus(u32::from(segment.len));
            let before =
                self.duplicate.filter(|before| self.lie == Misbehavior::DsackAll && before.right == segment.seq);
            self.duplicate = Some(SackBlock { left: before.map_or(segment.seq, |before| before.left), right });
        }
        self.since += 1;
        let new = self.note(start, end);
        if matches!(self.lie, Misbehavior::Conceal | Misbehavior::Optimistic) {
            self.claim_up_to(base, start, segment, arrivals);
        }
        arrivals.push(*segment);
        self.claimed = self.claimed.max(end);
        if self.lie == Misbehavior::Optimistic {
            let sent = position(base, self.highest, snd_nxt);
            self.claim_up_to(base, sent, segment, arrivals);
        }
        new
    }

    /// Notes what has really arrived. Returns how many bytes are new.
    fn note(&mut self, start: u64, end: u64) -> u64 {
        let mut new = 0;
        // Holes do not overlap, so their ends are in the same order as their beginnings.
        let below = self.missing.range(..end).rev().map(|(left, right)| (*left, *right));
        let overlapping: Vec<(u64, u64)> = below.take_while(|(_, right)| *right > start).collect();
        for (left, right) in overlapping {
            self.missing.remove(&left);
            if left < start {
                self.missing.insert(left, start);
            }
            if end < right {
                self.missing.insert(end, right);
            }
            new += right.min(end) - left.max(start);
        }
        if start > self.highest {
            self.missing.insert(self.highest, start);
        }
        if end > self.highest {
            new += end - start.max(self.highest);
            self.highest = end;
        }
        new
    }

    /// If `segment` fills a hole: the timestamp of the first arrival above it, which was sent at about the same time as
    /// the original.
    fn prepare_echo(&mut self, segment: &Segment, start: u64) {
        let Some(timestamps) = segment.options.timestamps.filter(|_| self.lie.forges_timestamps()) else { return };
        if start > self.highest {
            self.above.insert(start, timestamps.val);
        } else if start < self.highest {
            self.echo = self.above.range(start..).next().map(|(_, val)| *val);
        }
        let lowest = self.missing.keys().next().copied().unwrap_or(start);
        self.above = self.above.split_off(&lowest);
    }

    /// Forges segments like `like` for everything up to `to` that its own TCP does not have.
    fn claim_up_to(&mut self, base: SeqNum, to: u64, like: &Segment, arrivals: &mut Vec<Segment>) {
        while self.claimed < to {
            let len = (to - self.claimed).min(LONGEST);
            let seq = base.plus(self.claimed as u32);
            arrivals.push(Segment { seq, len: len as u16, ..*like });
            self.claimed += len;
        }
    }

    /// The segments that are sent instead of `segment` of its TCP. `snd_nxt` is the sender's, `in_flight` the number of segments
    /// that it has in flight.
    pub(crate) fn on_departure(&mut self, segment: &Segment, snd_nxt: SeqNum, in_flight: u32, out: &mut Vec<Segment>) {
        let mut segment = *segment;
        if segment.flags.has(Flags::SYN) {
            segment.options.sack_permitted &= self.lie != Misbehavior::Duplicate;
            self.acked = Some(segment.ack);
        }
        let (Some(acked), true) = (self.acked, segment.is_pure_ack() && segment.flags.has(Flags::ACK)) else {
            out.push(segment);
            return;
        };
        if self.lie.reports_duplicates()
            && let Some(duplicate) = self.duplicate.take()
        {
            segment.options.sack = preceded_by(duplicate, &segment.options.sack);
        }
        if let (Some(echo), Some(timestamps)) = (self.echo.take(), &mut segment.options.timestamps) {
            timestamps.ecr = echo;
        }
        match self.lie {
            Misbehavior::SackAhead => {
                let left = segment.ack.plus(1460);
                if left.before(snd_nxt) {
                    segment.options.sack = SackBlocks::EMPTY;
                    segment.options.sack.push(SackBlock { left, right: snd_nxt });
                }
            }
            Misbehavior::SackRandom => segment.options.sack = self.random_blocks(segment.ack, snd_nxt),
            Misbehavior::Divide => divide(acked, &segment, out),
            Misbehavior::Duplicate => {
                segment.options.sack = SackBlocks::EMPTY;
                out.extend(std::iter::repeat_n(segment, DUPLICATES));
            }
            Misbehavior::Stretch if self.since < (in_flight / 2).min(LONGEST_STRETCH) => return,
            _ => {}
        }
        self.since = 0;
        self.acked = Some(segment.ack);
        out.push(segment);
    }

    /// Up to three blocks of up to eight segments each between `ack` and `snd_nxt`.
    fn random_blocks(&mut self, ack: SeqNum, snd_nxt: SeqNum) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let room = snd_nxt.distance_from(ack) / 1448;
        for _ in 0..3 {
            if room > 10 {
                let left = 1 + self.random.below(room - 9);
                let right = left + 1 + self.random.below(8);
                blocks.push(SackBlock { left: ack.plus(left * 1448), right: ack.plus(right * 1448) });
            }
        }
        blocks
    }
}

/// The position of `seq`, near `highest`.
fn position(base: SeqNum, highest: u64, seq: SeqNum) -> u64 {
    let distance = seq.distance_from(base.plus(highest as u32)).cast_signed();
    highest.saturating_add_signed(i64::from(distance))
}

/// `duplicate`, then as many of `blocks` as there is room for beside timestamps.
fn preceded_by(duplicate: SackBlock, blocks: &SackBlocks) -> SackBlocks {
    let mut all = SackBlocks::EMPTY;
    all.push(duplicate);
    blocks.as_slice().iter().filter(|block| **block != duplicate).take(2).for_each(|block| all.push(*block));
    all
}

/// The ACKs that advance from `from` to what `segment` acknowledges, without the last.
fn divide(from: SeqNum, segment: &Segment, out: &mut Vec<Segment>) {
    let advance = segment.ack.distance_from(from);
    let parts = if from.before(segment.ack) { DIVISION.min(advance) } else { 0 };
    for part in 1..parts {
        let mut piece = Segment { ack: from.plus(advance / parts * part), ..*segment };
        piece.options.sack = SackBlocks::EMPTY;
        out.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::segment::Timestamps;

    use super::*;

    const SND_NXT: SeqNum = SeqNum(1 + 100 * 1000);

    fn liar(lie: Misbehavior) -> MisbehavingReceiver {
        let mut liar = MisbehavingReceiver::new(lie, 1, 0);
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        liar.on_arrival(&syn, SeqNum(1), &mut Vec::new());
        let syn_ack = Segment { ack: SeqNum(1), flags: Flags::SYN | Flags::ACK, ..Segment::default() };
        liar.on_departure(&syn_ack, SeqNum(1), 0, &mut Vec::new());
        liar
    }

    /// Segment `n` of 1000 bytes, from 0, sent at `time`.
    fn data(n: u32, time: u32) -> Segment {
        let mut segment = Segment { seq: SeqNum(1 + n * 1000), len: 1000, flags: Flags::ACK, ..Segment::default() };
        segment.options.timestamps = Some(Timestamps { val: time, ecr: 0 });
        segment
    }

    fn ack(n: u32) -> Segment {
        let mut segment = Segment { ack: SeqNum(1 + n * 1000), flags: Flags::ACK, ..Segment::default() };
        segment.options.timestamps = Some(Timestamps { val: 0, ecr: 77 });
        segment
    }

    fn arrive(liar: &mut MisbehavingReceiver, segment: &Segment) -> (u64, Vec<Segment>) {
        let mut arrivals = Vec::new();
        let new = liar.on_arrival(segment, SND_NXT, &mut arrivals);
        (new, arrivals)
    }

    fn depart(liar: &mut MisbehavingReceiver, segment: &Segment) -> Vec<Segment> {
        let mut out = Vec::new();
        liar.on_departure(segment, SND_NXT, 100, &mut out);
        out
    }

    #[test]
    fn bytes_are_counted_once() {
        let mut liar = liar(Misbehavior::Dsack);
        let new = [0, 3, 2, 2, 1, 0, 4].map(|n| arrive(&mut liar, &data(n, 0)).0);
        assert_eq!(new, [1000, 1000, 1000, 0, 1000, 0, 1000]);
    }

    #[test]
    fn a_retransmission_is_reported_as_a_duplicate() {
        let mut liar = liar(Misbehavior::Dsack);
        for n in [0, 2, 1] {
            arrive(&mut liar, &data(n, 0));
        }
        let block = SackBlock { left: SeqNum(1001), right: SeqNum(2001) };
        assert_eq!(depart(&mut liar, &ack(3))[0].options.sack.as_slice(), [block]);
        assert!(depart(&mut liar, &ack(3))[0].options.sack.is_empty());
    }

    #[test]
    fn a_retransmission_has_the_timestamp_of_its_original() {
        let mut liar = liar(Misbehavior::Timestamps);
        for (n, time) in [(0, 10), (2, 12), (3, 13), (1, 50)] {
            arrive(&mut liar, &data(n, time));
        }
        let echoed = depart(&mut liar, &ack(4))[0].options.timestamps.map(|timestamps| timestamps.ecr);
        assert_eq!(echoed, Some(12));
    }

    #[test]
    fn losses_are_concealed() {
        let mut liar = liar(Misbehavior::Conceal);
        arrive(&mut liar, &data(0, 0));
        let (new, arrivals) = arrive(&mut liar, &data(2, 0));
        assert_eq!(new, 1000);
        assert_eq!(arrivals.iter().map(|s| s.seq.0).collect::<Vec<_>>(), [1001, 2001]);
    }

    #[test]
    fn an_optimist_has_everything_that_was_sent() {
        let mut liar = liar(Misbehavior::Optimistic);
        let (new, arrivals) = arrive(&mut liar, &data(0, 0));
        let end = arrivals.iter().map(|s| s.seq.0 + u32::from(s.len)).max();
        assert_eq!((new, end), (1000, Some(SND_NXT.0)));
    }

    #[test]
    fn an_ack_is_divided() {
        let mut liar = liar(Misbehavior::Divide);
        let acks: Vec<u32> = depart(&mut liar, &ack(1)).iter().map(|s| s.ack.0).collect();
        assert_eq!((acks.len(), acks[0], acks[48], acks[49]), (50, 21, 981, 1001));
        assert_eq!(depart(&mut liar, &ack(1)).len(), 1);
    }

    #[test]
    fn acks_are_withheld_and_duplicated() {
        let mut stretching = liar(Misbehavior::Stretch);
        for n in 0..50 {
            let left = depart(&mut stretching, &ack(n)).len();
            assert_eq!(left, 0, "{n}");
            arrive(&mut stretching, &data(n, 0));
        }
        assert_eq!(depart(&mut stretching, &ack(50)).len(), 1);
        assert_eq!(depart(&mut liar(Misbehavior::Duplicate), &ack(1)).len(), 11);
    }
}
