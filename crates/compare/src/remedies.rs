//! What would make a captured transfer faster: changes of the sender and of the network, tried on the path that the capture
//! shows.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reknit_sim::{PathSource, Plan};
use reknit_trace::{
    Analysis, Analyzer, Change, DirectionReport, Frames, MeasuredPath, Options, ReadAhead, Remedy, Replayed, Transit,
};
use reknit_units::{Duration, Rate};
use toml::Table;

use crate::reproduction::TO_ADVISE;
use crate::{CompareOptions, Error, PreparedComparison, Row, ScenarioOptions};

/// Packets of the transfer that are looked at.
const MAX_PACKETS: usize = 200_000;
/// The longest time that is replayed.
const LONGEST: Duration = Duration::from_secs(10);
/// Packets that all simulations together may send, so that they take about a second, and the simulations.
const BUDGET: f64 = 1.2e6;
const RUNS: f64 = 20.0;
/// A rate that is only a lower limit may be so many times as high.
const ROOM: f64 = 4.0;
/// Draws of the measured delays and losses.
const DRAWS: u32 = 3;
/// Few senders count duplicate ACKs today, so such a model must be closer than the others by this much.
const UNLIKELY: f64 = 0.3;
/// The degrees of reordering that Linux has by default, and that may be set.
const USUAL_REORDERING: u64 = 300;
const MAX_REORDERING: u64 = 1000;

/// A model of the sender that was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sender {
    Cubic,
    Reno,
    Bbr,
    /// It counts three duplicate ACKs.
    Counting,
}

impl Sender {
    const ALL: [Sender; 4] = [Sender::Cubic, Sender::Reno, Sender::Bbr, Sender::Counting];

    fn variant(self) -> &'static str {
        match self {
            Sender::Cubic => "linux",
            Sender::Reno => "linux-reno",
            Sender::Bbr => "bbr1",
            Sender::Counting => "sack",
        }
    }

    /// What it is to the captured sender, if that is `captured`.
    fn change(self, captured: Sender) -> Option<Change> {
        match (captured, self) {
            (Sender::Counting, Sender::Cubic) => Some(Change::Rack),
            (Sender::Bbr | Sender::Reno, Sender::Cubic) => Some(Change::Cubic),
            (Sender::Cubic | Sender::Reno | Sender::Counting, Sender::Bbr) => Some(Change::Bbr),
            (Sender::Cubic | Sender::Bbr, Sender::Reno) => Some(Change::Reno),
            _ => None,
        }
    }
}

/// Replaces the advice about the worst connection by what a replay of its path shows, if that reproduces the capture. The
/// capture is read once more; `options` are those of the analysis.
///
/// # Errors
/// If the capture cannot be read again.
pub fn advise(analysis: &mut Analysis, capture: &Path, options: &Options) -> Result<(), String> {
    let Some(worst) = analysis.directions.first_mut().filter(|worst| worst.may_be_faster()) else { return Ok(()) };
    let transits = transits(worst, capture, options)?;
    if let Some(replayed) = replay(worst, &transits) {
        worst.advise(replayed);
    }
    Ok(())
}

/// Opens a capture, to be read from its beginning to its end.
///
/// # Errors
/// The file, and what is wrong with it.
pub fn open_capture(capture: &Path) -> Result<ReadAhead, String> {
    let opened = reknit_config::open(capture);
    let reader = opened.and_then(|file| ReadAhead::new(file).map_err(|error| error.to_string()));
    reader.map_err(|error| format!("{}: {error}", capture.display()))
}

/// When the first packets of `direction` were sent, and when they arrived.
fn transits(direction: &DirectionReport, capture: &Path, options: &Options) -> Result<Vec<Transit>, String> {
    let refuse = |error: &dyn std::fmt::Display| format!("{}: {error}", capture.display());
    let mut frames = Frames::new(open_capture(capture)?).map_err(|error| refuse(&error))?;
    let mut analyzer = Analyzer::again(Options { transits: true, ..*options }, direction);
    while let Some(frame) = frames.next_frame() {
        analyzer.on_frame(&frame, &mut |_| {});
        if analyzer.transits().of(direction).len() >= MAX_PACKETS {
            break;
        }
    }
    Ok(analyzer.finish_with_transits(&mut |_| {}).1.of(direction).to_vec())
}

/// None if the path cannot be measured, or no model of the sender reproduces the capture. If the rate of the bottleneck may be
/// higher than the capture shows, a path with a higher rate comes first: if the sender is as slow there, the rate does not limit
/// it, and another sender may be faster.
fn replay(direction: &DirectionReport, transits: &[Transit]) -> Option<Replayed> {
    let path = MeasuredPath::new(direction, transits, None).ok()?;
    #[expect(clippy::cast_sign_loss, reason = "a rate is not negative")]
    let higher = Rate::from_bits_per_second((path.rate_mbit_s * 1e6 * ROOM) as u64);
    let faster = || MeasuredPath::new(direction, transits, Some(higher)).ok();
    let mut faster = if path.rate_is_least { faster() } else { None };
    if let Some(faster) = &mut faster {
        faster.rate_is_least = true;
    }
    faster.into_iter().chain([path]).find_map(|path| replay_on(&path, direction))
}

