//! What would have helped: variants on the path that a capture shows.

use std::path::PathBuf;

use reknit_config::InputError;
use reknit_sim::{PathSource, Plan};
use reknit_trace::{DirectionReport, MeasuredPath, Place};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{CompareOptions, Comparison, Error, Estimate, Experiment, Row, ScenarioOptions, named_variant};

/// The models of kernels, one of which sent most captured data.
const KERNELS: [&str; 2] = ["linux", "bbr1"];
/// The variants that are compared if none are named.
pub const REPLAYED: [&str; 5] = ["linux", "bbr", "reknit", "rack", "pr"];
/// The replay of the captured sender must come this close to the captured throughput.
pub const CLOSE: f64 = 0.15;
/// The longest time that is replayed if none is given.
const LONGEST: Duration = Duration::from_secs(60);
/// The share of the time without data above which the application has limited the transfer.
const MOST_IDLE: f64 = 0.1;
/// Below this share of lost and retransmitted packets, differences between senders mean nothing.
const FEW: f64 = 0.002;

/// What to replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayOptions {
    /// The variant that sent the captured data; none: the kernel whose retransmissions fit best.
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
    /// The simulations.
    pub experiment: Experiment,
    direction: DirectionReport,
    path: MeasuredPath,
    sender: Option<String>,
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
    pub captured_at: Place,
    /// Whether the replay reproduces what was captured.
    pub check: ReplayCheck,
    /// The path as measured.
    pub path: ReplayedPath,
    /// What may make the replay wrong.
    pub warnings: Vec<String>,
    /// The variants on that path, as in `reknit compare --json`. Each seed draws the recorded delays and losses anew.
    pub comparison: Comparison,
}

/// Whether the replay of the captured sender reproduces the captured throughput.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReplayCheck {
    /// The variant that stands for that sender.
    pub sender: String,
    /// True if the user named it; else it is the kernel whose retransmissions fit best.
    pub is_given: bool,
    /// The captured throughput in the time that is replayed, Mbit/s.
    pub captured_mbit_s: f64,
    /// Its throughput in the replay.
    pub replayed_mbit_s: Estimate,
    /// True if they differ by at most 15 %.
    pub holds: bool,
}

/// The path as measured.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReplayedPath {
    /// The rate of the bottleneck, Mbit/s.
    pub rate_mbit_s: f64,
    /// Whether that is only a lower limit, because nothing in the capture shows the rate of the link.
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
    /// Packets that were late behind the bottleneck.
    pub late: u64,
    /// Packets that were lost, but not in the queue of the bottleneck.
    pub lost: u64,
    /// Packets that the queue dropped.
    pub queue_drops: u64,
    /// The share of the time in which no data was in flight; null if the capture does not show it.
    pub idle: Option<f64>,
}

impl Replayer {
    /// The replay of `direction` on its `path`.
    ///
    /// # Errors
    /// If an option is invalid. Names it, and what is allowed.
    pub fn new(direction: &DirectionReport, path: MeasuredPath, options: &ReplayOptions) -> Result<Replayer, Error> {
        let customs = named_variant::load(&options.variant_files)?;
        let mut variants = options.variants.clone();
        if variants.is_empty() {
            variants.extend(REPLAYED.map(str::to_owned));
        }
        let senders = match &options.sender {
            Some(sender) => vec![sender.trim().to_owned()],
            None => KERNELS.map(str::to_owned).to_vec(),
        };
        for sender in &senders {
            let refuse = |error: reknit_config::KeyError| InputError::new("--sender", error.to_string());
            named_variant::find(sender, &customs).map_err(refuse)?;
            variants.push(sender.clone());
        }
        let duration = options.duration.unwrap_or(LONGEST).min(path.duration);
        let table = reknit_config::parse("the measured path", &path.toml())?;
        let scenario = ScenarioOptions {
            path: Some(PathSource::GivenInline(table)),
            duration: Some(duration),
            variant_files: options.variant_files.clone(),
            ..ScenarioOptions::of(Plan::bulk(1))
        };
        let options = CompareOptions { scenario, variants, seeds: Some(options.draws), oracle: options.oracle };
        let sender = (senders.len() == 1).then(|| senders[0].clone());
        Ok(Replayer { experiment: Experiment::new(&options)?, direction: direction.clone(), path, sender, duration })
    }

