//! A rule in the syntax of Linux's netem: `delay 5ms reorder 25% 50%`, as in `tc qdisc add … netem`.
//!
//! Rules behave as in netem (tc-netem(8), `sch_netem.c` of Linux 6): a delayed packet is queued by the time at which it
//! leaves, so jitter reorders; `reorder` sends some packets at once, ahead of the delayed ones; `rate` comes after the
//! delay; `corrupt` flips a bit. Correlated numbers are a moving average of the last one and a new one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Rate, Segments};
use serde::Deserialize;

use super::{Departures, DropReason, Link, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, normal_quantile};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Netem {
    /// The rule.
    pub rule: String,
    #[serde(skip)]
    parsed: Rule,
}

/// A probability, and the correlation of successive decisions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Chance {
    probability: f64,
    correlation: f64,
}

/// The distribution of the jitter.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Shape {
    #[default]
    Uniform,
    Normal,
}

/// Loss with two states: the probabilities of a change to the bad and to the good state, and of loss in each.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bursts {
    to_bad: f64,
    to_good: f64,
    loss_bad: f64,
    loss_good: f64,
}

#[derive(Clone, PartialEq, Debug)]
struct Rule {
    limit: Segments,
    delay: Duration,
    jitter: Duration,
    delay_correlation: f64,
    shape: Shape,
    loss: Chance,
    bursts: Option<Bursts>,
    corrupt: Chance,
    duplicate: Chance,
    reorder: Chance,
    gap: u32,
    rate: Option<Rate>,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule {
            limit: Segments(1000),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: 0.0,
            shape: Shape::Uniform,
            loss: Chance::default(),
            bursts: None,
            corrupt: Chance::default(),
            duplicate: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            rate: None,
        }
    }
}

const KNOWN: &str =
    "limit, delay, distribution (uniform, normal), loss, loss gemodel, corrupt, duplicate, reorder, gap, rate";

/// The words of a rule.
struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    /// The next word, if `read` accepts it.
    fn take<T>(&mut self, read: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let value = self.0.peek().copied().and_then(read)?;
        self.0.next();
        Some(value)
    }

    fn need<T>(&mut self, after: &str, what: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, String> {
        self.take(read).ok_or_else(|| match self.0.peek() {
            Some(word) => format!("`{word}` after `{after}` is not {what}"),
            None => format!("`{after}` needs {what}"),
        })
    }

    fn chance(&mut self, after: &str) -> Result<Chance, String> {
        let probability = self.need(after, "a percentage, for example `1%`", percentage)?;
        Ok(Chance { probability, correlation: self.take(percentage).unwrap_or(0.0) })
    }
}

