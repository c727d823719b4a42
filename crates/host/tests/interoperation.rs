//! Live transfers between the engine and the kernel's TCP: as client and as server, sending and receiving.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reknit_host::testbed::Payload;
use reknit_host::{Initiator, Spec, StopReason, Tcp, TcpError, TestbedError, TransferResult, run};
use reknit_path::Profile;
use reknit_tcp::Config;
use reknit_testkit::machine;
use reknit_units::{Bytes, Duration};
use reknit_variants::VARIANTS;

/// The engine's role in a transfer.
#[derive(Clone, Copy, Debug)]
enum Role {
    ClientSends,
    ClientReceives,
    ServerSends,
    ServerReceives,
}

const ROLES: [Role; 4] = [Role::ClientSends, Role::ClientReceives, Role::ServerSends, Role::ServerReceives];

fn spec(path: &str, role: Role, size: u64) -> Spec {
    let profile = Profile::load(path, &[]).unwrap();
    let kernel: Tcp = "kernel:cubic".parse().unwrap();
    let ours: Tcp = "rack".parse().unwrap();
    let we_send = matches!(role, Role::ClientSends | Role::ServerSends);
    let (sender, receiver) = if we_send { (ours, kernel) } else { (kernel, ours) };
    Spec {
        profile,
        tcp: Config { min_rto: Duration::from_millis(200), ..Config::default() },
        sender,
        receiver,
        opener: match role {
            Role::ClientSends | Role::ServerReceives => Initiator::Sender,
            Role::ClientReceives | Role::ServerSends => Initiator::Receiver,
        },
        payload: Payload::Pattern(Bytes(size)),
        duration: Duration::from_secs(90),
        ipv6: false,
        seed: 1,
        capture_sender: None,
        capture_receiver: None,
    }
}

/// The transfer finished normally, with the same bytes at both ends.
fn assert_clean(what: &str, spec: &Spec, outcome: &TransferResult) {
    let Payload::Pattern(size) = spec.payload else { panic!("no size") };
    assert_eq!(outcome.ending, StopReason::Finished, "{what}");
    assert_eq!(outcome.sent.bytes, size, "{what}: sent");
    assert_eq!(outcome.sent, outcome.received, "{what}: digests");
    assert_eq!(outcome.delivered, size, "{what}: delivered");
    // A copy of the last ACK may arrive at a port that is already closed, which answers with a RST.
    if spec.profile.name != "duplicates" {
        assert_eq!(outcome.resets, 0, "{what}: RST");
    }
    assert!(outcome.fins.iter().all(|fins| *fins >= 1), "{what}: FINs {:?}", outcome.fins);
    let info = outcome.info.expect("one end is the engine");
    assert!(info.sack && info.timestamps && info.window_scale > 0, "{what}: {info:?}");
}

/// Run this for all roles at the same time: each waits for its path most of the time. Each kernel end has a separate
/// network namespace, so that transfers do not affect each other.
fn in_all_roles(transfer: impl Fn(Role) + Sync) {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let transfer = &transfer;
    std::thread::scope(|scope| {
        for role in ROLES {
            scope.spawn(move || transfer(role));
        }
    });
}

