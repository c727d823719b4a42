//! The live kernel does with every script what `crates/script/kernel.toml` says.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reknit_host::{KernelRun, run_on_kernel};
use reknit_script::differences::Differences;
use reknit_script::{RunReport, Script, parse};
use reknit_testkit::machine;

/// Scripts at a time: they mostly wait.
const AT_A_TIME: usize = 16;
/// A script that does something unexpected runs again: the machine may have been busy.
const ATTEMPTS: usize = 4;

fn scripts(root: &Path, folder: &Path, into: &mut Vec<(String, Script)>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            scripts(root, &path, into);
        } else {
            let name = path.strip_prefix(root).unwrap().with_extension("").display().to_string();
            into.push((name, parse(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap()).unwrap()));
        }
    }
}

/// What is not as listed. A listed script may differ at any line: where it does first can depend on the moment.
fn complaint(name: &str, ran: &RunReport, list: &Differences) -> Option<String> {
    let (happened, expected) = match (&ran.failure, list.of(name)) {
        (_, Some(difference)) if difference.sometimes => return None,
        (None, None) | (Some(_), Some(_)) => return None,
        (Some(failure), None) => (failure.to_string(), "it should pass".to_owned()),
        (None, Some(difference)) => ("it passes".to_owned(), format!("line {} should differ", difference.line)),
    };
    Some(format!("{name}: {happened}; {expected}\n  {}", ran.transcript.join("\n  ")))
}

#[test]
fn the_kernel_differs_only_as_listed() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../script");
    let list = Differences::parse(&std::fs::read_to_string(folder.join("kernel.toml")).unwrap()).unwrap();
    let mut all = Vec::new();
    scripts(&folder.join("scripts"), &folder.join("scripts"), &mut all);
    let (next, complaints, skipped) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((name, script)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut unexpected = None;
                    for _ in 0..ATTEMPTS {
                        unexpected = match run_on_kernel(script).unwrap() {
                            KernelRun::Ran(ran) => complaint(name, &ran, &list),
                            KernelRun::NotApplicable(_) => {
                                skipped.fetch_add(1, Ordering::Relaxed);
                                None
                            }
                        };
                        if unexpected.is_none() {
                            break;
                        }
                    }
                    complaints.lock().unwrap().extend(unexpected);
                }
            });
        }
    });
    let mut complaints = complaints.into_inner().unwrap();
    complaints.sort();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_listed = release.starts_with(&format!("{}.", list.kernel));
    eprintln!("{} scripts, {} not for a kernel, {} not as listed", all.len(), skipped.into_inner(), complaints.len());
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    assert!(complaints.is_empty() || !is_listed, "{} scripts are not as listed", complaints.len());
}
