//! What would have helped: variants on the path that a capture shows.

mod check;
mod recorder;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

pub use check::{Count, ReplayCheck, SenderCheck};
use check::{MIN_DRAWS, MORE_DRAWS, Measures};
use reknit_config::Location;
use reknit_sim::{MAX_SEEDS, PathSource, Plan};
use reknit_trace::{CapturePoint, DirectionReport, Incident, MeasuredPath};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{CompareOptions, Comparison, Error, Estimate, PreparedComparison, ScenarioOptions, named_variant};

/// The models of kernels, one of which sent most captured data.
const KERNELS: [&str; 2] = ["linux", "bbr1"];
/// The variants that are compared if none are named.
pub const REPLAYED: [&str; 5] = ["linux", "bbr", "reknit", "rack", "pr"];
/// A variant is named as the best if it is this much faster than the captured sender.
const FASTER: f64 = 1.05;
/// The longest time that is replayed if none is given.
const LONGEST: Duration = Duration::from_secs(60);
/// The share of the time without data above which the application has limited the transfer.
const MAX_IDLE: f64 = 0.1;
/// Beyond this share of the time, a replay shows nothing.
const MOSTLY_IDLE: f64 = 0.5;

/// What to replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayOptions {
    /// The variant that sent the captured data; none: the model of a kernel that reproduces the capture.
    pub sender: Option<String>,
    /// Names of the variants to compare.
    pub variants: Vec<String>,
    /// Files with the user's own variants.
    pub variant_files: Vec<PathBuf>,
    /// Runs of each variant, each with another draw of the recorded delays and losses.
    pub draws: u32,
    /// How much of the transfer is replayed, from its beginning; none: all, but at most a minute.
    pub duration: Option<Duration>,
    /// Whether the oracles run too.
    pub oracle: bool,
}

/// A replay with all names resolved.
#[derive(Clone, Debug)]
pub struct Replayer {
    /// The simulations of the comparison.
    pub experiment: PreparedComparison,
    /// Those of the senders that may have sent the captured data.
    senders: PreparedComparison,
    direction: DirectionReport,
    path: MeasuredPath,
    /// The user named the sender.
    is_given: bool,
    draws: u32,
    duration: Duration,
}

/// The result of a replay, as the JSON document of `docs/reference/json.md`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Replay {
    /// Version of the document's format: `reknit-replay-1`.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// The capture's name.
    pub file: String,
    /// The connection's number, as `tcp.stream` in Wireshark.
    pub stream: u32,
    /// The sender of the data: address and port.
    pub from: String,
    /// Its receiver.
    pub to: String,
    /// Where the packets were captured.
    pub captured_at: CapturePoint,
    /// Whether the replay reproduces what was captured.
    pub check: ReplayCheck,
    /// The path as measured.
    pub path: ReplayedPath,
    /// What may make the replay wrong.
    pub warnings: Vec<String>,
    /// Why a comparison would mislead, in one line; null if it does not: the replay reproduces the capture, and the rate of the
    /// bottleneck is known.
    pub refused: Option<String>,
    /// The best variant; null if the comparison would mislead.
    pub best: Option<Best>,
    /// The variants on that path, as in `reknit compare --json`. Each seed draws the recorded delays and losses anew. Null if it
    /// would mislead, unless it was asked for anyway.
    pub comparison: Option<Comparison>,
}

/// The variant with the highest goodput.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Best {
    /// Its name. The captured sender itself, if no variant is more than 5 % faster.
    pub variant: String,
    /// Its goodput.
    pub goodput_mbit_s: Estimate,
    /// Its goodput divided by that of the replayed sender.
    pub times: f64,
    /// What a sender reaches that knows each loss, Mbit/s; null without oracles.
    pub oracle_mbit_s: Option<f64>,
}

