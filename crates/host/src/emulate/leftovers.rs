//! Changes that an emulation makes outside its own namespaces, recorded so that they can be undone even if the emulation was
//! killed. Called before each change, and at the start of every emulation for those of killed ones.
//!
//! An instance is identified by its process and the time at which that started, so a new process with the same number is
//! not mistaken for it. Commands inside have the instance in their environment. Changes by root in the namespace outside
//! are written to a file before they are made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::Flock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lock::lock;
use super::places::places;

/// The environment variable that names the instance.
pub(super) const MARK: &str = "REKNIT_EMULATE_ID";
/// Where the files are.
pub(super) const FOLDER: &str = "/run/reknit/emulate";
/// The setting that forwards IPv4 packets.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// Its name for users.
const SYSCTL: &str = "net.ipv4.ip_forward";
/// The end of the name of the file with the old value of [`FORWARDING`].
const SETTING: &str = "forwarding";

/// A running emulation: its process, and when that started, in clock ticks since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Instance {
    process: u32,
    started: u64,
}

impl Instance {
    pub(super) fn current() -> Instance {
        let process = std::process::id();
        Instance { process, started: start_of(process).unwrap_or(0) }
    }

    fn parse(text: &str) -> Option<Instance> {
        let (process, started) = text.split_once('_')?;
        Some(Instance { process: process.parse().ok()?, started: started.parse().ok()? })
    }

    fn is_alive(self) -> bool {
        start_of(self.process) == Some(self.started)
    }
}

impl std::fmt::Display for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.process, self.started)
    }
}

/// When a process started (`proc_pid_stat(5)`, field 22); none if it does not run.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in brackets, which may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The number of the calling thread's network namespace.
fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// Undoes the changes in the namespace outside when dropped.
#[derive(Debug)]
pub(super) struct CleanupGuard {
    file: PathBuf,
    /// Held while this instance is set up. Another descriptor could not lock the file a second time.
    lock: Option<Flock<File>>,
}

impl CleanupGuard {
    /// Registers `commands`, which are run at the end. Called before the change that they undo.
    pub(super) fn promise(instance: Instance, commands: &[Vec<String>], lock: Flock<File>) -> io::Result<CleanupGuard> {
        let file = Path::new(FOLDER).join(format!("{}-{instance}", namespace()?));
        let lines: Vec<String> = commands.iter().map(|command| command.join("\t")).collect();
        fs::write(&file, lines.join("\n"))?;
        Ok(CleanupGuard { file, lock: Some(lock) })
    }

    /// The instance is set up: others may be.
    pub(super) fn release_lock(&mut self) {
        self.lock = None;
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        run(&self.file);
        // If a signal ends the wait for the lock, the next start restores the setting.
        let lock = self.lock.take().or_else(|| lock().ok());
        if lock.is_some() {
            restore_forwarding();
        }
    }
}

/// Runs the commands of a file and removes it. Errors are ignored: the change that a command undoes may not have been made.
fn run(file: &Path) {
    for line in fs::read_to_string(file).unwrap_or_default().lines() {
        let mut words = line.split('\t');
        if let Some(program) = words.next() {
            let _ = Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
    let _ = fs::remove_file(file);
}

/// Lets the namespace outside forward IPv4 packets, until its last instance ends.
pub(super) fn allow_forwarding() -> io::Result<()> {
    let value = fs::read_to_string(FORWARDING)?;
    if value.trim() == "0" {
        fs::write(setting()?, &value)?;
        fs::write(FORWARDING, "1")?;
    }
    Ok(())
}

fn setting() -> io::Result<PathBuf> {
    Ok(Path::new(FOLDER).join(format!("{}-{SETTING}", namespace()?)))
}

/// True if an instance that runs needs the setting of this namespace.
fn is_needed(files: &[Left], namespace: u64) -> bool {
    files.iter().any(|file| file.namespace == namespace && file.instance.is_some_and(Instance::is_alive))
}

/// Restores the setting if no instance in this namespace needs it any more. True if it was changed.
fn restore_forwarding() -> bool {
    let Ok(here) = namespace() else { return false };
    if is_needed(&files(), here) {
        return false;
    }
    let Ok(old) = setting() else { return false };
    let Ok(value) = fs::read_to_string(&old) else { return false };
    fs::write(FORWARDING, value).is_ok() && fs::remove_file(old).is_ok()
}

/// A file of an instance, or the one with the old setting.
struct Left {
    path: PathBuf,
    namespace: u64,
    instance: Option<Instance>,
}

fn files() -> Vec<Left> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (namespace, rest) = name.split_once('-')?;
        let instance = Instance::parse(rest);
        (instance.is_some() || rest == SETTING)
            .then(|| Some(Left { path: entry.path(), namespace: namespace.parse().ok()?, instance }))?
    };
    entries.filter_map(read).collect()
}

