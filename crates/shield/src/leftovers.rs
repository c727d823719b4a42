//! One instance for each network namespace, and what a killed one has left: its rules have fixed names, so they are found without
//! a record.

use std::process::{Command, Stdio};

use reknit_host::service::{self, Step};

use crate::rules::{CHAIN, PROGRAMS};

/// The lock of a running instance.
#[derive(Debug)]
pub struct Lock {
    _lock: service::Lock,
}

impl Lock {
    /// Takes the lock of this network namespace.
    ///
    /// # Errors
    /// If another instance runs here, or the folder cannot be written.
    pub fn take() -> Result<Lock, String> {
        let taken = service::Lock::take("shield")?.map(|lock| Lock { _lock: lock });
        taken.ok_or_else(|| {
            "another `reknit shield` runs in this network namespace; give it several --interface instead".to_owned()
        })
    }
}

/// Undoes what a killed instance has left. True if there was something. Only while the lock is held.
pub(crate) fn clean(_: &Lock) -> bool {
    let mut found = false;
    for program in PROGRAMS {
        for rule in rules(program) {
            found = true;
            let _ = Step::Run(format!("{program} -w -t mangle {rule}")).execute(); // the next start reports what is wrong
        }
    }
    found
}

/// The arguments of `program` that remove our rules and the chain.
fn rules(program: &str) -> Vec<String> {
    let listed = Command::new(program).args(["-w", "-t", "mangle", "-S"]).stderr(Stdio::null()).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    removals(&text)
}

fn removals(listing: &str) -> Vec<String> {
    let jumps = listing.lines().filter(|line| line.ends_with(&format!("-j {CHAIN}")));
    let mut removals: Vec<String> =
        jumps.filter_map(|line| line.strip_prefix("-A ").map(|rule| format!("-D {rule}"))).collect();
    if listing.lines().any(|line| line == format!("-N {CHAIN}")) {
        removals.extend(["-F", "-X"].map(|flag| format!("{flag} {CHAIN}")));
    }
    removals
}

/// What a killed instance has left in this network namespace; none if one runs.
pub fn found() -> Option<String> {
    let exists = PROGRAMS.iter().any(|program| !rules(program).is_empty());
    let runs = || Lock::take().is_err();
    (exists && !runs()).then(|| format!("the rules of a killed `reknit shield` (iptables -t mangle, chain {CHAIN})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_rules_are_removed() {
        let listing = "-P INPUT ACCEPT\n-N REKNIT_SHIELD\n-N OTHER\n-A INPUT -i wan0 -p tcp -j REKNIT_SHIELD\n\
                       -A INPUT -i wan0 -p tcp -j OTHER\n-A REKNIT_SHIELD -j NFQUEUE --queue-num 1 --queue-bypass\n";
        let expected = ["-D INPUT -i wan0 -p tcp -j REKNIT_SHIELD", "-F REKNIT_SHIELD", "-X REKNIT_SHIELD"];
        assert_eq!(removals(listing), expected);
        assert!(removals("-N OTHER\n").is_empty());
    }
}
