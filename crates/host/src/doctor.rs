//! Checks what this machine can run, and how to enable the rest.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use crate::emulate::leftovers;
use crate::namespace;

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// What was found.
    pub state: State,
    /// What it is used for, or how to get it.
    pub note: String,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is available.
    Ok,
    /// It is missing, and live transfers need it.
    Missing,
    /// It is missing, and only optional features need it.
    Optional,
    /// Something that the user should know.
    Attention,
}

fn check(name: &'static str, found: bool, needed: bool, note: impl Into<String>) -> Check {
    let state = match (found, needed) {
        (true, _) => State::Ok,
        (false, true) => State::Missing,
        (false, false) => State::Optional,
    };
    Check { name, state, note: note.into() }
}

/// True if live transfers can run.
pub fn can_run_testbed() -> bool {
    namespace_error().is_none()
}

/// Runs all checks.
pub fn examine() -> Vec<Check> {
    let tun = Path::new("/dev/net/tun").exists();
    let namespace = namespace_error();
    let note = match &namespace {
        None => "needed by reknit testbed and emulate".to_owned(),
        Some(error) => format!("{error}; run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN"),
    };
    let algorithms = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let algorithms = algorithms.unwrap_or_default().trim().to_owned();
    let have_cubic = algorithms.split_whitespace().any(|name| name == "cubic");
    vec![
        check("simulator", true, true, "simulations need nothing else"),
        check(
            "/dev/net/tun",
            tun,
            true,
            if tun { "needed by reknit testbed and emulate" } else { "load the module: modprobe tun" },
        ),
        check("network namespaces", namespace.is_none(), true, note),
        check("kernel:cubic", have_cubic, true, format!("congestion controls of this kernel: {algorithms}")),
        extra("nft", "nft", "connects reknit emulate to the outside", "apt install nftables"),
        leftovers(),
        extra("tshark", "tshark", "reads captures in tests", "apt install tshark"),
        extra("ns-2", "ns", "an independent simulator, for `make bench`", "apt install ns2"),
    ]
}

/// What killed emulations have left behind.
fn leftovers() -> Check {
    let found = leftovers::found();
    let note = match found.as_slice() {
        [] => "nothing is left of killed emulations".to_owned(),
        _ => format!("{} of killed emulations; the next `reknit emulate` removes them", found.join(", ")),
    };
    Check { name: "leftovers", state: if found.is_empty() { State::Ok } else { State::Attention }, note }
}

/// A program that only optional features need.
fn extra(name: &'static str, program: &str, purpose: &str, install: &str) -> Check {
    let found = is_installed(program);
    check(name, found, false, if found { purpose.to_owned() } else { format!("{purpose}; to install it: {install}") })
}

/// Tries to create a namespace, in a thread with which the namespace ends.
fn namespace_error() -> Option<String> {
    let [local, remote] = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 77, 0, n)));
    let attempt = std::thread::spawn(move || namespace::enter(local, remote).map(|_| ()));
    match attempt.join() {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the attempt panicked".to_owned()),
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