/// The path as measured.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReplayedPath {
    /// The rate of the bottleneck, Mbit/s.
    pub rate_mbit_s: f64,
    /// Whether that is only a lower bound, because nothing in the capture shows the rate of the link.
    pub rate_is_least: bool,
    /// Packets that its queue can hold.
    pub queue_packets: u32,
    /// Whether the queue overflowed in the capture. If not, its size is not known: it is assumed to hold the data of a
    /// round trip, and more if more was seen.
    pub queue_overflowed: bool,
    /// The shortest round trip, ms.
    pub round_trip_ms: f64,
    /// Packets of which the capture shows whether they arrived, retransmissions included.
    pub packets: u64,
    /// Packets that were late after the bottleneck.
    pub late: u64,
    /// Packets that were lost, but not in the queue of the bottleneck.
    pub lost: u64,
    /// Packets that the queue dropped.
    pub queue_drops: u64,
    /// The receiver's window, if it limited the transfer, bytes. It limits the replay too.
    pub receive_window_bytes: Option<u32>,
    /// The most packets in flight, if the sender's buffer limited them; the replay has the same limit. Null also if the capture
    /// was not made at the sender.
    pub most_in_flight_packets: Option<u64>,
    /// The share of the time in which no data was in flight; null if the capture does not show it.
    pub idle: Option<f64>,
}

impl ReplayOptions {
    /// Checks the names of variants, which needs no capture.
    ///
    /// # Errors
    /// Names the option, and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        let customs = named_variant::load(&self.variant_files)?;
        for sender in self.senders() {
            named_variant::find(&sender, &customs).map_err(|error| error.at(Location::argument("sender")))?;
        }
        for variant in &self.variants {
            named_variant::expand(variant, &customs).map_err(|error| error.at(Location::argument("variants")))?;
        }
        Ok(())
    }

    /// The variants that may stand for the captured sender.
    fn senders(&self) -> Vec<String> {
        match &self.sender {
            Some(sender) => vec![sender.trim().to_owned()],
            None => KERNELS.map(str::to_owned).to_vec(),
        }
    }
}

impl Replayer {
    /// The replay of `direction` on its `path`.
    ///
    /// # Errors
    /// If an option is invalid. Names it, and what is allowed.
    pub fn new(direction: &DirectionReport, path: MeasuredPath, options: &ReplayOptions) -> Result<Replayer, Error> {
        options.check()?;
        let mut variants = options.variants.clone();
        if variants.is_empty() {
            variants.extend(REPLAYED.map(str::to_owned));
        }
        let senders = options.senders();
        variants.extend(senders.iter().cloned());
        let duration = options.duration.unwrap_or(LONGEST).min(path.duration);
        let table = reknit_config::parse("the measured path", &path.toml())?;
        let scenario = ScenarioOptions {
            path: Some(PathSource::GivenInline(table)),
            duration: Some(duration),
            variant_files: options.variant_files.clone(),
            ..ScenarioOptions::of(Plan::bulk(1))
        };
        let is_given = senders.len() == 1;
        let most = (options.draws.max(MIN_DRAWS)).saturating_mul(MORE_DRAWS).min(MAX_SEEDS);
        let of_senders =
            CompareOptions { scenario: scenario.clone(), variants: senders, seeds: Some(most), oracle: false };
        let senders = PreparedComparison::new(&of_senders)?;
        let draws = options.draws;
        let options = CompareOptions { scenario, variants, seeds: Some(draws), oracle: options.oracle };
        let experiment = PreparedComparison::new(&options)?;
        Ok(Replayer { experiment, senders, direction: direction.clone(), path, is_given, draws, duration })
    }

    /// Whether the replay of the sender reproduces the capture; if it is not named, of which one. None if `stop` became true.
    /// `on_run` is called after each simulation.
    pub fn check(&self, stop: &AtomicBool, on_run: &(dyn Fn() + Sync)) -> Option<ReplayCheck> {
        let captured = Measures::captured(&self.direction, &self.path, self.duration);
        ReplayCheck::run(&self.senders, (&self.direction, &captured), (self.draws, self.is_given), stop, on_run)
    }

