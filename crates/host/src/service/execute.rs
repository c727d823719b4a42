//! Programs and kernel settings: one step of a change to this machine.

use std::fmt;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A program with arguments.
    Run(String),
    /// A script for `nft -f -`.
    Nft(String),
    /// A setting below `/proc/sys`, with dots, and its value.
    Set(String, String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Run(line) => f.write_str(line),
            Step::Nft(script) => write!(f, "nft -f - <<'END'\n{}\nEND", script.trim_end()),
            Step::Set(key, value) => write!(f, "sysctl -w {key}={value}"),
        }
    }
}

impl Step {
    /// Does it.
    ///
    /// # Errors
    /// One line: the command or setting, and what went wrong.
    pub fn execute(&self) -> Result<(), String> {
        match self {
            Step::Run(line) => run(line, ""),
            Step::Nft(script) => run("nft -f -", script),
            Step::Set(key, value) => {
                let file = file_of(key);
                fs::write(&file, value).map_err(|error| format!("{key}: {}", reknit_config::file_error(&error)))
            }
        }
    }
}

/// The file of a setting. Names of interfaces may have dots, so only those before and after the name separate.
fn file_of(key: &str) -> String {
    match key.strip_prefix("net.ipv4.conf.").and_then(|rest| rest.rsplit_once('.')) {
        Some((interface, setting)) => format!("/proc/sys/net/ipv4/conf/{interface}/{setting}"),
        None => format!("/proc/sys/{}", key.replace('.', "/")),
    }
}

/// The interfaces of this network namespace that have settings of IPv4, except loopback.
pub fn interfaces() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !["all", "default", "lo"].contains(&name.as_str()))
}

/// The value of a setting.
pub fn setting(key: &str) -> Option<String> {
    fs::read_to_string(file_of(key)).ok().map(|value| value.trim().to_owned())
}

fn run(line: &str, input: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let failed = |what: &str| format!("`{line}`: {what}");
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&reknit_config::file_error(&error)))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes()); // if it does not read, it says why
    }
    let output = child.wait_with_output().map_err(|error| failed(&reknit_config::file_error(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_may_have_dots_in_their_names() {
        assert_eq!(file_of("net.ipv4.conf.eth0.7.forwarding"), "/proc/sys/net/ipv4/conf/eth0.7/forwarding");
        assert_eq!(file_of("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
    }

    #[test]
    fn a_failure_names_the_command_and_its_first_line() {
        let error = Step::Run("sh -c no-such-program-here".to_owned()).execute().unwrap_err();
        assert!(error.starts_with("`sh -c no-such-program-here`: ") && error.lines().count() == 1, "{error}");
        assert!(Step::Run("no-such-program-here".to_owned()).execute().unwrap_err().contains("No such file"));
    }
}
