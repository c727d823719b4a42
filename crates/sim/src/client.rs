//! A client opens connections one after the other: what it does next, and its results so far.

use std::sync::Arc;

use reknit_path::{Stream, StreamId};
use reknit_tcp::{Config, Info, State};
use reknit_units::{Bytes, Duration, Instant};

use crate::application::Application;
use crate::flow::{Flow, FlowIds};
use crate::result::{FlowResult, Sample};
use crate::roles::PerRole;
use crate::scenario::{FlowSpec, Scenario};
use crate::tally::Tally;
use crate::transactions::Transaction;
use crate::workload::Workload;

/// The number of the first random stream after those of the path's stages.
const STREAMS: u32 = 1 << 17;
/// The random stream for the phases of flows' starts.
const STARTS: u32 = STREAMS + 2;
/// The largest additional delay of a flow's start because of its phase.
const START_PHASE: Duration = Duration::from_millis(100);

/// When the flow with this number starts in a run of `scenario`.
pub(crate) fn start(scenario: &Scenario, spec: &FlowSpec, index: u32) -> Instant {
    let phase = StreamId { seed: scenario.seed, stage: STARTS + index, phases: scenario.phases }.phase();
    spec.start + START_PHASE.mul_f64(phase)
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) spec: FlowSpec,
    pub(crate) tally: Tally,
    /// Slot of its current or last connection.
    pub(crate) slot: Option<u32>,
    /// When the current transaction began.
    began: Instant,
    begun: u64,
    completed: u64,
    /// Of these, those during the warm-up.
    uncounted: u64,
    /// When its last transaction was complete.
    finished: Option<Instant>,
    configs: PerRole<Arc<Config>>,
    thinking: Stream,
    /// The latest connection that has ended, and its sender's variables.
    last: Option<(u32, Info)>,
    series: Vec<Sample>,
}

impl Client {
    /// `shared` has the TCP options of the ends so far. Most clients have the same options, and sharing them keeps data
    /// that is read for every packet together.
    pub(crate) fn new(scenario: &Scenario, spec: &FlowSpec, index: u32, shared: &mut Vec<Arc<Config>>) -> Client {
        let base = spec.tcp.as_deref().unwrap_or(&scenario.tcp);
        let mut share = |config: Config| {
            let known = shared.iter().rev().find(|known| ***known == config).cloned();
            known.unwrap_or_else(|| {
                shared.push(Arc::new(config));
                shared[shared.len() - 1].clone()
            })
        };
        let spec = FlowSpec { start: start(scenario, spec, index), ..spec.clone() };
        Client {
            configs: PerRole {
                sender: share(spec.sender.configure(base.clone())),
                receiver: share(spec.receiver.configure(base.clone())),
            },
            began: spec.start,
            spec,
            tally: Tally::default(),
            slot: None,
            begun: 0,
            completed: 0,
            uncounted: 0,
            finished: None,
            thinking: StreamId { seed: scenario.seed, stage: STREAMS, phases: scenario.phases }.stream(index),
            last: None,
            series: Vec::new(),
        }
    }

    /// Opens a connection for its next transactions.
    pub(crate) fn connect(&self, now: Instant, ids: FlowIds) -> Flow {
        let left = self.spec.workload.transactions().and_then(|transactions| {
            let remaining = transactions.count.map(|count| count - self.begun);
            let here = transactions.per_connection.map(|n| u64::from(n.get()));
            let least = remaining.into_iter().chain(here).min();
            least.map(|n| u32::try_from(n).unwrap_or(u32::MAX))
        });
        let application = Application::new(&self.spec.workload, left);
        Flow::new(now, ids, &self.spec, &self.configs, application)
    }

    /// Begins its next transaction on `flow`.
    pub(crate) fn begin(&mut self, now: Instant, flow: &mut Flow) {
        self.began = now;
        self.begun += 1;
        flow.application.begin(&mut flow.ends);
    }

    /// The current transaction is complete.
    pub(crate) fn complete(&mut self, now: Instant, flow: u32) -> Transaction {
        self.completed += 1;
        let transactions = self.spec.workload.transactions();
        if transactions.is_some_and(|transactions| transactions.count == Some(self.completed)) {
            self.finished = Some(now);
        }
        let response = transactions.map_or(Bytes::ZERO, |transactions| transactions.response);
        Transaction { flow, began: self.began, ended: now, response }
    }

    /// The current transaction has failed with its connection. It does not count towards the requested number.
    pub(crate) fn fail(&mut self) {
        self.begun -= 1;
    }

    /// True if it tries again after a failure.
    pub(crate) fn retries_after_failure(&self) -> bool {
        matches!(self.spec.workload, Workload::Transactions(_)) && !self.is_finished()
    }

    /// True if all of its transactions are complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Draws the think time before its next transaction.
    pub(crate) fn think(&mut self) -> Duration {
        let transactions = self.spec.workload.transactions();
        transactions.map_or(Duration::ZERO, |transactions| transactions.think.draw(&mut self.thinking))
    }

    /// Resets the counts at the end of the warm-up.
    pub(crate) fn restart(&mut self) {
        self.uncounted = self.completed;
        self.tally.restart();
    }

    pub(crate) fn sample(&mut self, now: Instant, flow: &Flow) {
        let mut shown = Vec::new();
        flow.show(&mut |name, value| shown.push((name, value)));
        self.series.push(Sample {
            at: now,
            info: flow.ends.sender.info(now),
            shown,
            delivered: self.tally.delivered,
            spurious_retransmissions: self.tally.spurious_retransmissions,
        });
    }

    /// Takes over the results of its connection `flow`, which has ended, or the run is over.
    pub(crate) fn absorb(&mut self, now: Instant, flow: &Flow) {
        let PerRole { sender, receiver } = &flow.ends;
        self.tally.send += sender.send_stats();
        self.tally.receive += *receiver.receive_stats();
        if sender.state() >= State::Established {
            flow.show(&mut |name, value| self.tally.shown.note(name, value));
        }
        if self.last.is_none_or(|(id, _)| id <= flow.id) {
            self.last = Some((flow.id, sender.info(now)));
        }
    }

    /// The result of the run from `warm`, the end of the warm-up, to `end`.
    pub(crate) fn into_result(mut self, warm: Instant, end: Instant, ids: FlowIds) -> FlowResult {
        if self.last.is_none() {
            // It never opened a connection.
            let flow = self.connect(end, ids);
            self.absorb(end, &flow);
        }
        let (_, last) = self.last.expect("it was set");
        let elapsed = self.finished.unwrap_or(end).since(self.spec.start.max(warm));
        FlowResult {
            completed: self.finished,
            transactions: self.completed - self.uncounted,
            last: Some(last),
            series: self.series,
            ..self.tally.into_result(self.spec.group, elapsed, last.smss)
        }
    }
}