    /// Why no replay can reproduce the capture, in one line: the application paused for most of the time. None if it did not.
    pub fn idle(&self) -> Option<String> {
        let idle = self.path.idle.filter(|idle| *idle > MOSTLY_IDLE)?;
        Some(format!(
            "no data was in flight for {:.0} % of the time, because the application paused; a replay sends without pauses, so it \
             would show nothing about this transfer",
            100.0 * idle
        ))
    }

    /// Why a comparison would mislead, in one line; none if it does not.
    pub fn refusal(&self, check: &ReplayCheck) -> Option<String> {
        if !check.closest.holds {
            return Some(check.why());
        }
        let rate = self.path.rate_mbit_s;
        self.path.rate_is_least.then(|| {
            format!(
                "the capture shows only that the bottleneck carries at least {rate:.1} Mbit/s, and which variant is best depends \
                 on its rate: give it with --rate"
            )
        })
    }

    /// The result, with the comparison of the experiment, if it was made.
    pub fn report(&self, file: &str, check: ReplayCheck, comparison: Option<Comparison>) -> Replay {
        let (direction, path) = (&self.direction, &self.path);
        let refused = self.refusal(&check);
        let best = comparison.as_ref().filter(|_| refused.is_none());
        let best = best.and_then(|comparison| Best::of(comparison, &check.closest));
        Replay {
            format: "reknit-replay-1",
            reknit: crate::VERSION,
            file: file.to_owned(),
            stream: direction.stream,
            from: direction.from.clone(),
            to: direction.to.clone(),
            captured_at: direction.captured_at,
            check,
            refused,
            best,
            path: ReplayedPath {
                rate_mbit_s: path.rate_mbit_s,
                rate_is_least: path.rate_is_least,
                queue_packets: path.queue_packets,
                queue_overflowed: path.overflowed,
                round_trip_ms: path.round_trip.as_secs_f64() * 1e3,
                packets: path.packets,
                late: path.late,
                lost: path.lost,
                queue_drops: path.queue_drops,
                receive_window_bytes: path.receive_window,
                most_in_flight_packets: path.most_in_flight,
                idle: path.idle,
            },
            warnings: self.warnings(),
            comparison,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let (direction, path) = (&self.direction, &self.path);
        let mut warnings = Vec::new();
        if let Some(idle) = path.idle.filter(|idle| *idle > MAX_IDLE) {
            warnings.push(format!(
                "no data was in flight for {:.0} % of the time because the application paused; the replay does not model pauses",
                100.0 * idle
            ));
        }
        let closed = direction.incident(Incident::WindowClosed).map_or(0.0, |incident| incident.lasted_s);
        if closed > MAX_IDLE * path.duration.as_secs_f64() {
            warnings.push(format!(
                "the receiver's window was closed for {closed:.1} s: its application did not read, in the replay it always does"
            ));
        }
        if direction.options.mss.is_none() {
            warnings.push("the handshake was not captured: the replay begins with slow start".to_owned());
        }
        if path.duration > self.duration {
            let (whole, part) = (path.duration.as_secs_f64(), self.duration.as_secs_f64());
            warnings.push(format!("only the first {part:.0} s of {whole:.0} s are replayed"));
        }
        warnings
    }
}

impl Best {
    fn of(comparison: &Comparison, sender: &SenderCheck) -> Option<Best> {
        let rows = &comparison.variants;
        let mean = |variant: &str| rows.iter().find(|row| row.variant == variant).map(|row| row.goodput_mbit_s);
        let itself = mean(&sender.sender).unwrap_or(sender.replayed_mbit_s);
        let best = rows.iter().max_by(|a, b| a.goodput_mbit_s.mean.total_cmp(&b.goodput_mbit_s.mean))?;
        let times = best.goodput_mbit_s.mean / itself.mean.max(1e-9);
        let oracle_mbit_s = rows.iter().filter_map(|row| row.oracle_mbit_s).max_by(f64::total_cmp);
        Some(if times < FASTER {
            Best { variant: sender.sender.clone(), goodput_mbit_s: itself, times: 1.0, oracle_mbit_s }
        } else {
            Best { variant: best.variant.clone(), goodput_mbit_s: best.goodput_mbit_s, times, oracle_mbit_s }
        })
    }
}
