//! The results of the transfers: the JSON document of `docs/reference/json.md`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use reknit_compare::{Estimate, NamedVariant};
use reknit_host::testbed::Payload;
use reknit_host::{KernelCounters, Spec, StopReason, Tcp, TestbedError, TransferResult};
use reknit_path::Profile;
use serde::Serialize;

use crate::{Failure, output};

/// The document.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) format: &'static str,
    pub(super) reknit: &'static str,
    pub(super) path: String,
    pub(super) description: String,
    pub(super) kernel: String,
    pub(super) seed: u64,
    pub(super) repeat: u32,
    /// False if the transfers were interrupted.
    pub(super) complete: bool,
    pub(super) transfers: Vec<Transfer>,
}

/// One transfer.
#[derive(Debug, Serialize)]
pub(super) struct Transfer {
    pub(super) sender: String,
    pub(super) receiver: String,
    /// Counted from 1.
    pub(super) repetition: u32,
    pub(super) seed: u64,
    pub(super) ending: &'static str,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// None if it failed.
    #[serde(flatten)]
    pub(super) measured: Option<Measured>,
}

/// What was measured of a transfer.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) goodput_mbit_s: f64,
    pub(super) delivered_bytes: u64,
    pub(super) elapsed_s: f64,
    pub(super) segments_sent: u64,
    pub(super) retransmissions: u64,
    pub(super) spurious_retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) paws_discards: u64,
    /// SHA-256 of the data sent, if the data received was the same; none for a transfer that ended after its duration.
    pub(super) sha256: Option<String>,
    pub(super) fell_back: Vec<String>,
    /// The counters of the sender's kernel that are not zero; none if the sender was reknit's TCP.
    pub(super) sender_counters: Option<BTreeMap<String, u64>>,
    /// The same at the receiver.
    pub(super) receiver_counters: Option<BTreeMap<String, u64>>,
    pub(super) late_p99_ms: f64,
    pub(super) late_max_ms: f64,
    pub(super) waited_for_cpu: f64,
    /// Why the result is in doubt.
    pub(super) doubt: Option<String>,
}

impl Report {
    pub(super) fn new(profile: &Profile, seed: u64, repeat: u32) -> Report {
        Report {
            format: "reknit-testbed-1",
            reknit: reknit_host::VERSION,
            path: profile.name.clone(),
            description: profile.description.clone(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            seed,
            repeat,
            complete: false,
            transfers: Vec::new(),
        }
    }

    /// The transfers grouped by pair of ends, in the order in which the pairs started.
    pub(super) fn by_pair(&self) -> Vec<Vec<&Transfer>> {
        let mut pairs: Vec<Vec<&Transfer>> = Vec::new();
        for transfer in &self.transfers {
            match pairs.iter_mut().find(|pair| pair[0].is_between(&transfer.sender, &transfer.receiver)) {
                Some(pair) => pair.push(transfer),
                None => pairs.push(vec![transfer]),
            }
        }
        pairs
    }

    /// An error if a transfer failed or did not finish in time.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let count = |ending: &str| self.transfers.iter().filter(|transfer| transfer.ending == ending).count();
        let [failed, unfinished] = [FAILED, UNFINISHED].map(count);
        let whole = output::how_many(self.transfers.len() as u64, "transfer");
        match (failed, unfinished) {
            (0, 0) => Ok(()),
            (0, _) => Err(Failure::Failed(format!("{unfinished} of {whole} did not finish in time"))),
            (_, 0) => Err(Failure::Failed(format!("{failed} of {whole} failed"))),
            _ => {
                let message = format!("{failed} of {whole} failed, {unfinished} did not finish in time");
                Err(Failure::Failed(message))
            }
        }
    }
}

const FAILED: &str = "failed";
const UNFINISHED: &str = "unfinished";

