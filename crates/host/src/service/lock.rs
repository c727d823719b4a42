//! One instance of a service for each network namespace.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

const FOLDER: &str = "/run/reknit";

/// The lock of a running service, and its files.
#[derive(Debug)]
pub struct Lock {
    /// Without an ending.
    stem: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock of `service` in this network namespace. None if another instance has it.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn take(service: &str) -> Result<Option<Lock>, String> {
        let folder = Path::new(FOLDER).join(service);
        let refuse = |error: &std::io::Error| match error.kind() {
            ErrorKind::PermissionDenied => format!(
                "`reknit {service}` needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW and a folder {} that it may write",
                folder.display()
            ),
            _ => format!("{}: {}", folder.display(), reknit_config::file_error(error)),
        };
        fs::create_dir_all(&folder).map_err(|error| refuse(&error))?;
        let namespace = fs::metadata("/proc/thread-self/ns/net").map_err(|error| format!("/proc: {error}"))?.ino();
        let stem = folder.join(namespace.to_string());
        let opened = File::create(stem.with_extension("lock")).map_err(|error| refuse(&error))?;
        Ok(Flock::lock(opened, FlockArg::LockExclusiveNonblock).ok().map(|file| Lock { stem, _file: file }))
    }

    /// The file of the service in this network namespace with this ending.
    pub fn file(&self, ending: &str) -> PathBuf {
        self.stem.with_extension(ending)
    }
}