/// The numbers of all processes.
pub(super) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes that an instance started and that have outlived it.
fn orphans() -> Vec<u32> {
    // The numbers of processes in another container mean something else there.
    let numbering = |process: &str| fs::metadata(format!("/proc/{process}/ns/pid")).ok().map(|meta| meta.ino());
    let own = numbering("self");
    let is_orphan = |process: &u32| {
        if numbering(&process.to_string()) != own {
            return false;
        }
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let mut marks = environment.split(|byte| *byte == 0).filter_map(|variable| {
            let value = std::str::from_utf8(variable).ok()?.strip_prefix(MARK)?.strip_prefix('=')?;
            Instance::parse(value)
        });
        marks.any(|instance| !instance.is_alive())
    };
    processes().filter(is_orphan).collect()
}

/// Undoes the changes that killed instances have left in this namespace, and returns them.
pub(super) fn clean() -> Vec<String> {
    let mut cleaned = Vec::new();
    for process in orphans() {
        if kill(Pid::from_raw(process.cast_signed()), Signal::SIGKILL).is_ok() {
            cleaned.push(format!("process {process}"));
        }
    }
    let Ok(here) = namespace() else { return cleaned };
    let (ours, theirs): (Vec<Left>, Vec<Left>) = files().into_iter().partition(|left| left.namespace == here);
    for left in ours {
        if left.instance.is_some_and(|instance| !instance.is_alive()) {
            run(&left.path);
            cleaned.push("firewall rules".to_owned());
        }
    }
    if !theirs.is_empty() {
        let places = places();
        // If the namespace is gone, so is everything in it.
        for left in theirs.iter().filter(|left| !places.contains_key(&left.namespace)) {
            let _ = fs::remove_file(&left.path);
        }
    }
    if restore_forwarding() {
        cleaned.push(format!("{SYSCTL} = 1"));
    }
    cleaned
}

/// What killed instances have left.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// The next start removes these.
    pub(crate) here: Vec<String>,
    /// Changes in other network namespaces, and where those are: the next start in that namespace removes them.
    pub(crate) elsewhere: Vec<(String, String)>,
}

/// What killed instances have left.
pub(crate) fn found() -> Leftovers {
    let mut here: Vec<String> = orphans().into_iter().map(|process| format!("process {process}")).collect();
    let mut elsewhere = Vec::new();
    let files = files();
    let own = namespace().unwrap_or(0);
    let places = if files.iter().any(|left| left.namespace != own) { places() } else { BTreeMap::new() };
    for left in &files {
        let what = match left.instance {
            Some(instance) if instance.is_alive() => continue,
            Some(_) => "firewall rules".to_owned(),
            None if is_needed(&files, left.namespace) => continue,
            None => format!("{SYSCTL} = 1"),
        };
        if left.namespace == own {
            here.push(what);
        } else if let Some(place) = places.get(&left.namespace) {
            elsewhere.push((what, place.clone()));
        }
    }
    here.sort();
    here.dedup();
    elsewhere.sort();
    elsewhere.dedup();
    Leftovers { here, elsewhere }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_not_confused_with_a_later_process() {
        let here = Instance::current();
        assert!(here.is_alive());
        assert_eq!(Instance::parse(&here.to_string()), Some(here));
        assert!(!Instance { started: here.started + 1, ..here }.is_alive());
        assert!(!Instance { process: u32::MAX, ..here }.is_alive());
        assert_eq!(Instance::parse("forwarding"), None);
    }
}