/// `25%`; tc also accepts a fraction without the sign.
fn percentage(word: &str) -> Option<f64> {
    let value = match word.strip_suffix('%') {
        Some(number) => number.parse::<f64>().ok()? / 100.0,
        None => word.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

/// `5ms`, `100us`, `1s`; a number without a unit is microseconds, as in tc.
fn time(word: &str) -> Option<Duration> {
    if let Ok(us) = word.parse::<f64>() {
        return (us >= 0.0).then(|| Duration::from_secs_f64(us / 1e6));
    }
    let lower = word.to_lowercase();
    let digits = lower.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = lower.split_at(digits);
    let scale = match unit {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "us" | "usec" | "usecs" => 1e-6,
        "ns" | "nsec" | "nsecs" => 1e-9,
        _ => return None,
    };
    Some(Duration::from_secs_f64(number.parse::<f64>().ok()? * scale))
}

/// `10mbit`, `512kbit`, `1gbit`; a number without a unit is bit/s.
fn rate(word: &str) -> Option<Rate> {
    let lower = word.to_lowercase();
    let digits = lower.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let scale = match unit {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "bps" => 8.0,
        "kbps" => 8e3,
        "mbps" => 8e6,
        _ => return None,
    };
    let bits = number.parse::<f64>().ok()? * scale;
    #[expect(clippy::cast_sign_loss, reason = "checked")]
    (1.0..1e15).contains(&bits).then(|| Rate::from_bits_per_second(bits as u64))
}

impl Rule {
    fn parse(text: &str) -> Result<Rule, String> {
        let mut rule = Rule::default();
        let mut words = Words(text.split_whitespace().peekable());
        words.take(|word| (word == "netem").then_some(()));
        while let Some(word) = words.0.next() {
            rule.clause(word, &mut words)?;
        }
        if rule.reorder.probability > 0.0 {
            if rule.delay.is_zero() {
                return Err("`reorder` needs a `delay`: the packets that it selects are sent without delay".to_owned());
            }
            rule.gap = rule.gap.max(1);
        } else if rule.gap > 0 {
            return Err("`gap` needs `reorder`: it says which packets can be selected".to_owned());
        }
        Ok(rule)
    }

    fn clause(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), String> {
        match word {
            "limit" => self.limit = Segments(words.need(word, "a number of packets", |w| w.parse().ok())?),
            "delay" | "latency" => {
                self.delay = words.need(word, "a time, for example `5ms`", time)?;
                self.jitter = words.take(time).unwrap_or(Duration::ZERO);
                self.delay_correlation = words.take(percentage).unwrap_or(0.0);
            }
            "distribution" => {
                self.shape = words.need(word, "`uniform` or `normal` (others are not supported)", |w| match w {
                    "uniform" => Some(Shape::Uniform),
                    "normal" => Some(Shape::Normal),
                    _ => None,
                })?;
            }
            "loss" | "drop" if words.take(|w| (w == "gemodel").then_some(())).is_some() => {
                let to_bad = words.need("gemodel", "a percentage", percentage)?;
                let to_good = words.take(percentage).unwrap_or(1.0 - to_bad);
                let loss_bad = words.take(percentage).unwrap_or(1.0);
                let loss_good = words.take(percentage).unwrap_or(0.0);
                self.bursts = Some(Bursts { to_bad, to_good, loss_bad, loss_good });
            }
            "loss" | "drop" => {
                words.take(|w| (w == "random").then_some(()));
                self.loss = words.chance(word)?;
            }
            "corrupt" => self.corrupt = words.chance(word)?,
            "duplicate" => self.duplicate = words.chance(word)?,
            "reorder" => self.reorder = words.chance(word)?,
            "gap" => self.gap = words.need(word, "a number of packets", |w| w.parse().ok())?,
            "rate" => self.rate = Some(words.need(word, "a rate, for example `10mbit`", rate)?),
            "slot" | "ecn" | "seed" => return Err(format!("`{word}` is not supported; supported are {KNOWN}")),
            _ => return Err(format!("unknown word `{word}`; supported are {KNOWN}")),
        }
        Ok(())
    }
}

impl fmt::Display for Netem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "netem {}", self.rule.trim())
    }
}

impl Parameters for Netem {
    type Running = Queue;

    fn checked(mut self) -> Result<Netem, KeyError> {
        self.parsed = Rule::parse(&self.rule).map_err(|message| KeyError::new("rule", message))?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Queue {
        let correlated = |process| Correlated { stream: id.stream(process), last: 0.0 };
        Queue {
            rule: self.parsed.clone(),
            delays: correlated(0),
            losses: correlated(1),
            corrupts: correlated(2),
            copies: correlated(3),
            orders: correlated(4),
            bits: id.stream(5),
            bad: false,
            counter: id.position(self.parsed.gap),
            last_exit: Instant::ZERO,
            queued: BinaryHeap::new(),
        }
    }

    /// Only delay, rate, loss and corruption.
    fn in_order(&self) -> Option<Spec> {
        let Rule { delay, rate, loss, corrupt, .. } = &self.parsed;
        if loss.probability > 0.0 || corrupt.probability > 0.0 || self.parsed.bursts.is_some() {
            let plain = Rule {
                jitter: Duration::ZERO,
                duplicate: Chance::default(),
                reorder: Chance::default(),
                gap: 0,
                ..self.parsed.clone()
            };
            return Some(Spec::Netem(Netem { parsed: plain, ..self.clone() }));
        }
        Some(Spec::Link(Link { rate: *rate, delay: *delay, ..Link::default() }))
    }

    fn rate(&self) -> Option<Rate> {
        self.parsed.rate
    }
}

/// Correlated uniform numbers in [0, 1).
#[derive(Debug)]
struct Correlated {
    stream: Stream,
    last: f64,
}

impl Correlated {
    fn draw(&mut self, correlation: f64) -> f64 {
        let fresh = self.stream.uniform();
        if correlation <= 0.0 {
            return fresh;
        }
        self.last = fresh * (1.0 - correlation) + self.last * correlation;
        self.last
    }

    fn hits(&mut self, chance: Chance) -> bool {
        chance.probability > 0.0 && self.draw(chance.correlation) < chance.probability
    }
}

#[derive(Debug)]
pub(crate) struct Queue {
    rule: Rule,
    delays: Correlated,
    losses: Correlated,
    corrupts: Correlated,
    bits: Stream,
    copies: Correlated,
    orders: Correlated,
    /// The state of `loss gemodel`.
    bad: bool,
    /// Packets delayed since the last one that was sent at once.
    counter: u32,
    /// When the last packet of the queue leaves.
    last_exit: Instant,
    /// When the packets in the queue leave, for the limit.
    queued: BinaryHeap<Reverse<Instant>>,
}

impl Queue {
    fn is_lost(&mut self) -> bool {
        let Some(Bursts { to_bad, to_good, loss_bad, loss_good }) = self.rule.bursts else {
            return self.losses.hits(self.rule.loss);
        };
        let leaves = if self.bad { to_good } else { to_bad };
        self.bad ^= self.losses.draw(0.0) < leaves;
        self.losses.draw(0.0) < if self.bad { loss_bad } else { loss_good }
    }