impl Transfer {
    /// Runs the transfer.
    ///
    /// # Errors
    /// If it was interrupted, or this machine cannot run transfers.
    pub(super) fn run(spec: &Spec, repetition: u32, stop: &AtomicBool) -> Result<Transfer, Failure> {
        let result = match reknit_host::run(spec, stop) {
            Err(TestbedError::Cancelled) => return Err(Failure::Interrupted),
            Err(error @ (TestbedError::SetUp { .. } | TestbedError::Capture(_))) => {
                return Err(Failure::Failed(error.to_string()));
            }
            Err(error) => Err(error.to_string()),
            Ok(outcome) => verify(spec, &outcome).map(|sha256| (outcome, sha256)),
        };
        let (ending, error, measured) = match result {
            Err(error) => (FAILED, Some(error), None),
            Ok((outcome, sha256)) => (name(outcome.ending), None, Some(Measured::of(spec, &outcome, sha256))),
        };
        let (sender, receiver) = (spec.sender.to_string(), spec.receiver.to_string());
        Ok(Transfer { sender, receiver, repetition, seed: spec.seed, ending, error, measured })
    }

    fn is_between(&self, sender: &str, receiver: &str) -> bool {
        self.sender == sender && self.receiver == receiver
    }
}

fn name(ending: StopReason) -> &'static str {
    match ending {
        StopReason::Finished => "finished",
        StopReason::Stopped => "stopped",
        StopReason::Unfinished => UNFINISHED,
    }
}

impl Measured {
    /// A counter of the sender's kernel.
    pub(super) fn counted_by_sender(&self, name: &str) -> u64 {
        self.sender_counters.as_ref().and_then(|counters| counters.get(name)).copied().unwrap_or(0)
    }

    fn of(spec: &Spec, outcome: &TransferResult, sha256: Option<String>) -> Measured {
        let punctuality = outcome.punctuality;
        Measured {
            goodput_mbit_s: outcome.goodput() / 1e6,
            delivered_bytes: outcome.delivered.0,
            elapsed_s: outcome.elapsed.as_secs_f64(),
            segments_sent: outcome.segments,
            retransmissions: outcome.retransmissions,
            spurious_retransmissions: outcome.spurious_retransmissions,
            timeouts: outcome.timeouts(),
            paws_discards: outcome.paws_discards(),
            sha256,
            fell_back: fallbacks(spec, outcome),
            sender_counters: outcome.kernel.as_ref().map(KernelCounters::counted),
            receiver_counters: outcome.receiver_kernel.as_ref().map(KernelCounters::counted),
            late_p99_ms: punctuality.late_p99.as_secs_f64() * 1e3,
            late_max_ms: punctuality.late_max.as_secs_f64() * 1e3,
            waited_for_cpu: punctuality.waited_for_cpu,
            doubt: punctuality.doubt().map(|doubt| doubt.to_string()),
        }
    }
}

/// The mean of a value over transfers.
pub(super) fn estimate(transfers: &[&Transfer], value: impl Fn(&Measured) -> f64) -> Estimate {
    Estimate::of(transfers.iter().filter_map(|transfer| transfer.measured.as_ref()).map(value))
}

/// What the two ends did without; a line names the variant.
fn fallbacks(spec: &Spec, outcome: &TransferResult) -> Vec<String> {
    let Some(info) = &outcome.info else { return Vec::new() };
    let mut told = Vec::new();
    let mut all = Vec::new();
    for stack in [&spec.sender, &spec.receiver] {
        let Tcp::Engine(name, composition) = stack else { continue };
        let variant = NamedVariant::of(name, composition.clone());
        if !told.contains(&name) {
            let lines = variant.fallbacks(info);
            output::warn_fallbacks(name, &lines);
            all.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
            told.push(name);
        }
    }
    all
}

/// Checks that the data received equals the data sent.
fn verify(spec: &Spec, outcome: &TransferResult) -> Result<Option<String>, String> {
    if spec.payload == Payload::Endless || outcome.ending == StopReason::Unfinished {
        Ok(None)
    } else if outcome.sent == outcome.received {
        Ok(Some(outcome.sent.digest.clone()))
    } else {
        Err(format!("the received data differs: sent {:?}, received {:?}", outcome.sent, outcome.received))
    }
}