fn replay_on(path: &MeasuredPath, direction: &DirectionReport) -> Option<Replayed> {
    let packets_per_s = path.rate_mbit_s * 1e6 / 8.0 / (direction.segment() + 52) as f64;
    let affordable = Duration::from_secs_f64(BUDGET / RUNS / packets_per_s.max(1.0));
    let duration = path.duration.min(LONGEST).min(affordable);
    let captured = path.goodput_mbit_s(duration);
    let senders = Sender::ALL.map(Sender::variant);
    let rows = run(path, duration, &senders, None).ok()?;
    let unlikely = |sender| if sender == Sender::Counting { UNLIKELY } else { 0.0 };
    let distance = |(sender, row): &(Sender, &Row)| distance(direction, captured, row) + unlikely(*sender);
    let candidates = Sender::ALL.into_iter().zip(&rows);
    let (sender, row) = candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    if !TO_ADVISE.reproduces(range(row), captured) {
        return None;
    }
    let others = Sender::ALL.into_iter().zip(&rows);
    let mut remedies: Vec<Remedy> =
        others.filter_map(|(other, row)| Some(remedy(other.change(sender)?, row))).collect();
    let mut try_on = |path: &MeasuredPath, change: Change, variant: &str, own: Option<Table>| {
        let rows = run(path, duration, &[variant], own).unwrap_or_default();
        remedies.extend(rows.first().map(|row| remedy(change, row)));
    };
    if path.late > 0 {
        try_on(&path.in_order(), Change::InOrder, sender.variant(), None);
    }
    if path.lost > 0 {
        try_on(&path.without_losses(), Change::NoLoss, sender.variant(), None);
    }
    let degree = direction.reordering.extent_p99.unwrap_or(0) * 3 / 2;
    if degree > USUAL_REORDERING && sender != Sender::Counting {
        let degree = degree.min(MAX_REORDERING);
        try_on(path, Change::MaxReordering(degree), PATIENT, Some(patient(sender, degree)));
    }
    Some(Replayed {
        sender: sender.variant().to_owned(),
        goodput_mbit_s: row.goodput_mbit_s.mean,
        captured_mbit_s: captured,
        rate_is_least: path.rate_is_least,
        remedies,
    })
}

fn remedy(change: Change, row: &Row) -> Remedy {
    let goodput_mbit_s = row.goodput_mbit_s.mean;
    Remedy { change, goodput_mbit_s, least_mbit_s: draws(row).fold(f64::MAX, f64::min) }
}

fn draws(row: &Row) -> impl Iterator<Item = f64> {
    row.runs.iter().map(|run| run.goodput_mbit_s)
}

/// The lowest and the highest goodput of the draws, Mbit/s.
fn range(row: &Row) -> (f64, f64) {
    draws(row).fold((f64::MAX, 0.0), |(least, most), draw| (draw.min(least), draw.max(most)))
}

/// How much a model differs from the captured sender: in its goodput, and in the share of packets that it sends again.
fn distance(direction: &DirectionReport, captured_mbit_s: f64, row: &Row) -> f64 {
    /// Below this share of retransmitted packets, differences mean nothing.
    const FEW: f64 = 0.002;
    let verdicts = &direction.verdicts;
    let again = (verdicts.lost + verdicts.spurious) as f64 / (direction.packets as f64).max(1.0);
    let theirs = row.share(|run| run.retransmissions.total, |run| run.segments_sent);
    let goodput = (row.goodput_mbit_s.mean / captured_mbit_s.max(1e-9)).max(1e-9).ln().abs();
    goodput + ((again + FEW) / (theirs + FEW)).ln().abs()
}

/// The name of a Linux that tolerates more reordering.
const PATIENT: &str = "linux-patient";

fn patient(sender: Sender, degree: u64) -> Table {
    let base = if sender == Sender::Bbr { "bbr1" } else { "linux" };
    let reno = if sender == Sender::Reno { RENO } else { "" };
    table(&format!("name = \"{PATIENT}\"\nbase = \"{base}\"\n[dup_thresh]\ninitial = {degree}\nmax = {degree}\n{reno}"))
}

const RENO: &str = "[congestion_control]\nalgorithm = \"reno\"\n";

fn table(text: &str) -> Table {
    text.parse().unwrap_or_default()
}

/// The variants on a path, in their order.
fn run(path: &MeasuredPath, duration: Duration, variants: &[&str], own: Option<Table>) -> Result<Vec<Row>, Error> {
    let reno = table(&format!("name = \"linux-reno\"\nbase = \"linux\"\n{RENO}"));
    let own = std::iter::once(reno).chain(own);
    let scenario = ScenarioOptions {
        path: Some(PathSource::GivenInline(reknit_config::parse("the measured path", &path.toml())?)),
        duration: Some(duration),
        variant_tables: own.map(|table| ("a variant".to_owned(), table)).collect(),
        ..ScenarioOptions::of(Plan::bulk(1))
    };
    let variants = variants.iter().map(|name| (*name).to_owned()).collect();
    let experiment =
        PreparedComparison::new(&CompareOptions { scenario, variants, seeds: Some(DRAWS), oracle: false })?;
    let never = AtomicBool::new(false);
    Ok(experiment.run(|job| Ok::<_, Error>(job.simulate(&never)))?.variants)
}