    /// The bit to flip, if any.
    fn corrupt(&mut self) -> Option<u64> {
        self.corrupts.hits(self.rule.corrupt).then(|| self.bits.bits())
    }

    /// The delay with its jitter, at least zero.
    fn delay(&mut self) -> Duration {
        let Rule { delay, jitter, delay_correlation, shape, .. } = self.rule;
        if jitter.is_zero() {
            return delay;
        }
        let uniform = self.delays.draw(delay_correlation);
        let deviation = match shape {
            Shape::Uniform => 2.0 * uniform - 1.0,
            Shape::Normal => normal_quantile(uniform),
        };
        Duration::from_secs_f64(delay.as_secs_f64() + jitter.as_secs_f64() * deviation)
    }

    /// When a packet that arrives at `at` leaves.
    fn exit(&mut self, at: Instant, item: StagePacket) -> Instant {
        let gap = self.rule.gap;
        if gap > 0 && self.counter >= gap - 1 && self.orders.hits(self.rule.reorder) {
            self.counter = 0;
            return at;
        }
        self.counter = self.counter.saturating_add(1);
        let mut exit = at + self.delay();
        if let Some(rate) = self.rule.rate {
            exit = exit.max(self.last_exit) + rate.time_for(item.size);
        }
        self.last_exit = self.last_exit.max(exit);
        exit
    }

    fn is_full(&mut self, at: Instant) -> bool {
        while self.queued.peek().is_some_and(|Reverse(exit)| *exit <= at) {
            self.queued.pop();
        }
        self.queued.len() >= self.rule.limit.0 as usize
    }
}

impl Stage for Queue {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        let copied = self.copies.hits(self.rule.duplicate);
        let lost = self.is_lost();
        if lost && !copied {
            return StageOutcome::Drop(DropReason::Lost);
        }
        if self.is_full(at) {
            return StageOutcome::Drop(DropReason::QueueFull);
        }
        let exit = self.exit(at, item);
        self.queued.push(Reverse(exit));
        let corrupt = self.corrupt();
        if (!copied || lost) && corrupt.is_none() {
            return StageOutcome::Departure(exit);
        }
        exits.push(exit, item);
        if let Some(bit) = corrupt {
            exits.damage(bit);
        }
        if copied && !lost {
            let second = self.exit(at, item);
            self.queued.push(Reverse(second));
            exits.push_copy(second, item);
            if let Some(bit) = self.corrupt() {
                exits.damage(bit);
            }
        }
        StageOutcome::Listed
    }

    fn reorders(&self) -> bool {
        self.rule.gap > 0 || !self.rule.jitter.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Rule::parse(text).unwrap_err()
    }

    #[test]
    fn the_rules_of_bug_reports_can_be_read() {
        let rule = Rule::parse("delay 5ms reorder 25% 50%").unwrap();
        assert_eq!((rule.delay, rule.gap), (Duration::from_millis(5), 1));
        assert_eq!(rule.reorder, Chance { probability: 0.25, correlation: 0.5 });
        let rule = Rule::parse("netem delay 10ms 1ms 10% distribution normal loss 0.5% rate 100mbit limit 50").unwrap();
        assert_eq!((rule.jitter, rule.shape), (Duration::from_millis(1), Shape::Normal));
        assert_eq!(rule.rate, Some(Rate::from_bits_per_second(100_000_000)));
        let bursts = Rule::parse("loss gemodel 1% 10%").unwrap().bursts.unwrap();
        assert_eq!(bursts, Bursts { to_bad: 0.01, to_good: 0.1, loss_bad: 1.0, loss_good: 0.0 });
    }

    #[test]
    fn unsupported_words_are_named() {
        assert_eq!(refused("delay soon"), "`soon` after `delay` is not a time, for example `5ms`");
        assert_eq!(refused("loss"), "`loss` needs a percentage, for example `1%`");
        assert!(refused("slot 1ms").starts_with("`slot` is not supported"));
        assert!(refused("delay 1ms 1ms distribution pareto").contains("`uniform` or `normal`"));
        assert!(refused("reorder 25%").starts_with("`reorder` needs a `delay`"));
        assert!(refused("dely 1ms").starts_with("unknown word `dely`"));
    }
}
