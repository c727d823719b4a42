//! Which reductions may be undone.
//!
//! The evidence that a reduction was spurious (DSACKs, echoed timestamps) comes from the receiver. A receiver that
//! lies can have every reduction undone, and then crowds out all other flows. `bounded` restores a window only
//! while that does no harm.
//!
//! **Rules of `bounded`.**
//! - *Queue.* A reduction is final if it is made while there is a standing queue: all RTTs of the last round trip
//!   exceed the smallest RTT by more than `queue` percent, and the bytes delivered in this round trip exceed by as
//!   much what the path can hold, which is the highest delivery rate times the smallest RTT. Then the queue is a
//!   more likely cause of a loss than reordering is, and a smaller window still keeps the path busy. If the RTT
//!   rises although the window was no larger than before, the path has become longer. The same is true if the
//!   delivery rate has fallen below three quarters of the highest, because a link with a queue is busy. There is no
//!   standing queue while the delivery rate still rises by a quarter in each round trip. The smallest RTT is that
//!   of the last one to two minutes, and the highest rate that of the last 8 to 16 round trips.
//! - *Budget.* Undos are consecutive if there are at most `rounds` round trips between them. Undos in the same
//!   round trip count as one. After `in_a_row` consecutive undos, the next reduction is final: if losses continue,
//!   the window was too large.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Trigger};
use reknit_tcp::seams::{Plugin, UndoLimit};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// How long the smallest RTT is remembered, at least.
const MEMORY: Duration = Duration::from_secs(60);
/// How many round trips the highest delivery rate is remembered, at least.
const ROUNDS: u8 = 8;

/// No limit, as in the papers. No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlimitedConfig {}

impl Algorithm<dyn UndoLimit> for UnlimitedConfig {
    fn build(&self) -> Box<dyn UndoLimit> {
        Box::new(NoLimit)
    }
}

#[derive(Clone, Debug)]
struct NoLimit;

impl Plugin for NoLimit {}

impl UndoLimit for NoLimit {
    fn may_undo(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        true
    }
}

/// Limits for receivers that may lie.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BoundedConfig {
    /// A reduction is final if there is a standing queue: all RTTs of the last round trip exceed the minimum RTT by more than
    /// this percentage, and the bytes delivered in it exceed the bandwidth-delay product by as much.
    #[schemars(range(min = 0, max = 10000))]
    pub queue: u32,
    /// Number of consecutive undos after which the next reduction is final.
    #[schemars(range(min = 1, max = 1000))]
    pub in_a_row: u32,
    /// Undos are consecutive if there are at most this many round trips between them.
    #[schemars(range(min = 1, max = 1000))]
    pub rounds: u32,
}

impl Default for BoundedConfig {
    fn default() -> BoundedConfig {
        BoundedConfig { queue: 25, in_a_row: 3, rounds: 4 }
    }
}

impl Algorithm<dyn UndoLimit> for BoundedConfig {
    fn build(&self) -> Box<dyn UndoLimit> {
        Box::new(Bounds {
            config: self.clone(),
            smallest: [Duration::MAX; 2],
            since: Instant::ZERO,
            rounds: [Duration::MAX; 2],
            round_end: Offset::SYN,
            in_a_row: 0,
            calm_rounds: u32::MAX,
            deliveries: Deliveries::default(),
        })
    }
}

#[derive(Clone, Debug)]
struct Bounds {
    config: BoundedConfig,
    /// The smallest RTTs of the last minute that is over, and of the current one.
    smallest: [Duration; 2],
    /// When the current minute began.
    since: Instant,
    /// The smallest RTTs of the last round trip, and of the current one.
    rounds: [Duration; 2],
    /// The current round trip ends when this is acknowledged.
    round_end: Offset,
    /// Consecutive undos so far.
    in_a_row: u32,
    /// Round trips since the last of them.
    calm_rounds: u32,
    deliveries: Deliveries,
}

