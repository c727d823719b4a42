//! Two captures of the same packets, at two points of the path: what was lost, late or duplicated in between is known instead
//! of inferred, for any protocol over IP.
//!
//! Packets are recognized by the fields that do not change on the way (`passage.rs`), and those of one capture are matched with
//! those of the other (`pairs.rs`). Which capture was made nearer to the sender is inferred for each flow (`flows.rs`). The
//! clocks are aligned by the fastest packets (`clock.rs`). `report.rs` has the result.

mod clock;
mod flows;
mod pairs;
mod passage;
mod report;

use std::io::Read;

use reknit_units::Rate;

use crate::{Error, Filter, MeasuredPath};
pub use clock::ClockReport;
use flows::Flow;
use passage::Captured;
pub use report::{BothEnds, CaptureReport, DelayReport, FlowReport};

/// The fewest packets that both captures must share to be captures of the same traffic.
const MIN_PACKETS: usize = 5;
/// The smallest share of the smaller capture that both must have, unless the user says that they belong together.
const MIN_SHARE: f64 = 0.05;

/// The options of a comparison of two captures.
#[derive(Clone, Debug, Default)]
pub struct BothEndsOptions {
    /// Which packets count.
    pub filter: Filter,
    /// Both captures have times of the same clock.
    pub same_clock: bool,
    /// A few packets in common are enough.
    pub forced: bool,
}

/// Two captures that have packets in common.
#[derive(Debug)]
pub struct Matched {
    captures: [Captured; 2],
    flows: Vec<Flow>,
    clock: clock::Clock,
}

impl Matched {
    /// Reads both captures. None if they have too few packets in common.
    ///
    /// # Errors
    /// If one of them cannot be read: which one, and why.
    pub fn read(readers: [impl Read; 2], options: &BothEndsOptions) -> Result<Option<Matched>, (usize, Error)> {
        let [first, second] = readers;
        let first = Captured::read(first, &options.filter).map_err(|error| (0, error))?;
        let second = Captured::read(second, &options.filter).map_err(|error| (1, error))?;
        let mut captures = [first, second];
        passage::split(&mut captures);
        let pairs = pairs::unambiguous(&captures);
        let common = pairs.of_a.iter().filter(|pair| pair.is_some()).count();
        let [a, b] = captures.each_ref().map(|captured| captured.passages.len());
        let smaller = a.min(b);
        let is_enough = common >= MIN_PACKETS && common as f64 >= smaller as f64 * MIN_SHARE;
        if common == 0 || !(is_enough || options.forced) {
            return Ok(None);
        }
        let sides = flows::sides(&captures, &pairs);
        let samples = || flows::samples(&captures, &pairs, &sides);
        let clock = if options.same_clock { clock::Clock::same(samples()) } else { clock::Clock::estimate(samples()) };
        let pairs = pairs::ambiguous(&captures, pairs, &sides, &clock);
        let flows = flows::flows(&captures, &pairs, &sides, &clock);
        Ok(Some(Matched { captures, flows, clock }))
    }

    /// What happened to the packets.
    pub fn report(&self, files: [String; 2]) -> BothEnds {
        BothEnds::of(&self.captures, &self.flows, &self.clock, files)
    }

    /// The path of the flow with the most bytes.
    ///
    /// # Errors
    /// If the captures do not show its delay, or have too few packets.
    pub fn path(&self, rate: Option<Rate>) -> Result<MeasuredPath, String> {
        let flow = self.flows.first().ok_or("no packet was captured at both points")?;
        flow.path(&self.captures, &self.clock, rate)
    }
}
