//! `reknit script`: runs scripts of packets against calls.

use std::fmt::Write;
use std::path::PathBuf;

use reknit_host::{KernelRun, run_on_kernel};
use reknit_script::{Engine, RunReport, parse, run, update};

use crate::{Failure, output};

/// Run scripts of packets and socket calls on the engine, or live on the kernel
///
/// A script says what TCP must send in response to packets and calls. docs/reference/scripts.md describes the format, and
/// crates/script/kernel.toml lists where the kernel differs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  reknit script crates/script/scripts/opening/*.script
  reknit script --show mine.script
  sudo reknit script --kernel mine.script")]
pub(crate) struct Args {
    /// Run these scripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run them against this machine's kernel, in real time (needs root)
    #[arg(long)]
    kernel: bool,
    /// Show all events, even if a script passes
    #[arg(long)]
    show: bool,
    /// Write what the engine sends into the scripts; review the changes
    #[arg(long, conflicts_with_all = ["kernel", "show"])]
    update: bool,
}

pub(crate) fn run_scripts(args: &Args) -> Result<(), Failure> {
    let (mut failed, mut text) = (0, String::new());
    for file in &args.files {
        let name = file.display().to_string();
        let source = std::fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("{name}: {}", reknit_config::file_error(&error))))?;
        let refuse = |error: reknit_script::ScriptError| Failure::Usage(error.to_string());
        if args.update {
            let updated = update(&name, &source).map_err(refuse)?;
            std::fs::write(file, updated).map_err(|error| Failure::of_file(&name, &error))?;
            continue;
        }
        let script = parse(&name, &source).map_err(refuse)?;
        let ran = if args.kernel {
            match run_on_kernel(&script).map_err(|error| Failure::Failed(format!("{name}: {error}")))? {
                KernelRun::Ran(ran) => ran,
                KernelRun::NotApplicable(reason) => {
                    let _ = writeln!(text, "{name}: not run: {reason}");
                    continue;
                }
            }
        } else {
            let mut engine = Engine::new(&script).map_err(Failure::Failed)?;
            run(&script, &mut engine)
        };
        failed += u32::from(ran.failure.is_some());
        report(&mut text, &name, &source, &ran, args.show);
    }
    output::print(&text)?;
    if failed > 0 {
        let scripts = output::how_many(args.files.len() as u64, "script");
        return Err(Failure::Failed(format!("{failed} of {scripts} failed")));
    }
    Ok(())
}

fn report(text: &mut String, name: &str, source: &str, ran: &RunReport, show: bool) {
    match &ran.failure {
        None => _ = writeln!(text, "{name}: ok"),
        Some(failure) => {
            let line = source.lines().nth(failure.line - 1).unwrap_or_default().trim();
            let _ = writeln!(text, "{name}:{}: {}\n    {line}", failure.line, failure.message);
        }
    }
    if show || ran.failure.is_some() {
        for line in &ran.transcript {
            let _ = writeln!(text, "  {line}");
        }
    }
}
