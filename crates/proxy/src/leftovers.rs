//! One instance for each network namespace, and what a killed one has left: its rules have fixed names, so they are found without
//! a record. Only kernel settings, and the generation of its marks, are in a file.

use std::fs;
use std::process::{Command, Stdio};

use reknit_host::service::{self, Plan, Step, setting};

use crate::marks::{GENERATIONS, Marks};
use crate::settings::Settings;
use crate::steering::{self, Machine, TABLE};

/// The lock of a running instance.
#[derive(Debug)]
pub struct Lock(service::Lock);

impl Lock {
    /// Takes the lock of this network namespace.
    ///
    /// # Errors
    /// If another instance runs here, or the folder cannot be written.
    pub fn take() -> Result<Lock, String> {
        service::Lock::take("proxy")?.map(Lock).ok_or_else(|| {
            "another `reknit proxy` runs in this network namespace; add its listeners to a file and send it SIGHUP"
                .to_owned()
        })
    }

    /// The marks of this instance: of another generation than the last.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn marks(&self) -> Result<Marks, String> {
        let file = self.0.file("generation");
        let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let generation = last.map_or(0, |last| (last + 1) % GENERATIONS);
        fs::write(&file, generation.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Marks::new(generation))
    }

    /// Remembers what must be undone, before it is done.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn promise(&self, plan: &Plan) -> Result<(), String> {
        let settings: Vec<String> = plan.undo.iter().filter_map(changed_setting).collect();
        let file = self.0.file("settings");
        fs::write(&file, settings.join("\n")).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Undoes what a killed instance has left. True if there was something.
    pub fn clean(&self) -> bool {
        let found = exist() || !self.changed().is_empty();
        for (option, is_v4) in [("-4", true), ("-6", false)] {
            let machine = Machine { has_local: moved_local(option), ..Machine::default() };
            steering::plan(&Settings::for_family(is_v4), Marks::new(0), &machine).remove();
        }
        for (key, value) in self.changed() {
            let _ = Step::Set(key, value).execute();
        }
        self.forget();
        found
    }

    /// Everything is undone: what changes from now on is not ours.
    pub fn forget(&self) {
        let _ = fs::remove_file(self.0.file("settings"));
    }

    /// The settings of the kernel that a killed instance has changed, with their former values.
    fn changed(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.0.file("settings")).unwrap_or_default();
        let former = text.lines().filter_map(|line| line.split_once('='));
        let changed = former.filter(|(key, value)| setting(key).is_some_and(|now| now != *value));
        changed.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

fn changed_setting(step: &Step) -> Option<String> {
    match step {
        Step::Set(key, value) => Some(format!("{key}={value}")),
        Step::Run(_) | Step::Nft(_) => None,
    }
}

/// True if the table of nftables exists in this network namespace.
fn exist() -> bool {
    let list =
        Command::new("nft").args(["list", "table", "inet", TABLE]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    list.is_ok_and(|status| status.success())
}

/// True if the rule for local addresses is not the first.
fn moved_local(option: &str) -> bool {
    let rules = Command::new("ip").args([option, "rule", "show", "pref", "0"]).stderr(Stdio::null()).output();
    rules.is_ok_and(|output| output.status.success() && output.stdout.is_empty())
}

/// What a killed instance has left in this network namespace; none if one runs.
pub fn found() -> Option<String> {
    let lock = Lock::take().ok()?;
    let rules = exist().then(|| format!("nft table inet {TABLE}"));
    let settings = lock.changed().into_iter().map(|(key, value)| format!("{key} was {value}"));
    let left: Vec<String> = rules.into_iter().chain(settings).collect();
    (!left.is_empty()).then(|| format!("the rules and settings of a killed `reknit proxy` ({})", left.join(", ")))
}