/// What was delivered in the last round trips.
#[derive(Clone, Debug, Default)]
struct Deliveries {
    /// When the current round trip began, and the bytes delivered since.
    began: Instant,
    delivered: Bytes,
    /// The bytes delivered in the last complete round trip.
    last: Bytes,
    /// The highest rates of the last eight round trips that are over, and of the current ones.
    best: [Rate; 2],
    /// How many the current ones are.
    rounds: u8,
    /// The last rate exceeded all before it by a quarter.
    rises: bool,
    /// It was less than three quarters of the highest.
    fell: bool,
}

impl Deliveries {
    fn best(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    fn end_round(&mut self, now: Instant) {
        let rate = Rate::of(self.delivered, now.since(self.began));
        self.rises = rate > self.best().scaled(5, 4);
        self.fell = rate < self.best().scaled(3, 4);
        if self.rounds == ROUNDS {
            self.best = [self.best[1], Rate::default()];
            self.rounds = 0;
        }
        self.best[1] = self.best[1].max(rate);
        self.rounds += 1;
        self.last = self.delivered;
        (self.began, self.delivered) = (now, Bytes::ZERO);
    }

    /// True if a round trip of this length explains as many bytes in flight as there were, or if the path is longer.
    fn fit(&self, rtt: Duration) -> bool {
        self.rises || self.fell || self.last <= self.best().bytes_in(rtt)
    }
}

impl Bounds {
    fn measure(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if cx.now.since(self.since) > MEMORY {
            self.smallest = [self.smallest[1], Duration::MAX];
            self.since = cx.now;
        }
        if cx.snd.snd_una >= self.round_end && ack.advances() {
            self.rounds = [self.rounds[1], Duration::MAX];
            self.round_end = cx.snd.snd_nxt;
            self.calm_rounds = self.calm_rounds.saturating_add(1);
            self.deliveries.end_round(cx.now);
        }
        self.deliveries.delivered += ack.delivered;
        let rtt = ack.rtt.unwrap_or(Duration::MAX);
        self.smallest[1] = self.smallest[1].min(rtt);
        self.rounds[1] = self.rounds[1].min(rtt);
    }

    /// Rule *Queue*.
    fn queue_stands(&self) -> bool {
        let base = self.smallest[0].min(self.smallest[1]);
        let least = self.rounds[0].min(self.rounds[1]);
        if least == Duration::MAX {
            return false;
        }
        let longest = base + base * u64::from(self.config.queue) / 100;
        least > longest && !self.deliveries.fit(longest)
    }

    /// Rule *Budget*.
    fn is_spent(&self) -> bool {
        self.in_a_row >= self.config.in_a_row && self.calm_rounds <= self.config.rounds
    }
}

impl UndoLimit for Bounds {
    fn may_undo(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.measure(cx, ack);
        !self.queue_stands() && !self.is_spent()
    }

    fn on_reduced(&mut self, _cx: &Context<'_>, _trigger: Trigger) {
        if self.is_spent() {
            self.in_a_row = 0;
        }
    }
}

impl Plugin for Bounds {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        if let RecoveryEvent::Spurious(_) = event {
            self.in_a_row = match self.calm_rounds {
                0 => self.in_a_row, // in the same round trip
                rounds if rounds <= self.config.rounds => self.in_a_row + 1,
                _ => 1,
            };
            self.calm_rounds = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::{SendState, Spurious};
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_units::Bytes;

    use super::*;
    use crate::base::given;

    /// A connection with a round trip per call.
    struct Path {
        limit: Box<dyn UndoLimit>,
        snd: SendState,
        board: Scoreboard,
        config: reknit_tcp::Config,
        now: Instant,
    }

    impl Path {
        fn new() -> Path {
            let snd = SendState { snd_una: Offset(1), snd_nxt: Offset(1001), ..given::state() };
            let limit = Algorithm::<dyn UndoLimit>::build(&BoundedConfig::default());
            Path { limit, snd, board: Scoreboard::default(), config: reknit_tcp::Config::default(), now: Instant::ZERO }
        }

        /// A round trip with these RTTs in milliseconds, and always the same window. True if a reduction may be undone at
        /// its end.
        fn round(&mut self, rtts: &[u64]) -> bool {
            self.deliver(1000, rtts)
        }

