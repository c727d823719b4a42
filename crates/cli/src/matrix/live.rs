//! The live runs of a matrix: each sender transfers to this machine's kernel, over the same paths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use reknit_compare::{Matrix, MatrixRun, MatrixStore, NamedVariant};
use reknit_host::testbed::Payload;
use reknit_host::{Initiator, KernelTcp, Spec, Tcp, TestbedError};

use super::Args;
use crate::{Failure, output};

/// One run.
struct Job<'a> {
    path: usize,
    sender: &'a Tcp,
    seed: u64,
}

/// All runs that finished. A transfer that fails is reported and left out.
pub(super) fn run(
    args: &Args,
    matrix: &Matrix,
    senders: &[Tcp],
    store: Option<&MatrixStore>,
    stop: &AtomicBool,
) -> Result<Vec<MatrixRun>, Failure> {
    // Seed by seed, so that load that changes over time affects all senders alike.
    let paths = 0..matrix.paths().len();
    let jobs: Vec<Job<'_>> = (1..=u64::from(matrix.seeds()))
        .flat_map(|seed| paths.clone().map(move |path| (seed, path)))
        .flat_map(|(seed, path)| senders.iter().map(move |sender| Job { path, sender, seed }))
        .collect();
    let bar = output::progress(jobs.len() as u64, "transferring live", args.quiet);
    let remaining = Mutex::new(jobs.iter());
    let next = || remaining.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        let mut runs = Vec::new();
        while let Some(job) = next() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            runs.extend(transfer(matrix, job, store, stop)?);
            bar.inc(1);
        }
        Ok::<_, Failure>(runs)
    };
    let parallelism = args.jobs.unwrap_or(1);
    let results: Vec<Result<Vec<MatrixRun>, Failure>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallelism).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| Err(Failure::Failed("a live run panicked".to_owned())))).collect()
    });
    bar.finish_and_clear();
    let mut runs: Vec<MatrixRun> = results.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let sort_key = |run: &MatrixRun| {
        let sender = senders.iter().position(|sender| sender.to_string() == run.variant);
        let path = matrix.paths().iter().position(|path| path.name == run.path);
        (path, sender, run.seed)
    };
    runs.sort_by_key(sort_key);
    Ok(runs)
}

fn transfer(
    matrix: &Matrix,
    job: &Job<'_>,
    store: Option<&MatrixStore>,
    stop: &AtomicBool,
) -> Result<Option<MatrixRun>, Failure> {
    let (path, sender) = (&matrix.paths()[job.path].name, job.sender.to_string());
    let key = matrix.live_key(job.path, &fingerprint(job.sender), job.seed);
    if let Some(cached) = store.and_then(|store| store.get(&key)) {
        return Ok(Some(MatrixRun::live(path, &sender, job.seed, cached.goodput_mbit_s, cached.doubt.clone())));
    }
    let outcome = match reknit_host::run(&spec(matrix, job), stop) {
        Ok(outcome) => outcome,
        Err(TestbedError::Cancelled) => return Ok(None),
        Err(error @ TestbedError::SetUp { .. }) => return Err(Failure::Failed(error.to_string())),
        Err(error) => {
            output::note(format_args!("error: {path}, {sender}, seed {}: {error}", job.seed));
            return Ok(None);
        }
    };
    let goodput = outcome.goodput() / 1e6;
    let doubt = outcome.punctuality.doubt().map(|doubt| doubt.to_string());
    if let Some(store) = store {
        store.add(key, format!("{path}, {sender} live, seed {}", job.seed), goodput, doubt.clone())?;
    }
    Ok(Some(MatrixRun::live(path, &sender, job.seed, goodput, doubt)))
}

/// What a live result depends on besides the path: the sender's parts, and the kernel.
fn fingerprint(sender: &Tcp) -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let sender = match sender {
        Tcp::Kernel(kernel) => kernel.to_string(),
        Tcp::Engine(name, composition) => NamedVariant::of(name, composition.clone()).parts(),
    };
    format!("{sender} {}", release.trim())
}

fn spec(matrix: &Matrix, job: &Job<'_>) -> Spec {
    Spec {
        profile: matrix.profile(job.path).clone(),
        tcp: matrix.tcp(job.path).clone(),
        sender: job.sender.clone(),
        receiver: Tcp::Kernel(KernelTcp { congestion_control: "cubic".to_owned(), settings: Vec::new() }),
        opener: Initiator::Sender,
        payload: Payload::Endless,
        duration: matrix.duration(),
        ipv6: false,
        seed: job.seed,
        capture_sender: None,
        capture_receiver: None,
    }
}
