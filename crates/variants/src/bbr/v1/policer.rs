//! Detection of token-bucket policers, which drop everything above their rate. Two intervals with heavy loss and the
//! same delivery rate indicate a policer; its rate is then used as the bandwidth for a while (the long-term bandwidth
//! of Linux; not in the draft).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

use super::bandwidth::Bandwidth;
use super::{Bbr, Mode, Sample};

/// The minimum length of an interval in rounds; the maximum is four times as long.
const INTERVAL_ROUNDS: u32 = 4;
/// An interval has heavy loss if lost bytes are at least 50/256 of delivered bytes.
const LOSS_THRESH: u64 = 50;
/// Two rates are equal if they differ by at most an eighth, or by at most 500 bytes per second.
const SAME_RATE: u64 = 8;
const SAME_RATE_LEAST: Rate = Rate::from_bits_per_second(4000);
/// For how many rounds the rate of the policer is used.
const BELIEVED_ROUNDS: u32 = 48;

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The rate of the last interval with heavy loss.
    rate: Rate,
    /// Two intervals had the same rate.
    is_believed: bool,
    rounds: u32,
    /// When the interval began, and the bytes delivered and lost until then.
    since: Instant,
    delivered: Bytes,
    lost: Bytes,
}

impl Policer {
    /// The rate of the policer, while it is used.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.is_believed.then_some(self.rate)
    }

    fn begin_interval(&mut self, bandwidth: &Bandwidth, lost: Bytes) {
        self.since = bandwidth.delivered_time;
        self.delivered = bandwidth.delivered;
        self.lost = lost;
        self.rounds = 0;
    }

    pub(super) fn reset(&mut self, now: Instant, bandwidth: &Bandwidth, lost: Bytes) {
        *self = Policer { since: now, ..Policer::default() };
        self.begin_interval(bandwidth, lost);
    }

    /// Called at the end of an interval with heavy loss.
    fn compare(&mut self, rate: Rate, bandwidth: &Bandwidth, lost: Bytes) {
        let difference = Rate::from_bits_per_second(rate.bits_per_second().abs_diff(self.rate.bits_per_second()));
        if self.rate > Rate::default()
            && (difference <= self.rate.scaled(1, SAME_RATE) || difference <= SAME_RATE_LEAST)
        {
            let sum = rate.bits_per_second() + self.rate.bits_per_second();
            self.rate = Rate::from_bits_per_second(sum / 2);
            self.is_believed = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin_interval(bandwidth, lost);
        }
    }

    /// The delivery rate of the interval, if the interval is long enough and had heavy loss.
    fn interval_rate(&self, bandwidth: &Bandwidth, lost: Bytes) -> Option<Rate> {
        let (lost, delivered) = (lost - self.lost, bandwidth.delivered - self.delivered);
        let time = bandwidth.delivered_time.since(self.since);
        let is_heavy = delivered > Bytes::ZERO && lost * 256 >= delivered * LOSS_THRESH;
        (is_heavy && time >= Duration::from_millis(1)).then(|| Rate::of(delivered, time))
    }
}

impl Bbr {
    pub(super) fn sample_policer(&mut self, cx: &Context<'_>, sample: &Sample) {
        let (round_start, lost) = (self.bandwidth.round_start, cx.board.lost_so_far());
        if self.policer.is_believed {
            if self.mode == Mode::ProbeBw && round_start {
                self.policer.rounds += 1;
                if self.policer.rounds >= BELIEVED_ROUNDS {
                    self.policer.reset(cx.now, &self.bandwidth, lost);
                    self.enter_probe_bw(cx);
                }
            }
            return;
        }
        let policer = &mut self.policer;
        if !policer.is_sampling {
            if sample.losses == Segments::ZERO {
                return;
            }
            policer.begin_interval(&self.bandwidth, lost);
            policer.is_sampling = true;
        }
        policer.rounds += u32::from(round_start);
        if sample.rate.is_app_limited || policer.rounds > 4 * INTERVAL_ROUNDS {
            policer.reset(cx.now, &self.bandwidth, lost);
        } else if policer.rounds >= INTERVAL_ROUNDS
            && sample.losses > Segments::ZERO
            && let Some(rate) = policer.interval_rate(&self.bandwidth, lost)
        {
            policer.compare(rate, &self.bandwidth, lost);
        }
    }
}
