//! `reknit matrix`: variants over many random paths, simulated and live.

mod live;
mod show;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use rayon::prelude::*;
use reknit_compare::{
    Error, GrowthModel, Location, Matrix, MatrixJob, MatrixOptions, MatrixPath, MatrixStore, NamedVariant,
    named_variant,
};
use reknit_host::Tcp;
use reknit_path::RandomPath;
use reknit_sim::Transports;
use reknit_units::Duration;

use crate::testbed::ends;
use crate::{Failure, help, input, output};

/// The default variants.
const VARIANTS: [&str; 5] = ["sack", "dsack-r", "rr-taes", "rack", "pr"];
/// The kernels that also run by default in live runs.
const KERNELS: [&str; 2] = ["kernel:cubic", "kernel:bbr"];

/// What the help of `--variants` adds.
const LIVE: &str = "; with --live also kernels, as in `reknit testbed` [default: sack, dsack-r, rr-taes, rack, pr; with --live also \
                    kernel:cubic, kernel:bbr]";

/// Compare variants over many random paths, in simulation and live
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Draws random paths that reorder packets (docs/reference/matrix.md), and prints each variant's goodput, relative \
to `sack` without reordering and to an oracle: the mean, median and minimum over the paths. Paths that lose packets have \
a table of their own. With --live, the variants and this machine's kernel also transfer data over the same paths in \
real time.

Examples:
  reknit matrix --paths 64 --variants sack,rack,pr
  sudo reknit matrix --paths 32 --lossless --live --store runs"
)]
pub(crate) struct Args {
    /// Draw the random paths from these seeds, separated by commas
    #[arg(long, value_name = "N,M", value_delimiter = ',', default_value = "1", value_parser = input::seed)]
    seed: Vec<u64>,
    /// Draw this many paths per seed
    #[arg(long, value_name = "N", default_value = "32", value_parser = input::whole::<1, 10_000>,
          allow_negative_numbers = true)]
    paths: u32,
    /// Use the path files in this directory instead of random paths
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seed", "paths"])]
    paths_from: Option<PathBuf>,
    /// Use only paths that lose no packets
    #[arg(long, conflicts_with = "lossy")]
    lossless: bool,
    /// Use only paths that lose packets
    #[arg(long)]
    lossy: bool,
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help = help::variants("Compare these variants", LIVE))]
    variants: Vec<String>,
    /// Add your own variant from a TOML file (docs/reference/variants.md); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    variant_file: Vec<PathBuf>,
    /// Run each transfer for this long, for example `30s`
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = input::duration)]
    duration: Duration,
    /// Run each variant on each path this many times, with the seeds 1, 2, 3, ...
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::whole::<1, 10_000>,
          allow_negative_numbers = true)]
    seeds: u32,
    /// Also run live, in real time (needs root)
    #[arg(long)]
    live: bool,
    /// Do this many runs at the same time [default: one simulation per processor; live runs one at a time]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, 1_000>, allow_negative_numbers = true)]
    jobs: Option<u32>,
    /// Save finished runs in this directory, and skip those that are already there
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write the random paths to files in this directory, and run nothing
    #[arg(long, value_name = "DIR", conflicts_with = "paths_from")]
    write: Option<PathBuf>,
    /// Print all results as JSON (docs/reference/json.md)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one line per run as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Hide the progress bar
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, transports: &Transports) -> Result<(), Failure> {
    if let Some(folder) = &args.write {
        return write(args, folder);
    }
    let (stacks, variants) = who(args, transports)?;
    let kernels = stacks.iter().filter(|stack| matches!(stack, Tcp::Kernel(_)));
    let live_growths = kernels.map(|kernel| GrowthModel::of_kernel(&kernel.to_string())).collect();
    let (duration, seeds) = (args.duration, args.seeds);
    let options = MatrixOptions { paths: paths(args)?, variants, live_growths, duration, seeds };
    let matrix = Matrix::new(options)?;
    let store = args.store.as_deref().map(MatrixStore::open).transpose()?;
    let stop = output::on_interrupt();
    let simulated = simulate(args, &matrix, store.as_ref(), &stop)?;
    let live = if args.live { live::run(args, &matrix, &stacks, store.as_ref(), &stop)? } else { Vec::new() };
    let interrupted = stop.load(Ordering::Relaxed);
    let mut report = matrix.report(&simulated, &live);
    report.complete &= !interrupted;
    show::show(args, &report)?;
    if !interrupted {
        return Ok(());
    }
    let kept = if store.is_some() { "; run it again with this store to resume" } else { "" };
    output::note(format_args!("interrupted: showing the runs that finished{kept}"));
    Err(Failure::Interrupted)
}

