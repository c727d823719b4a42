//! What a test needs of the machine. Where something is missing, the test is skipped and says so; with `CI` set, it fails.
//!
//! The test harness has no skipped tests, so each skip is also a line in the file that `SKIPPED_TESTS` names, from which
//! `make test` lists and counts them.

use std::env;
use std::fs::File;
use std::io::Write;
use std::thread;

use nix::sched::{CloneFlags, unshare};

/// Live transfers in namespaces.
pub const LIVE: [&str; 2] = ["root", "/dev/net/tun"];

/// True if the machine has everything; otherwise the calling test must return. A need is `root` (network namespaces can be
/// made), the path of a device, or the name of a program.
///
/// # Panics
/// If something is missing and `CI` is set.
pub fn has(needs: &[&str]) -> bool {
    let missing: Vec<&str> = needs.iter().copied().filter(|need| !is_available(need)).collect();
    if !missing.is_empty() {
        skip(&missing.join(", "));
    }
    missing.is_empty()
}

/// Notes that the calling test, or a part of it, is skipped because `missing` is not there.
///
/// # Panics
/// If `CI` is set, or the note cannot be written.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn skip(missing: &str) {
    let (crate_name, thread) = (env::var("CARGO_PKG_NAME").unwrap_or_default(), thread::current());
    let note = format!("{crate_name} {}: needs {missing}", thread.name().unwrap_or("a test"));
    assert!(env::var_os("CI").is_none(), "{note}; CI must have it");
    eprintln!("skipped: {note}");
    if let Some(file) = env::var_os("SKIPPED_TESTS") {
        // In one write, since tests of one process run in several threads.
        let line = format!("{note}\n");
        let written =
            File::options().append(true).create(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

fn is_available(need: &str) -> bool {
    match need {
        // In a thread with which the namespace ends.
        "root" => thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap_or(false),
        device if device.starts_with('/') => File::options().read(true).write(true).open(device).is_ok(),
        program => {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path).any(|folder| folder.join(program).is_file())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_devices_are_found() {
        assert!(
            is_available("cargo") || env::var_os("PATH").is_none_or(|path| !path.to_string_lossy().contains("cargo"))
        );
        assert!(is_available("/dev/null") && !is_available("/dev/nowhere") && !is_available("no-such-program"));
    }
}