fn transfer(path: &str, size: u64) {
    in_all_roles(|role| {
        let spec = spec(path, role, size);
        let outcome = run(&spec, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{path} {role:?}: {error}"));
        assert_clean(&format!("{path} {role:?}"), &spec, &outcome);
    });
}

#[test]
fn clean_path_100_mb() {
    transfer("clean", 100_000_000);
}

#[test]
fn one_per_cent_loss() {
    transfer("lossy", 5_000_000);
}

#[test]
fn thirty_per_cent_delayed() {
    transfer("random-delay", 5_000_000);
}

#[test]
fn two_paths_50_ms_apart() {
    transfer("two-paths-50ms", 5_000_000);
}

#[test]
fn one_per_cent_duplicated() {
    transfer("duplicates", 5_000_000);
}

/// A flipped bit reaches the kernel, whose checksum detects it.
#[test]
fn one_per_cent_corrupted() {
    for ipv6 in [false, true] {
        in_all_roles(|role| {
            let spec = Spec { ipv6, ..spec("corrupted", role, 5_000_000) };
            let what = format!("corrupted {role:?}, IPv6 {ipv6}");
            let outcome = run(&spec, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_clean(&what, &spec, &outcome);
            assert!(outcome.retransmissions > 0, "{what}: no data segment was dropped");
            if let Some(kernel) = &outcome.kernel {
                assert!(kernel.get("InCsumErrors") > 0, "{what}: the kernel dropped nothing");
            }
        });
    }
}

#[test]
fn clean_path_over_ipv6_100_mb() {
    in_all_roles(|role| {
        let spec = Spec { ipv6: true, ..spec("clean", role, 100_000_000) };
        let outcome = run(&spec, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("IPv6 {role:?}: {error}"));
        assert_clean(&format!("IPv6 {role:?}"), &spec, &outcome);
    });
}

/// Transfers of variants that run at the same time.
const AT_ONCE: usize = 10;

/// 1 MB to the kernel and 1 MB from it.
#[test]
fn every_variant_against_the_kernel() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let roles = [Role::ClientSends, Role::ClientReceives];
    let live = VARIANTS.iter().filter(|variant| !variant.is_simulated_only());
    let transfers: Vec<_> = live.flat_map(|variant| roles.map(|role| (variant.name, role))).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, role)) = transfers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = against_the_kernel(name, *role) {
                        failures.lock().unwrap().push(format!("{name} {role:?}: {error}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} transfers\n{}", failures.len(), transfers.len(), failures.join("\n"));
}

fn against_the_kernel(variant: &str, role: Role) -> Result<(), String> {
    let size = Bytes(1_000_000);
    let mut spec = spec("reordered-and-lossy", role, size.0);
    let ours: Tcp = variant.parse().map_err(|error: TcpError| error.to_string())?;
    match role {
        Role::ClientSends | Role::ServerSends => spec.sender = ours,
        Role::ClientReceives | Role::ServerReceives => spec.receiver = ours,
    }
    let outcome = run(&spec, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
    if outcome.ending != StopReason::Finished || outcome.received.bytes != size || outcome.sent != outcome.received {
        return Err(format!("sent {:?}, received {:?}", outcome.sent, outcome.received));
    }
    // A late segment that finds the connection closed is answered with a RST, so these are not counted. A RST that
    // arrives earlier is an error at that end.
    if outcome.fins.contains(&0) {
        return Err(format!("FINs {:?}", outcome.fins));
    }
    Ok(())
}

/// Two kernels with 10 MB to transfer, which takes 8 s at this path's rate.
fn kernels_with_too_little_time() -> Spec {
    let kernel: Tcp = "kernel:cubic".parse().unwrap();
    Spec {
        sender: kernel.clone(),
        receiver: kernel,
        duration: Duration::from_millis(1500),
        ..spec("lossy", Role::ClientSends, 10_000_000)
    }
}

#[test]
fn a_transfer_that_takes_too_long_is_an_outcome() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let ours: Tcp = "rack".parse().unwrap();
    let kernels = kernels_with_too_little_time();
    for spec in [Spec { sender: ours, ..kernels.clone() }, kernels] {
        let outcome = run(&spec, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.ending, StopReason::Unfinished, "{}", spec.sender);
        assert!(outcome.delivered > Bytes(10_000), "{}: {:?}", spec.sender, outcome.delivered);
        assert!(outcome.elapsed >= Duration::from_millis(1400), "{}: {:?}", spec.sender, outcome.elapsed);
    }
}

/// Two paths in turn, 200 ms apart: retransmissions fill holes whose originals arrive later with older timestamps. A
/// short transfer may by chance retransmit nothing that matters, so another one follows until there was a discard.
#[test]
fn a_receiver_discards_late_originals_only_if_there_are_timestamps() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let transfer = |sender: &str, receiver: &str| {
        let spec = Spec {
            sender: sender.parse().unwrap(),
            receiver: receiver.parse().unwrap(),
            payload: Payload::Endless,
            duration: Duration::from_secs(4),
            ..spec("two-paths-200ms", Role::ClientSends, 0)
        };
        let outcome = run(&spec, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.ending, StopReason::Stopped, "{sender} to {receiver}");
        (outcome.paws_discards(), outcome.kernel.map_or(0, |kernel| kernel.get("RetransSegs")))
    };
    for receiver in ["kernel:cubic", "rack"] {
        let discarded = (0..5).any(|_| transfer("kernel:cubic", receiver).0 > 0);
        assert!(discarded, "to {receiver}, with timestamps");
        let without: Vec<_> = (0..2).map(|_| transfer("kernel:cubic+timestamps=0", receiver)).collect();
        assert!(without.iter().all(|(discards, _)| *discards == 0), "to {receiver}, without timestamps: {without:?}");
        assert!(without.iter().any(|(_, retransmitted)| *retransmitted > 0), "to {receiver}: {without:?}");
    }
}

