//! A single run, with its time series.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use reknit_config::{InputError, Location};
use reknit_sim::{FlowResult, Meter, run_unless};
use reknit_tcp::facts::Phase;
use reknit_tcp::seams::ShownName;
use reknit_units::{Duration, grouped};
use schemars::JsonSchema;
use serde::Serialize;

use crate::experiment::fallbacks;
use crate::setup::Setup;
use crate::{Error, NamedVariant, RunSummary, ScenarioOptions};

/// The most samples of a time series, all connections together.
const MAX_SAMPLES: u128 = 1_000_000;

/// What to simulate.
#[derive(Clone, PartialEq, Debug)]
pub struct SimulateOptions {
    /// The path, the duration and so on.
    pub scenario: ScenarioOptions,
    /// The variant's name.
    pub variant: String,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Interval of the time series; at most a million samples, all connections together. None for no series.
    pub sample_every: Option<Duration>,
}

/// The results of one run: its totals, and the senders' variables over time.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Trajectory {
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// The path's name.
    pub path: String,
    /// Its description.
    pub description: String,
    /// The variant's name.
    pub variant: String,
    /// Length of the run in simulated time.
    pub duration_s: f64,
    /// Length of the warm-up.
    pub warm_up_s: f64,
    /// The same numbers as in a comparison, and further measurements.
    pub run: RunSummary,
    /// What it did without because the other end does not support it.
    pub fell_back: Vec<String>,
    /// Warnings about combinations in the user's files, and about the path.
    pub warnings: Vec<String>,
    /// By connection, then by time.
    pub series: Series,
}

/// The senders' variables at each sample: columns of equal length.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Series {
    /// The connection, from 0.
    pub flow: Vec<u32>,
    /// Time, seconds.
    pub time_s: Vec<f64>,
    /// `open`, `disorder`, `recovery` or `loss`.
    pub phase: Vec<&'static str>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<u64>,
    /// Slow start threshold, bytes; none before the first loss.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Duplicate threshold, segments.
    pub dup_thresh_segments: Vec<u32>,
    /// Smoothed round-trip time, ms; none before the first sample.
    pub srtt_ms: Vec<Option<f64>>,
    /// Retransmission timeout without back-off, ms.
    pub rto_ms: Vec<Option<f64>>,
    /// Bytes sent and not cumulatively acknowledged.
    pub flight_size_bytes: Vec<u64>,
    /// Estimated bytes in flight.
    pub pipe_bytes: Vec<u64>,
    /// The peer's receive window, bytes.
    pub snd_wnd_bytes: Vec<u64>,
    /// Bytes acknowledged so far.
    pub acknowledged_bytes: Vec<u64>,
    /// Bytes that arrived in order so far.
    pub delivered_bytes: Vec<u64>,
    /// Retransmissions so far whose data had already arrived.
    pub spurious_retransmissions: Vec<u64>,
    /// The numbers that algorithms show: a column for each.
    #[serde(flatten)]
    pub shown: ShownColumns,
}

/// Columns of the numbers that algorithms show, by seam and name (`dup_thresh.fa_ratio`); none where a number is not
/// shown.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ShownColumns(BTreeMap<String, Vec<Option<f64>>>);

impl ShownColumns {
    /// Sets a value in the row with this index.
    pub(crate) fn set(&mut self, row: usize, name: ShownName, value: f64) {
        let column = self.0.entry(name.to_string()).or_default();
        column.resize(column.len().max(row + 1), None);
        column[row] = Some(value);
    }

    /// Completes the columns of a table with this many rows.
    pub(crate) fn complete(&mut self, rows: usize) {
        self.0.values_mut().for_each(|column| column.resize(rows, None));
    }
}

/// Runs it. None if `stop` became true.
///
/// # Errors
/// If an option is invalid. Names the file, key or option, and what is allowed.
pub fn simulate(options: &SimulateOptions, stop: &AtomicBool) -> Result<Option<Trajectory>, Error> {
    let (setup, variant) = options.look_up()?;
    let mut scenario = setup.scenario(&variant, options.seed);
    scenario.sample_every = options.sample_every;
    let Ok((result, meter)) = run_unless(&scenario, Meter::new(&scenario), stop) else { return Ok(None) };
    let run = RunSummary::new(options.seed, &setup.plan, &result);
    Ok(Some(Trajectory {
        reknit: crate::VERSION,
        path: setup.profile.name.clone(),
        description: setup.description(),
        duration_s: setup.duration.as_secs_f64(),
        warm_up_s: setup.plan.warm_up.as_secs_f64(),
        run: if variant.transport.is_some() { run } else { run.with(&meter, &result) },
        fell_back: fallbacks(&variant, &setup.plan, &result).unwrap_or_default(),
        warnings: setup.warnings(),
        series: Series::of(&result.flows),
        variant: variant.name,
    }))
}

