//! Finished runs of a sweep, stored in a folder as lines of JSON. Each line is written with a single call. If the
//! program was killed, the last line may be incomplete; it is then ignored.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use reknit_config::file_error;
use serde::{Deserialize, Serialize};

use crate::{Error, Point, RunSummary};

/// A folder with finished runs.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    known: BTreeMap<String, RunSummary>,
    journal: Mutex<Option<File>>,
}

#[derive(Serialize)]
struct NewLine<'a> {
    key: String,
    point: &'a Point,
    run: &'a RunSummary,
}

#[derive(Deserialize)]
struct Line {
    key: String,
    run: RunSummary,
}

impl Store {
    /// Opens the folder, creates it if necessary, and reads its contents.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        let failed =
            |path: &Path, error: io::Error| Error::Failed(format!("{}: {}", path.display(), file_error(&error)));
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let file = entry.map_err(|error| failed(folder, error))?.path();
            if file.extension() == Some(OsStr::new("jsonl")) {
                let text = fs::read_to_string(&file).map_err(|error| failed(&file, error))?;
                let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
                known.extend(lines.map(|line| (line.key, line.run)));
            }
        }
        Ok(Store { folder: folder.to_owned(), known, journal: Mutex::new(None) })
    }

    /// The run of the point with this key, if it is finished.
    pub fn run(&self, key: &str) -> Option<&RunSummary> {
        self.known.get(key)
    }

    /// Stores a finished run, in a file that only this program writes.
    ///
    /// # Errors
    /// Names the file.
    pub fn add(&self, point: &Point, run: &RunSummary) -> Result<(), Error> {
        let name = self.folder.join(format!("runs-{}.jsonl", std::process::id()));
        let failed = |error: io::Error| Error::Failed(format!("{}: {error}", name.display()));
        let line = serde_json::to_string(&NewLine { key: point.key(), point, run });
        let line = line.map_err(|error| failed(error.into()))? + "\n";
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *journal {
            Some(file) => file,
            none => {
                let mut file = OpenOptions::new().create(true).append(true).open(&name).map_err(failed)?;
                // An earlier process with the same number may have been killed while it wrote a line.
                file.write_all(b"\n").map_err(failed)?;
                none.insert(file)
            }
        };
        file.write_all(line.as_bytes()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Grid, GridFile};
    use reknit_sim::Transports;
    use std::sync::atomic::AtomicBool;
    use toml::Value;

    #[test]
    fn a_run_with_an_incomplete_line_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let table = "path = \"clean\"\nduration = \"1 s\"\nvariant = \"sack\"\n".parse().unwrap();
        let axes = vec![Axis::new("loss", Value::Array(vec![Value::Float(0.0), Value::Float(0.01)])).unwrap()];
        let grid_file = GridFile {
            location: "s".to_owned(),
            table,
            axes,
            set_by_argument: Vec::new(),
            transports: Transports::default(),
        };
        let grid = Grid::new(grid_file, Some(vec![1]), &[]).unwrap();
        let store = Store::open(folder.path()).unwrap();
        let runs: Vec<RunSummary> = grid
            .points
            .iter()
            .map(|point| point.run(&Transports::default(), &AtomicBool::new(false)).unwrap().unwrap())
            .collect();
        for (point, run) in grid.points.iter().zip(&runs) {
            assert!(store.run(&point.key()).is_none());
            store.add(point, run).unwrap();
        }
        let file = folder.path().join(format!("runs-{}.jsonl", std::process::id()));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() - 20]).unwrap();
        let again = Store::open(folder.path()).unwrap();
        assert_eq!(again.run(&grid.points[0].key()), Some(&runs[0]));
        assert_eq!(again.run(&grid.points[1].key()), None);
    }
}