#[test]
fn a_setting_that_the_kernel_does_not_have_is_refused() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let check = |text: &str| match text.parse::<Tcp>().unwrap() {
        Tcp::Kernel(kernel) => kernel.check().map_err(|error| error.to_string()),
        Tcp::Engine(..) => panic!("{text} is a kernel's"),
    };
    assert_eq!(check("kernel:cubic+sack=0"), Ok(()));
    let unknown = check("kernel:cubic+sacks=0").unwrap_err();
    assert!(unknown.starts_with("this kernel has no per-namespace setting net.ipv4.tcp_sacks"), "{unknown}");
    assert!(unknown.contains(", sack, "), "{unknown}");
    let value = check("kernel:cubic+sack=many").unwrap_err();
    assert!(value.starts_with("this kernel does not accept many for net.ipv4.tcp_sack"), "{value}");
    let control = check("kernel:vegas2").unwrap_err();
    assert!(control.starts_with("this kernel has no congestion control `vegas2`; it has"), "{control}");
}

/// The number of network namespaces of this process's threads.
fn namespaces() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |task: std::fs::DirEntry| std::fs::read_link(task.path().join("ns/net")).ok();
    let all: std::collections::BTreeSet<_> = tasks.filter_map(|task| of_task(task.unwrap())).collect();
    all.len()
}

/// Runs in a separate process, without the namespaces of other tests.
#[test]
fn a_cancelled_transfer_leaves_no_namespace() {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let name = "a_cancelled_transfer_leaves_no_namespace";
    if std::env::var_os("REKNIT_ALONE").is_none() {
        let this = std::env::current_exe().unwrap();
        let alone = Command::new(this).args(["--exact", name]).env("REKNIT_ALONE", "1").output().unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let during = (0..100).find(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                namespaces() == 3
            });
            assert!(during.is_some(), "each kernel has a namespace: {}", namespaces());
            cancel.store(true, Ordering::Relaxed);
        });
        let result = run(&kernels_with_too_little_time(), &cancel);
        assert!(matches!(result, Err(TestbedError::Cancelled)), "{result:?}");
    });
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        namespaces() == 1
    });
    assert!(gone, "{} namespaces are left", namespaces());
}

/// The packets of a capture that a display filter shows, one per line.
fn tshark(file: &Path, filter: &str) -> String {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn wireshark_reads_the_captures() {
    if !machine::has(&["tshark"]) {
        return;
    }
    // Linux may write a TCP checksum of zero as 0xffff, which is equal in one's complement but bad to tshark.
    let wrong = "!tcp || _ws.malformed || ip.checksum.status == \"Bad\" || \
                 (tcp.checksum.status == \"Bad\" && tcp.checksum != 0xffff)";
    in_all_roles(|role| {
        let folder = tempfile::tempdir().unwrap();
        let [sender, receiver] = ["sender.pcapng", "receiver.pcapng"].map(|name| folder.path().join(name));
        let spec = Spec {
            capture_sender: Some(sender.clone()),
            capture_receiver: Some(receiver.clone()),
            ..spec("lossy", role, 1_000_000)
        };
        let outcome = run(&spec, &AtomicBool::new(false)).unwrap();
        for file in [sender, receiver] {
            let packets = tshark(&file, "tcp").lines().count() as u64;
            assert!(packets >= outcome.delivered.0 / 1460, "{role:?}: too few packets");
            assert_eq!(tshark(&file, wrong), "", "{role:?}: malformed, with a wrong checksum or foreign");
        }
    });
}
