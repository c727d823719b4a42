//! What a path does to a train of packets, in the terms of RFC 4737.

use reknit_path::{Direction, NAMES, Profile, Train, TrainResult};
use reknit_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Error;

/// The number of packets in a train.
pub const PACKETS: u32 = 20_000;
/// The size of each packet.
pub const SIZE: Bytes = Bytes(1500);
/// The `n` for which `n`-reordered packets are counted.
pub const N: [u32; 6] = [1, 2, 3, 5, 10, 20];

/// A built-in path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// A description.
    pub description: String,
    /// The source of the path's numbers.
    pub source: String,
}

/// All built-in paths.
///
/// # Errors
/// If one of them is not a valid path.
pub fn list() -> Result<Vec<Listed>, Error> {
    let load = |name: &&str| {
        let profile = Profile::load(name, &[]).map_err(|error| Error::Failed(error.to_string()))?;
        Ok(Listed { name: (*name).to_owned(), description: profile.description, source: profile.source })
    };
    NAMES.iter().map(load).collect()
}

/// What one direction did to a train.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PathReport {
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Packets sent.
    pub packets: u32,
    /// Size of each, bytes.
    pub size_bytes: u64,
    /// Time between packets, ms.
    pub gap_ms: f64,
    /// One-way delay, ms: median.
    pub delay_p50_ms: f64,
    /// 90th percentile.
    pub delay_p90_ms: f64,
    /// 99th percentile.
    pub delay_p99_ms: f64,
    /// Largest.
    pub delay_max_ms: f64,
    /// Packets of which no copy arrived.
    pub lost: u32,
    /// Copies beyond the first.
    pub duplicated: u32,
    /// Packets that arrived after a later one (RFC 4737 §3.3).
    pub reordered: u32,
    /// Their share of those that arrived.
    pub reordered_ratio: f64,
    /// Reordering extent of the reordered packets, packets (RFC 4737 §4.2): median; none if nothing was reordered.
    pub extent_p50: Option<u32>,
    /// 99th percentile.
    pub extent_p99: Option<u32>,
    /// Largest.
    pub extent_max: Option<u32>,
    /// For each of [`N`], how many packets have an extent of at least `n`, so that at least that many later ones
    /// arrived before them. Those for 3 can trigger a false fast retransmit.
    pub extent_at_least: [u32; N.len()],
    /// For each of [`N`], how many packets are `n`-reordered (RFC 4737 §5): the `n` packets that arrived just before were
    /// all sent later.
    pub n_reordered: [u32; N.len()],
}

/// A train at 80 % of the path's rate, so that the queues do not affect it.
pub fn train(profile: &Profile, direction: Direction) -> Train {
    let rate = profile.bottleneck(direction).unwrap_or(Rate::from_bits_per_second(10_000_000));
    Train { packets: PACKETS, size: SIZE, gap: rate.time_for(SIZE).mul_f64(1.25) }
}

/// Sends the train through one direction of `profile`.
pub fn report(profile: &Profile, direction: Direction, seed: u64) -> PathReport {
    let train = train(profile, direction);
    let result = train.through(profile, direction, seed);
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let delay = |quantile| ms(result.delay_quantile(quantile));
    let (reordering, mut extents) = result.reordering();
    extents.sort_unstable();
    let extent = |per_cent| quantile(&extents, per_cent);
    PathReport {
        direction: match direction {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        },
        packets: result.sent,
        size_bytes: train.size.0,
        gap_ms: ms(train.gap),
        delay_p50_ms: delay(0.5),
        delay_p90_ms: delay(0.9),
        delay_p99_ms: delay(0.99),
        delay_max_ms: delay(1.0),
        lost: result.lost(),
        duplicated: result.duplicates(),
        reordered: extents.len() as u32,
        reordered_ratio: reordering.ratio(),
        extent_p50: extent(50),
        extent_p99: extent(99),
        extent_max: extent(100),
        extent_at_least: N.map(|n| (extents.len() - extents.partition_point(|extent| *extent < n)) as u32),
        n_reordered: N.map(|n| reordering.n_reordered(n) as u32),
    }
}

/// The extents, smallest first.
pub fn extents(result: &TrainResult) -> Vec<u32> {
    let mut extents = result.extents();
    extents.sort_unstable();
    extents
}

/// The percentile `per_cent` of sorted values.
pub fn quantile(sorted: &[u32], per_cent: usize) -> Option<u32> {
    sorted.get(sorted.len().checked_sub(1)? * per_cent / 100).copied()
}