/// The ends that run live, and the variants and other transports that are simulated.
fn who(args: &Args, transports: &Transports) -> Result<(Vec<Tcp>, Vec<NamedVariant>), Failure> {
    let customs = named_variant::load(&args.variant_file)?;
    for warning in customs.iter().flat_map(|custom| &custom.warnings) {
        output::note(format_args!("warning: {warning}"));
    }
    let mut names = ends::names("variants", &args.variants, &customs)?;
    if names.is_empty() {
        names.extend(VARIANTS.map(str::to_owned));
        names.extend(KERNELS.iter().filter(|_| args.live).map(|name| (*name).to_owned()));
    }
    names.extend(customs.iter().map(|custom| custom.name.clone()));
    let (mut stacks, mut variants): (Vec<Tcp>, Vec<NamedVariant>) = (Vec::new(), Vec::new());
    for name in &names {
        if let Some(transport) = transports.find(name) {
            variants.push(NamedVariant::transport(transport));
            continue;
        }
        let is_kernel = name == "kernel" || name.starts_with("kernel:");
        if is_kernel && !args.live {
            let message = format!("--variants {name}: kernels run only with --live (as root)");
            return Err(Failure::Usage(message));
        }
        if args.live {
            let stack = ends::stack("--variants", name, &customs)?;
            if stacks.iter().all(|other| other.to_string() != stack.to_string()) {
                stacks.push(stack);
            }
        }
        if !is_kernel {
            let variant =
                named_variant::find(name, &customs).map_err(|error| error.at(Location::argument("variants")))?;
            if variants.iter().all(|other| other.name != variant.name) {
                variants.push(variant);
            }
        }
    }
    Ok((stacks, variants))
}

fn paths(args: &Args) -> Result<Vec<MatrixPath>, Failure> {
    let mut paths = match &args.paths_from {
        Some(folder) => MatrixPath::load_all(folder)?,
        None => drawn(args).map(|(seed, number)| MatrixPath::draw(seed, number)).collect::<Result<_, _>>()?,
    };
    paths.retain(|path| !(args.lossless && path.lossy || args.lossy && !path.lossy));
    if paths.is_empty() {
        return Err(Failure::Usage("no path matches; use more paths (--paths) or another --seed".to_owned()));
    }
    Ok(paths)
}

/// Seed and number of each path.
fn drawn(args: &Args) -> impl Iterator<Item = (u64, u32)> {
    args.seed.iter().flat_map(|seed| (0..args.paths).map(|number| (*seed, number)))
}

fn write(args: &Args, folder: &Path) -> Result<(), Failure> {
    let failed = |file: &Path, error: std::io::Error| Failure::of_option("--write", file, &error);
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (seed, number) in drawn(args) {
        let path = RandomPath::draw(seed, number);
        let loses = path.profile()?.loses_packets();
        if args.lossless && loses || args.lossy && !loses {
            continue;
        }
        let file = folder.join(format!("{}.toml", path.name));
        std::fs::write(&file, &path.toml).map_err(|error| failed(&file, error))?;
    }
    Ok(())
}

/// The goodput of each job; none for those that did not run because of an interrupt.
fn simulate(
    args: &Args,
    matrix: &Matrix,
    store: Option<&MatrixStore>,
    stop: &AtomicBool,
) -> Result<Vec<Option<f64>>, Failure> {
    let bar = output::progress(matrix.jobs.len() as u64, "simulating", args.quiet);
    let threads = args.jobs.map_or(0, |jobs| jobs as usize); // 0: one per processor
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Failed(error.to_string()))?;
    let one = |job: &MatrixJob| simulate_one(matrix, job, store, stop, &bar);
    let goodputs = pool.install(|| matrix.jobs.par_iter().map(one).collect::<Result<_, Error>>());
    bar.finish_and_clear();
    Ok(goodputs?)
}

fn simulate_one(
    matrix: &Matrix,
    job: &MatrixJob,
    store: Option<&MatrixStore>,
    stop: &AtomicBool,
    bar: &ProgressBar,
) -> Result<Option<f64>, Error> {
    let key = matrix.key(job);
    if let Some(kept) = store.and_then(|store| store.get(&key)) {
        bar.inc(1);
        return Ok(Some(kept.goodput_mbit_s));
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let goodput = matrix.simulate(job, stop);
    if let (Some(store), Some(goodput)) = (store, goodput) {
        store.add(key, matrix.about(job), goodput, None)?;
    }
    bar.inc(1);
    Ok(goodput)
}