impl SimulateOptions {
    pub(crate) fn look_up(&self) -> Result<(Setup, NamedVariant), Error> {
        let setup = self.scenario.look_up()?;
        let variant = setup.find(&self.variant);
        let variant = setup.with_settings(variant.map_err(|error| error.at(Location::argument("variant")))?)?;
        if let Some(interval) = self.sample_every.filter(|interval| interval.is_zero()) {
            return Err(InputError::of_argument("sample_every", interval, "must be more than 0").into());
        }
        if let Some(interval) = self.sample_every {
            let flows = setup.plan.groups.iter().map(|group| u128::from(group.count)).sum::<u128>();
            let samples = u128::from(setup.duration.as_nanos() / interval.as_nanos()) * flows;
            if samples > MAX_SAMPLES {
                let message = format!(
                    "would take {} samples; the limit is {} over all connections",
                    grouped(u64::try_from(samples).unwrap_or(u64::MAX)),
                    grouped(MAX_SAMPLES as u64)
                );
                return Err(InputError::of_argument("sample_every", interval, message).into());
            }
        }
        Ok((setup, variant))
    }
}

impl Series {
    fn of(flows: &[FlowResult]) -> Series {
        let mut series = Series::default();
        let milliseconds = |span: Duration| span.as_secs_f64() * 1e3;
        for (flow, sample) in (0..).zip(flows).flat_map(|(i, flow)| flow.series.iter().map(move |s| (i, s))) {
            let info = &sample.info;
            for (name, value) in &sample.shown {
                series.shown.set(series.flow.len(), *name, *value);
            }
            series.flow.push(flow);
            series.time_s.push(sample.at.as_secs_f64());
            series.phase.push(phase(info.phase));
            series.cwnd_bytes.push(info.cwnd.0);
            series.ssthresh_bytes.push(info.ssthresh.map(|ssthresh| ssthresh.0));
            series.dup_thresh_segments.push(info.dup_thresh.0);
            series.srtt_ms.push(info.srtt.map(milliseconds));
            series.rto_ms.push(info.rto.map(milliseconds));
            series.flight_size_bytes.push(info.flight_size.0);
            series.pipe_bytes.push(info.pipe.0);
            series.snd_wnd_bytes.push(info.snd_wnd.0);
            series.acknowledged_bytes.push(info.acknowledged);
            series.delivered_bytes.push(sample.delivered.0);
            series.spurious_retransmissions.push(sample.spurious_retransmissions);
        }
        series.shown.complete(series.flow.len());
        series
    }
}

pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

#[cfg(test)]
mod tests {
    use reknit_sim::{PathSource, Plan};

    use super::*;

    /// Goodput over a link that carries packets of at most 1000 bytes, Mbit/s.
    fn goodput_of_small_packets(icmp: bool) -> f64 {
        let plan = format!(
            "duration = \"5 s\"\n[path]\ndescription = \"test\"\n[[path.forward]]\nkind = \"mtu\"\nsize = \"1000 B\"\n\
             icmp = {icmp}\n[[path.forward]]\nkind = \"link\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             [[path.reverse]]\nkind = \"link\"\ndelay = \"10 ms\"\n[[flows]]\nworkload = \"bulk\"\n"
        );
        let scenario = ScenarioOptions::of(Plan::parse("s.toml", &plan).unwrap());
        let options = SimulateOptions { scenario, variant: "linux".to_owned(), seed: 1, sample_every: None };
        simulate(&options, &AtomicBool::new(false)).unwrap().unwrap().run.goodput_mbit_s
    }

    #[test]
    fn senders_that_are_told_the_mtu_send_smaller_packets() {
        assert!((9.0..9.6).contains(&goodput_of_small_packets(true)), "{}", goodput_of_small_packets(true));
        assert!(goodput_of_small_packets(false) < 0.001);
    }

    #[test]
    fn the_number_of_samples_is_limited_and_a_total_loss_warns() {
        let mut plan = Plan::bulk(2);
        plan.path = Some(PathSource::Given("clean".to_owned()));
        let mut scenario = ScenarioOptions::of(plan);
        scenario.duration = Some(Duration::from_secs(1));
        scenario.loss = Some(reknit_units::Share::ONE);
        let mut options = SimulateOptions {
            scenario,
            variant: "sack".to_owned(),
            seed: 1,
            sample_every: Some(Duration::from_nanos(1)),
        };
        let error = simulate(&options, &AtomicBool::new(false)).unwrap_err().to_string();
        let says = "sample_every = 1 ns: would take 2,000,000,000 samples; the limit is 1,000,000 over all connections";
        assert_eq!(error, says);
        options.sample_every = Some(Duration::from_millis(1));
        let trajectory = simulate(&options, &AtomicBool::new(false)).unwrap().unwrap();
        assert!(trajectory.warnings.iter().any(|warning| warning == "clean: the loss is 100 %, so no data arrives"));
    }
}