    /// The result; `comparison` is that of the experiment. None if the runs of the sender did not finish.
    pub fn report(&self, file: &str, comparison: Comparison) -> Option<Replay> {
        let (direction, path) = (&self.direction, &self.path);
        let row = self.sender_of(&comparison)?;
        let captured_mbit_s = path.goodput_mbit_s(self.duration);
        let ratio = row.goodput_mbit_s.mean / captured_mbit_s.max(1e-9);
        let check = ReplayCheck {
            sender: row.variant.clone(),
            is_given: self.sender.is_some(),
            captured_mbit_s,
            replayed_mbit_s: row.goodput_mbit_s,
            holds: (ratio - 1.0).abs() <= CLOSE,
        };
        Some(Replay {
            format: "reknit-replay-1",
            reknit: crate::VERSION,
            file: file.to_owned(),
            stream: direction.stream,
            from: direction.from.clone(),
            to: direction.to.clone(),
            captured_at: direction.captured_at,
            check,
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
                idle: path.idle,
            },
            warnings: self.warnings(),
            comparison,
        })
    }

    /// The row of the variant that stands for the sender: the given one, or the kernel that retransmits most alike.
    fn sender_of<'a>(&self, comparison: &'a Comparison) -> Option<&'a Row> {
        let is_candidate = |row: &&Row| match &self.sender {
            Some(sender) => row.variant == *sender,
            None => KERNELS.contains(&row.variant.as_str()),
        };
        let candidates = comparison.variants.iter().filter(is_candidate);
        candidates.min_by(|a, b| self.unlike(a).total_cmp(&self.unlike(b)))
    }

    /// How much the retransmissions of a variant differ from the captured ones: in their share of all packets, and in the
    /// share of them that were spurious. The throughput does not count, because it is what the check is about.
    fn unlike(&self, row: &Row) -> f64 {
        let verdicts = &self.direction.verdicts;
        let retransmissions = (verdicts.lost + verdicts.spurious) as f64;
        let share = retransmissions / (self.direction.packets as f64).max(1.0);
        let spurious = verdicts.spurious as f64 / retransmissions.max(1.0);
        let theirs = row.share(|run| run.retransmissions.total, |run| run.segments_sent);
        let their_spurious = row.share(|run| run.spurious_retransmissions, |run| run.retransmissions.total);
        ((share + FEW) / (theirs + FEW)).ln().abs() + (spurious - their_spurious).abs()
    }

    fn warnings(&self) -> Vec<String> {
        let (direction, path) = (&self.direction, &self.path);
        let mut warnings = Vec::new();
        if let Some(idle) = path.idle.filter(|idle| *idle > MOST_IDLE) {
            warnings.push(format!(
                "no data was in flight {:.0} % of the time: the application paused, the replay does not",
                100.0 * idle
            ));
        }
        if path.rate_is_least {
            let rate = path.rate_mbit_s;
            warnings.push(format!(
                "nothing shows the rate of the bottleneck: {rate:.1} Mbit/s is a lower limit; give it with --rate"
            ));
        }
        if direction.options.mss.is_none() {
            warnings.push("the handshake is not captured: the replay begins with slow start".to_owned());
        }
        if path.duration > self.duration {
            let (whole, part) = (path.duration.as_secs_f64(), self.duration.as_secs_f64());
            warnings.push(format!("only the first {part:.0} s of {whole:.0} s are replayed"));
        }
        warnings
    }
}
