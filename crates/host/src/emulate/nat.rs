//! Network address translation (NAT) outside, so that the command reaches everything that this machine reaches.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command, Stdio};

use nix::fcntl::Flock;

use super::leftovers::{self, CleanupGuard, Instance};
use super::namespaces::Subnet;
use crate::programs::is_installed;

/// True if NAT is available: the programs that it needs are installed.
pub(super) fn is_possible() -> bool {
    is_installed("nft") || is_installed("iptables")
}

/// True if this machine already forwards IPv6 and has a default route. Forwarding is not switched on for IPv6, because
/// a machine that forwards ignores router advertisements (`accept_ra` in ip-sysctl), and might lose its own route.
pub(super) fn reaches_v6() -> bool {
    let forwards = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").is_ok_and(|text| text.trim() == "1");
    let routes = fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap_or_default();
    let is_default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields.as_slice(), [destination, "00", .., device]
            if *device != "lo" && destination.bytes().all(|byte| byte == b'0'))
    };
    forwards && is_installed("nft") && routes.lines().any(is_default)
}

/// Translates the addresses of `subnet`, whose outer device is `device`, and lets its packets pass. Releases the
/// lock when that is done. The result undoes it when dropped.
pub(super) fn set_up(
    instance: Instance,
    subnet: Subnet,
    device: &str,
    v6: bool,
    lock: Flock<File>,
) -> io::Result<CleanupGuard> {
    let rules =
        if is_installed("nft") { Rules::nft(instance, subnet, device, v6) } else { Rules::iptables(subnet, device) };
    let mut undo = CleanupGuard::promise(instance, &rules.undo, lock)?;
    leftovers::allow_forwarding()?;
    rules.apply()?;
    undo.release_lock();
    Ok(undo)
}

/// Commands, and the commands that undo them.
struct Rules {
    commands: Vec<Vec<String>>,
    /// The standard input of the first command.
    input: String,
    undo: Vec<Vec<String>>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The nftables table with this name, for packets from `source` that arrive from `device`.
fn table_of(name: &str, source: &str, device: &str) -> String {
    // A packet whose checksum the path has broken is not translated, and must not leave with its own address.
    format!(
        "table {name} {{
            chain translate {{
                type nat hook postrouting priority 100;
                {source} oifname != \"{device}\" masquerade
            }}
            chain pass {{
                type filter hook forward priority 0;
                iifname \"{device}\" ct state invalid drop
            }}
        }}\n"
    )
}

impl Rules {
    fn nft(instance: Instance, subnet: Subnet, device: &str, v6: bool) -> Rules {
        let mut input = String::new();
        let mut undo = Vec::new();
        let source = format!("ip saddr {}/30", subnet.outer());
        let source_v6 = format!("ip6 saddr {}/64", subnet.outer_v6());
        for (family, source) in [("ip", source)].into_iter().chain(v6.then_some(("ip6", source_v6))) {
            let table = format!("{family} reknit_{instance}");
            input += &table_of(&table, &source, device);
            undo.push(words(&format!("nft delete table {table}")));
        }
        let mut rules = Rules { commands: vec![words("nft -f -")], input, undo };
        if drops_forwarded() {
            rules.pass(device);
        }
        rules
    }

    fn iptables(subnet: Subnet, device: &str) -> Rules {
        let mut rules = Rules { commands: Vec::new(), input: String::new(), undo: Vec::new() };
        let source = subnet.outer();
        rules.iptables_rule(&format!("-t nat -I POSTROUTING -s {source}/30 ! -o {device} -j MASQUERADE"));
        rules.pass(device);
        rules.iptables_rule(&format!("-I FORWARD -i {device} -m conntrack --ctstate INVALID -j DROP"));
        rules
    }

    /// Lets packets from and to `device` pass.
    fn pass(&mut self, device: &str) {
        for side in ["-i", "-o"] {
            self.iptables_rule(&format!("-I FORWARD {side} {device} -j ACCEPT"));
        }
    }

    fn iptables_rule(&mut self, rule: &str) {
        self.commands.push(words(&format!("iptables -w {rule}")));
        self.undo.push(words(&format!("iptables -w {}", rule.replacen("-I ", "-D ", 1))));
    }

    fn apply(&self) -> io::Result<()> {
        let mut input = self.input.as_str();
        for command in &self.commands {
            execute(command, input)?;
            input = "";
        }
        Ok(())
    }
}

/// True if iptables drops forwarded packets unless a rule lets them pass, as with Docker or ufw. A rule of another table
/// cannot let them pass.
fn drops_forwarded() -> bool {
    let rules = Command::new("iptables").args(["-w", "-S", "FORWARD"]).stderr(Stdio::null()).output();
    rules.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("-P FORWARD DROP"))
}

fn execute(command: &[String], input: &str) -> io::Result<()> {
    let line = command.join(" ");
    let failed = |what: String| io::Error::other(format!("`{line}`: {what}"));
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(failed(error.to_string())),
            _ => {} // if it did not read its input, it says why
        }
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed").trim().to_owned()))
}
