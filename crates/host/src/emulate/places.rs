//! Network namespaces that exist, and where. [`super::leftovers`] asks, because what a killed emulation has changed in one
//! stays as long as the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::leftovers::processes;

/// Network namespaces by number: the file on which each is mounted, or a process in it.
pub(super) fn places() -> BTreeMap<u64, String> {
    let mut places = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let number = |process: &str, kind| Some(fs::metadata(format!("/proc/{process}/ns/{kind}")).ok()?.ino());
    let others: Vec<String> = processes().map(|process| process.to_string()).collect();
    for process in ["self"].into_iter().chain(others.iter().map(String::as_str)) {
        // Processes share their view of the mounted file systems, which is long.
        if number(process, "mnt").is_some_and(|view| seen.insert(view)) {
            let mounts = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
            for (namespace, file) in mounts.lines().filter_map(mounted) {
                let whose = if process == "self" { String::new() } else { format!(" of process {process}") };
                places.entry(namespace).or_insert_with(|| format!("{file}{whose}"));
            }
        }
    }
    for process in others {
        if let Some(namespace) = number(&process, "net") {
            places.entry(namespace).or_insert_with(|| format!("of process {process}"));
        }
    }
    places
}

/// The network namespace that a line of `/proc/PID/mountinfo` says is mounted, and on which file.
fn mounted(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split(' ').skip(3);
    let namespace = fields.next()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    let file = fields.next()?;
    line.contains(" - nsfs ").then_some((namespace, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounted_namespaces_are_recognized() {
        let line = "501 25 0:4 net:[4026532287] /run/netns/a rw shared:263 - nsfs nsfs rw";
        assert_eq!(mounted(line), Some((4_026_532_287, "/run/netns/a")));
        assert_eq!(mounted(&line.replace("net:", "mnt:")), None);
        assert_eq!(mounted("23 28 0:21 / /proc rw,nosuid shared:13 - proc proc rw"), None);
        assert_eq!(mounted(""), None);
    }
}