        /// A round trip that delivers so many bytes.
        fn deliver(&mut self, bytes: u64, rtts: &[u64]) -> bool {
            let (una, nxt) = (self.snd.snd_una, self.snd.snd_nxt);
            self.snd.snd_una = nxt;
            self.snd.snd_nxt = nxt + Bytes(1000);
            let mut may = false;
            for (i, rtt) in rtts.iter().enumerate() {
                self.now = self.now + Duration::from_millis(if i == 0 { *rtt } else { 1 });
                let una_before = if i == 0 { una } else { nxt };
                let (delivered, rtt) = (Bytes(bytes / rtts.len() as u64), Some(Duration::from_millis(*rtt)));
                let ack = AckFacts { una_before, ack: nxt, rtt, delivered, ..given::ack() };
                let cx = Context { now: self.now, config: &self.config, snd: &self.snd, board: &self.board };
                may = self.limit.may_undo(&cx, &ack);
            }
            may
        }

        fn undo(&mut self) {
            let cx = Context { now: self.now, config: &self.config, snd: &self.snd, board: &self.board };
            self.limit.on_recovery_event(&cx, RecoveryEvent::Spurious(Spurious::FastRetransmit));
        }

        fn reduce(&mut self) {
            let cx = Context { now: self.now, config: &self.config, snd: &self.snd, board: &self.board };
            self.limit.on_reduced(&cx, Trigger::FastRetransmit);
        }
    }

    #[test]
    fn a_reduction_under_a_standing_queue_is_final() {
        let mut path = Path::new();
        assert!(path.deliver(1000, &[40, 41]));
        assert!(path.deliver(1500, &[40, 41]));
        assert!(path.deliver(2000, &[60, 80]), "the round before had no queue");
        assert!(!path.deliver(2000, &[80, 90]));
        assert!(path.deliver(2000, &[80, 45]), "a single late segment is no queue");
    }

    #[test]
    fn a_longer_path_is_no_queue() {
        let mut path = Path::new();
        for rtt in [40, 40, 60, 60, 60] {
            assert!(path.deliver(1000, &[rtt, rtt]), "{rtt} ms");
        }
    }

    #[test]
    fn no_queue_stands_while_the_rate_rises() {
        let mut path = Path::new();
        for (bytes, rtt) in [(1000, 40), (2000, 40), (4000, 60), (8000, 80)] {
            assert!(path.deliver(bytes, &[rtt, rtt]), "{bytes} bytes");
        }
    }

    #[test]
    fn the_smallest_rtt_is_forgotten_after_two_minutes() {
        let mut path = Path::new();
        path.round(&[40]);
        for _ in 0..3 {
            path.round(&[80]);
            path.now = path.now + Duration::from_secs(61);
        }
        assert!(path.round(&[80]));
    }

    #[test]
    fn a_path_with_a_lower_rate_and_a_longer_round_trip_is_longer() {
        let mut path = Path::new();
        for (bytes, rtt) in [(1000, 40), (3000, 40), (3000, 40), (4000, 60), (4000, 80), (6500, 80)] {
            assert!(path.deliver(bytes, &[rtt, rtt]), "{bytes} bytes in {rtt} ms");
        }
        assert!(!path.deliver(6500, &[80, 80]), "at the highest rate, the link is busy");
    }

    #[test]
    fn undos_in_the_same_round_trip_count_as_one() {
        let mut path = Path::new();
        path.round(&[40]);
        (0..5).for_each(|_| path.undo());
        assert!(path.round(&[40]));
    }

    #[test]
    fn undos_in_a_row_have_a_budget() {
        let mut path = Path::new();
        for _ in 0..3 {
            assert!(path.round(&[40]));
            path.reduce();
            path.undo();
        }
        assert!(!path.round(&[40]));
        path.reduce();
        assert!(path.round(&[40]), "one final reduction is enough");
    }

    #[test]
    fn undos_far_apart_have_none() {
        let mut path = Path::new();
        for _ in 0..9 {
            for _ in 0..6 {
                assert!(path.round(&[40]));
            }
            path.undo();
        }
    }
}
