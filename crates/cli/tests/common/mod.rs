//! What tests of captures share: the command, and files that are removed.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the command.
pub(crate) fn reknit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).env("COLUMNS", "110").output().expect("the command runs")
}

/// What the command prints on success.
pub(crate) fn stdout(arguments: &[&str]) -> String {
    let output = reknit(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A file that is removed at the end of the test.
pub(crate) struct Temporary(pub(crate) PathBuf, #[expect(dead_code, reason = "removes the folder")] TempDir);

impl Temporary {
    /// A file that does not exist yet.
    pub(crate) fn new(name: &str) -> Temporary {
        let folder = tempfile::tempdir().unwrap();
        Temporary(folder.path().join(name), folder)
    }

    /// A capture of a simulated transfer, at the end `side`.
    pub(crate) fn capture(path: &str, variant: &str, side: &str, duration: &str) -> Temporary {
        let file = Temporary::new("capture.pcapng");
        let arguments = ["compare", "--path", path, "--variants", variant, "--duration", duration, "--seeds", "1"];
        stdout(&[&arguments[..], &["--no-oracle", "--pcap", file.name(), "--pcap-side", side]].concat());
        file
    }

    pub(crate) fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}
