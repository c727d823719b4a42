//! Checks what this machine can run, and how to enable the rest.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use nix::libc::_exit;
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Uid, fork, geteuid, setuid};

use crate::emulate::leftovers;
use crate::namespace::{self, TUN};
use crate::packet_socket::{ANY, PacketSocket};
use crate::programs::is_installed;
use crate::service::{interfaces, setting};

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
    /// Information for the user.
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
    let algorithms = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let algorithms = algorithms.unwrap_or_default().trim().to_owned();
    let have_cubic = algorithms.split_whitespace().any(|name| name == "cubic");
    vec![
        check("simulator", true, true, "always available"),
        tun(),
        network_namespaces(),
        user_namespaces(),
        packet_sockets(),
        check("kernel:cubic", have_cubic, true, format!("this kernel has {}", algorithms.replace(' ', ", "))),
        translation(),
        queues(),
        reverse_paths(),
        leftovers(),
        extra("tshark", "tshark", "used by the tests", "apt install tshark"),
        extra("ns-2", "ns", "an independent simulator, used by `make bench`", "apt install ns2"),
    ]
}

/// The device that creates TUN devices: all live traffic goes through one.
fn tun() -> Check {
    let opened = File::options().read(true).write(true).open(TUN);
    let note = match opened.as_ref().map_err(io::Error::kind) {
        Ok(_) => "needed by reknit testbed and emulate, and by reknit-net",
        Err(io::ErrorKind::PermissionDenied) => {
            "needed by reknit testbed and emulate; only root may open it: run reknit as root, or `sudo chmod 666 /dev/net/tun`"
        }
        Err(_) => "needed by reknit testbed and emulate; `modprobe tun`, or give the container the device",
    };
    check("/dev/net/tun", opened.is_ok(), true, note)
}

fn network_namespaces() -> Check {
    let users = "needed by reknit testbed, matrix --live and script --kernel, and by emulate as root";
    let error = namespace_error();
    let note = error.as_ref().map_or_else(
        || users.to_owned(),
        |error| format!("{users}: {error}; run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN"),
    );
    check("network namespaces", error.is_none(), true, note)
}

fn user_namespaces() -> Check {
    let error = user_namespace_error();
    let note = error.map_or_else(
        || "reknit emulate runs without root, if /dev/net/tun may be opened".to_owned(),
        |error| {
            format!(
                "reknit emulate needs root: {}; to run it without root: docs/guide/emulate.md#without-root",
                error.desc()
            )
        },
    );
    check("user namespaces", error.is_none(), false, note)
}

fn packet_sockets() -> Check {
    let found = PacketSocket::open(ANY).is_ok();
    let note = if found { "needed by reknit watch" } else { "reknit watch needs root, or the capability CAP_NET_RAW" };
    check("packet sockets", found, false, note)
}

/// The program that translates addresses.
fn translation() -> Check {
    let found = ["nft", "iptables"].into_iter().find(|program| is_installed(program));
    let note = match found {
        Some(program) => format!("{program} is used by reknit emulate as root"),
        None => {
            "reknit emulate relays connections to the outside; to translate addresses instead: apt install nftables"
                .to_owned()
        }
    };
    check("nft or iptables", found.is_some(), false, note)
}

/// What `reknit shield` holds packets with.
fn queues() -> Check {
    let has_queues = Path::new("/proc/self/net/netfilter/nfnetlink_queue").exists();
    let missing = ["iptables", "ip6tables"].into_iter().find(|program| !is_installed(program));
    let note = match missing {
        _ if !has_queues => "reknit shield cannot hold packets; `modprobe nfnetlink_queue`".to_owned(),
        Some(program) => format!("reknit shield needs {program}; apt install iptables"),
        None => "used by reknit shield".to_owned(),
    };
    check("NFQUEUE", has_queues && missing.is_none(), false, note)
}

/// Interfaces that drop packets whose return route uses another interface, as on a machine with two uplinks.
fn reverse_paths() -> Check {
    let value = |name: &str| setting(&format!("net.ipv4.conf.{name}.rp_filter")).and_then(|value| value.parse().ok());
    let all: u8 = value("all").unwrap_or(0);
    let mut strict: Vec<String> = interfaces().filter(|name| value(name).unwrap_or(0).max(all) == 1).collect();
    strict.sort();
    let note = match strict.as_slice() {
        [] => "no interface drops packets whose return route uses another one".to_owned(),
        [first, ..] => format!(
            "strict on {}: drops packets whose return route uses another interface; where connections use several, as with \
             `reknit shield --mode equalise`: sysctl -w net.ipv4.conf.{first}.rp_filter=2",
            strict.join(", ")
        ),
    };
    Check { name: "rp_filter", state: if strict.is_empty() { State::Ok } else { State::Attention }, note }
}

/// Changes that killed emulations have left behind.
fn leftovers() -> Check {
    let found = leftovers::found();
    let mut notes = Vec::new();
    if !found.here.is_empty() {
        notes.push(format!("{} of killed emulations; the next `reknit emulate` removes them", found.here.join(", ")));
    }
    notes.extend(found.elsewhere.iter().map(|(what, place)| {
        format!(
            "{what} of a killed emulation in the network namespace {place}; the next `reknit emulate` in that namespace \
             removes them"
        )
    }));
    let state = if notes.is_empty() { State::Ok } else { State::Attention };
    if notes.is_empty() {
        notes.push("nothing is left of killed emulations".to_owned());
    }
    Check { name: "leftovers", state, note: notes.join("; ") }
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

/// An ordinary user.
const NOBODY: Uid = Uid::from_raw(65534);

/// Tries to create a user namespace and a network namespace in it, as an ordinary user, in a process with which they end. Some
/// machines refuse only the second.
fn user_namespace_error() -> Option<nix::Error> {
    #[expect(unsafe_code, reason = "only a process with one thread may enter a user namespace")]
    // SAFETY: the child makes only system calls, so it does not matter what other threads hold.
    let forked = unsafe { fork() };
    match forked {
        Err(error) => Some(error),
        Ok(ForkResult::Child) => {
            let ordinary = if geteuid().is_root() { setuid(NOBODY) } else { Ok(()) };
            let made = ordinary.and_then(|()| unshare(CloneFlags::CLONE_NEWUSER));
            let made = made.and_then(|()| unshare(CloneFlags::CLONE_NEWNET));
            #[expect(unsafe_code, reason = "no destructor of the parent may run")]
            // SAFETY: ends the process.
            unsafe {
                _exit(made.map_or_else(|error| error as i32, |()| 0))
            }
        }
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => None,
            Ok(WaitStatus::Exited(_, error)) => Some(nix::Error::from_raw(error)),
            Ok(_) => Some(nix::Error::UnknownErrno),
            Err(error) => Some(error),
        },
    }
}
