//! Finished runs of a matrix, stored as they finish, so that a matrix can be resumed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use reknit_config::file_error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Matrix, MatrixJob};
use crate::Error;
use crate::references::RunKind;

/// A folder with finished runs.
#[derive(Debug)]
pub struct MatrixStore {
    known: BTreeMap<String, StoredRun>,
    name: String,
    journal: Mutex<File>,
}

/// What is stored of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredRun {
    key: String,
    /// A description, for readers of the file.
    about: String,
    /// Mbit/s.
    pub goodput_mbit_s: f64,
    /// Why a live result is in doubt.
    pub doubt: Option<String>,
}

impl MatrixStore {
    /// Opens the folder, creates it if necessary, and reads its contents.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(folder: &Path) -> Result<MatrixStore, Error> {
        let file = folder.join("matrix.jsonl");
        let name = file.display().to_string();
        let failed = |error: std::io::Error| Error::Failed(format!("{name}: {}", file_error(&error)));
        fs::create_dir_all(folder).map_err(failed)?;
        let text = if file.exists() { fs::read_to_string(&file).map_err(failed)? } else { String::new() };
        // If the program was killed, the last line may be incomplete; its run is repeated.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<StoredRun>(line).ok());
        let known = lines.map(|kept| (kept.key.clone(), kept)).collect();
        let mut journal = OpenOptions::new().create(true).append(true).open(&file).map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            journal.write_all(b"\n").map_err(failed)?;
        }
        Ok(MatrixStore { known, name, journal: Mutex::new(journal) })
    }

    /// The run with this key, if it is finished.
    pub fn get(&self, key: &str) -> Option<&StoredRun> {
        self.known.get(key)
    }

    /// Stores a finished run.
    ///
    /// # Errors
    /// Names the file.
    pub fn add(&self, key: String, about: String, goodput_mbit_s: f64, doubt: Option<String>) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::Failed(format!("{}: {error}", self.name));
        let line = serde_json::to_string(&StoredRun { key, about, goodput_mbit_s, doubt });
        let line = line.map_err(|error| failed(error.into()))? + "\n";
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.write_all(line.as_bytes()).map_err(failed)
    }
}

impl Matrix {
    /// The key of a simulation in a store: a digest of everything that its result depends on.
    pub fn key(&self, job: &MatrixJob) -> String {
        let order = if job.purpose == RunKind::InOrder { "in order" } else { "" };
        let parts = self.variant(job.purpose).parts();
        self.digest(job.path, &[env!("REKNIT_SOURCES"), order, &parts], job.seed)
    }

    /// The key of a live run; `ends` describes its ends, including the kernel's release.
    pub fn live_key(&self, path: usize, ends: &str, seed: u64) -> String {
        self.digest(path, &["live", env!("REKNIT_SOURCES"), ends], seed)
    }

    /// A description of a simulation.
    pub fn about(&self, job: &MatrixJob) -> String {
        let order = if job.purpose == RunKind::InOrder { " in order" } else { "" };
        let path = &self.options.paths[job.path].name;
        format!("{path}{order}, {}, seed {}", self.variant(job.purpose).name, job.seed)
    }

    fn digest(&self, path: usize, what: &[&str], seed: u64) -> String {
        let table = &self.options.paths[path].table;
        let text = format!("{table:?}\n{what:?}\n{} ns\n{seed}", self.options.duration.as_nanos());
        Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
            text
        })
    }
}
