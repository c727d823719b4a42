//! Programs over an emulated path. All traffic stays in namespaces that the command makes.

#[path = "emulate/leftovers.rs"]
mod leftovers;
#[path = "emulate/other_end.rs"]
mod other_end;
#[path = "emulate/undelivered.rs"]
mod undelivered;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reknit_testkit::machine;
use serde_json::Value;
use tempfile::TempDir;

/// Machines are shared: what depends on time may fail this often before it counts.
const ATTEMPTS: u32 = 5;

fn reknit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reknit"));
    command.stdin(Stdio::null());
    command
}

/// Programs with which a test becomes an ordinary user.
const USER: [&str; 3] = ["unshare", "mount", "setpriv"];

/// False if the test is skipped: emulation is not possible, or one of these programs is missing.
fn can_run(programs: &[&str]) -> bool {
    machine::has(&[&machine::LIVE[..], programs].concat())
}

fn run(arguments: &[&str]) -> Output {
    reknit().arg("emulate").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Repeats `attempt` until it returns no objection.
fn repeat(attempt: impl Fn() -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(objection) => last = objection,
        }
    }
    panic!("{last}");
}

fn close(what: &str, value: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    if (value - expected).abs() <= tolerance {
        Ok(())
    } else {
        Err(format!("{what} is {value}, not within {tolerance} of {expected}"))
    }
}

/// A folder in which every user may write; it is removed when dropped.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path file with these stages forward and back.
    fn path(&self, name: &str, stages: &str) -> String {
        let file = self.file(name);
        std::fs::write(&file, format!("description = \"a test\"\n{stages}")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn delay_path(&self, name: &str, forward_ms: u32, reverse_ms: u32) -> String {
        let link = |direction: &str, ms: u32| format!("[[{direction}]]\nkind = \"link\"\ndelay = \"{ms} ms\"\n");
        self.path(name, &(link("forward", forward_ms) + &link("reverse", reverse_ms)))
    }
}

/// The smallest round trip that `ping` reports, in ms. The smallest, because a busy machine only adds to it.
fn least_round_trip(output: &Output) -> Result<f64, String> {
    let text = stdout(output);
    let times = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let least = times.and_then(|times| times.split('/').next()?.parse().ok());
    least.ok_or_else(|| format!("ping failed: {text}{}", stderr(output)))
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    if !can_run(&[]) {
        return;
    }
    let code = |command: &[&str]| {
        let arguments = [&["--path", "clean", "--outside", "none", "--quiet", "--"], command].concat();
        run(&arguments).status.code()
    };
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["/nowhere/command"]), Some(127));
}

#[test]
fn the_only_way_out_is_the_path() {
    if !can_run(&["ping"]) {
        return;
    }
    let show = "cat /proc/net/dev; cat /proc/net/route; ping -q -c 1 -W 1 127.0.0.1 >/dev/null && echo loopback";
    let output = run(&["--path", "clean", "--outside", "none", "--quiet", "--", "sh", "-c", show]);
    let text = stdout(&output);
    let devices: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(':').map(|(name, _)| name.trim())).collect();
    assert_eq!(devices, ["lo", "reknit0"], "{text}");
    let defaults: Vec<&str> = text.lines().filter(|line| line.contains("\t00000000\t00000000\t")).collect();
    assert!(matches!(defaults.as_slice(), [only] if only.starts_with("reknit0")), "{text}");
    assert!(text.contains("loopback"), "{text}");
}

/// Runs `reknit emulate` as root, or as an ordinary user with a `/dev/net/tun` that everybody may open, as on most machines.
/// None if the machine refuses user namespaces.
fn run_as(is_root: bool, arguments: &[&str]) -> Option<Output> {
    if is_root {
        return Some(run(arguments));
    }
    let output = as_user(0o666, &[&["emulate"][..], arguments].concat());
    if stderr(&output).contains("user namespace") {
        machine::skip("user namespaces");
        return None;
    }
    Some(output)
}

/// Runs `reknit` as an ordinary user, with this mode of `/dev/net/tun`.
fn as_user(mode: u32, arguments: &[&str]) -> Output {
    // The program is copied to where everybody may run it.
    let folder = Folder::new();
    let script = format!(
        "mount --make-rprivate / && mount -t tmpfs reknit {0} && mknod {0}/tun c 10 200 && chmod {mode:o} {0}/tun && \
         chmod 755 {0} && cp {1} {0}/reknit && mount --bind {0}/tun /dev/net/tun && \
         setpriv --reuid 65534 --regid 65534 --clear-groups env REKNIT={0}/reknit {0}/reknit \"$@\"",
        folder.0.path().display(),
        env!("CARGO_BIN_EXE_reknit"),
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh"]).args(arguments).output().unwrap()
}

#[test]
fn the_doctor_says_what_an_ordinary_user_can_run() {
    if !can_run(&USER) {
        return;
    }
    let note = |mode, name: &str| {
        let text = stdout(&as_user(mode, &["doctor"])).split_whitespace().collect::<Vec<_>>().join(" ");
        text.split_once(name).unwrap_or_else(|| panic!("{name} in {text}")).1.to_owned()
    };
    assert!(note(0o666, "/dev/net/tun").starts_with(" ok: "));
    assert!(
        note(0o600, "/dev/net/tun").starts_with(" missing: ") && note(0o600, "tun").contains("chmod 666 /dev/net/tun")
    );
    assert!(note(0o666, "network namespaces").starts_with(" missing: "));
    assert!(note(0o666, "packet sockets").starts_with(" not available: reknit watch needs root"));
    let runs = as_user(0o666, &["emulate", "--path", "clean", "--quiet", "--", "true"]).status.success();
    assert_eq!(note(0o666, "user namespaces").starts_with(" ok: "), runs);
}

#[test]
fn delays_are_those_of_the_path() {
    if !can_run(&[&USER[..], &["iperf3", "ping"]].concat()) {
        return;
    }
    let folder = Folder::new();
    let path = folder.delay_path("delays.toml", 20, 35);
    for is_root in [true, false] {
        repeat(|| {
            let ping = ["--", "sh", "-c", "id -u; ping -c 5 -i 0.05 server"];
            let arguments = [&["--path", &path, "--server", "iperf3 -s", "--quiet"], &ping[..]].concat();
            let Some(output) = run_as(is_root, &arguments) else { return Ok(()) };
            let user = if is_root { "0\n" } else { "65534\n" };
            assert!(stdout(&output).starts_with(user), "{}{}", stdout(&output), stderr(&output));
            close("the round trip", least_round_trip(&output)?, 55.0, 1.0)
        });
    }
}

#[test]
fn nested_paths_are_in_series() {
    if !can_run(&[&USER[..], &["ping"]].concat()) {
        return;
    }
    let folder = Folder::new();
    let [around, within] = [folder.delay_path("around.toml", 10, 10), folder.delay_path("within.toml", 20, 5)];
    for is_root in [true, false] {
        repeat(|| {
            // An ordinary user runs a copy.
            let program = if is_root { env!("CARGO_BIN_EXE_reknit") } else { "${REKNIT}" };
            let nested = format!("{program} emulate --path {within} --quiet -- ping -c 5 -i 0.05 10.77.0.1");
            let outside = if is_root { "none" } else { "relay" };
            // This address is the far end of the outer path.
            let around = ["--path", &around, "--outside", outside, "--quiet", "--", "sh", "-c", &nested];
            let Some(output) = run_as(is_root, &around) else { return Ok(()) };
            close("the round trip over both", least_round_trip(&output)?, 45.0, 1.0)
        });
    }
}

/// The result of `iperf3 -J` to a server at the other end, and the report of the (outer) emulation. With `within`, a second
/// path comes first. None if the machine refuses it.
fn iperf3(
    is_root: bool,
    path: &str,
    within: Option<&str>,
    arguments: &[&str],
) -> Result<Option<(Value, Value)>, String> {
    let folder = Folder::new();
    let report = folder.file("report.json");
    let ours = ["--path", path, "--server", "iperf3 -s", "--quiet", "--report", report.to_str().unwrap(), "--"];
    let nested = within.map(|within| format!("$REKNIT emulate --path {within} --quiet -- ")).unwrap_or_default();
    let client = format!("{nested}iperf3 -J --get-server-output -c 10.77.0.1 {}", arguments.join(" "));
    let set = format!("REKNIT=${{REKNIT:-{}}}; {client}", env!("CARGO_BIN_EXE_reknit"));
    let Some(output) = run_as(is_root, &[&ours[..], &["sh", "-c", &set]].concat()) else { return Ok(None) };
    let read =
        |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|error| format!("{error}: {}", stderr(&output)));
    let theirs = read(&output.stdout)?;
    let ours = read(&std::fs::read(&report).map_err(|error| error.to_string())?)?;
    Ok(Some((theirs, ours)))
}

fn number(value: &Value, pointer: &str) -> Result<f64, String> {
    value.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("no {pointer} in {value}"))
}

/// How many datagrams the server of iperf3 has received after later ones.
fn late_datagrams(client: &Value) -> Result<f64, String> {
    let text = client["server_output_text"].as_str().unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_suffix(" datagrams received out-of-order"));
    let count = count.and_then(|line| line.split_whitespace().last()?.parse().ok());
    count.ok_or_else(|| format!("no count of late datagrams in {client}"))
}

/// What `reknit` prints as JSON.
fn json(arguments: &[&str]) -> Value {
    let output = reknit().args(arguments).arg("--json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// TCP fills a link: 1448 of 1500 bytes of each packet are data.
#[test]
fn the_rate_is_that_of_the_path() {
    if !can_run(&[&USER[..], &["iperf3"]].concat()) {
        return;
    }
    let link = |direction: &str, rate: u32| {
        format!(
            "[[{direction}]]\nkind = \"link\"\nrate = \"{rate} Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"40 packets\"\n"
        )
    };
    let folder = Folder::new();
    let path = folder.path("rate.toml", &(link("forward", 20) + &link("reverse", 100)));
    let within = folder.delay_path("rate-within.toml", 5, 5);
    let expected = 20.0 * 1448.0 / 1500.0;
    for (is_root, within) in [(true, None), (true, Some(&within)), (false, None)] {
        repeat(|| {
            let iperf3 = iperf3(is_root, &path, within.map(String::as_str), &["-t", "2", "-O", "1"])?;
            let Some((theirs, _)) = iperf3 else { return Ok(()) };
            let received = number(&theirs, "/end/sum_received/bits_per_second")? / 1e6;
            close("the rate in Mbit/s", received, expected, expected * 0.02)
        });
    }
}

/// Packets take two paths in turn, as in `two-paths-50ms`; the simulator says how many are reordered.
#[test]
fn the_reordered_share_is_that_of_the_simulator() {
    if !can_run(&[&USER[..], &["iperf3"]].concat()) {
        return;
    }
    let two_paths = |slow: u32| {
        format!(
            "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\npaths = [\n    {{ delay = \"10 ms\" }},\n    \
             {{ delay = \"{slow} ms\" }},\n]\n"
        )
    };
    let folder = Folder::new();
    let around = folder.path("reordering.toml", &two_paths(35));
    let within = folder.path("reordering-within.toml", &two_paths(15));
    let both = folder.path("reordering-both.toml", &(two_paths(15) + &two_paths(35)));
    let share = |path: &str| json(&["paths", path])[0]["reordered_ratio"].as_f64().unwrap();
    assert!(share(&around) > 0.4);
    for (is_root, within) in [(true, None), (true, Some(&within)), (false, None)] {
        let expected = share(if within.is_some() { &both } else { &around });
        repeat(|| {
            let load = ["-u", "-b", "4M", "-l", "1000", "-t", "2"];
            let iperf3 = iperf3(is_root, &around, within.map(String::as_str), &load)?;
            let Some((theirs, ours)) = iperf3 else { return Ok(()) };
            close("the number of lost packets", number(&theirs, "/end/sum/lost_packets")?, 0.0, 0.0)?;
            if within.is_none() {
                close("our reordered share", number(&ours, "/up/reordered_ratio")?, expected, 0.02)?;
            }
            let share = late_datagrams(&theirs)? / number(&theirs, "/end/sum/packets")?;
            close("iperf3's reordered share", share, expected, 0.02)
        });
    }
}

/// Nothing but the pings is on the path, so the n-th packet of each run is the same ping.
#[test]
fn the_same_seed_gives_the_same_fates_and_they_can_be_replayed() {
    if !can_run(&["ping"]) {
        return;
    }
    let stages = "[[forward]]\nkind = \"link\"\ndelay = \"2 ms\"\n[[forward]]\nkind = \"loss\"\nprobability = 0.3\n";
    let folder = Folder::new();
    let lossy = folder.path("loss.toml", stages);
    let record = |path: &str, seed: &str, name: &str| {
        let file = folder.file(name);
        let ours = ["--path", path, "--seed", seed, "--outside", "none", "--quiet", "--record", file.to_str().unwrap()];
        let output =
            run(&[&ours[..], &["--", "ping", "-q", "-c", "40", "-i", "0.002", "-W", "0.1", "10.77.0.1"]].concat());
        assert!(stdout(&output).contains("40 packets transmitted"), "{}", stderr(&output));
        let text = std::fs::read_to_string(&file).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let fates = table["forward"][0]["packets"].as_array().unwrap().clone();
        assert_eq!(fates.len(), 40, "{text}");
        fates.iter().map(|fate| fate.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = record(&lossy, "3", "first.toml");
    let lost = first.iter().filter(|fate| *fate == "lost").count();
    assert!((4..=20).contains(&lost), "{first:?}");
    assert_eq!(record(&lossy, "3", "second.toml"), first);
    assert_ne!(record(&lossy, "4", "third.toml"), first);
    let replayed = folder.file("first.toml");
    assert_eq!(record(replayed.to_str().unwrap(), "9", "fourth.toml"), first);
}

#[test]
fn signals_are_passed_on() {
    if !can_run(&[]) {
        return;
    }
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = reknit()
        .args(["emulate", "--path", "clean", "--outside", "none", "--quiet", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    assert!(refused(&["--path", "moon", "--", "true"]).contains("moon: unknown path"));
    assert!(refused(&["--", "true"]).contains("--path"));
    assert!(refused(&["--path", "clean", "--up", "clean", "--", "true"]).contains("cannot be used with"));
    let both = ["--up", "clean", "--down", "lossy", "--set", "forward.link.rate=1 Mbit/s"];
    assert!(refused(&both).contains("--set cannot be used with both --up and --down"));
    let server = ["--path", "clean", "--server", "true", "--outside", "nat"];
    assert!(refused(&server).contains("--server cannot be used with --outside nat"));
    assert!(refused(&["--path", "clean", "--record", "/nowhere/f"]).contains("--record /nowhere/f: No such file"));
    assert!(refused(&["--path", "clean", "--record", "f"]).contains("--record f: the name must end in .toml"));
}

#[test]
fn a_server_that_ends_too_early_is_an_error() {
    if !can_run(&[]) {
        return;
    }
    let output = run(&["--path", "clean", "--server", "exit 3", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    let (time, rest) =
        error.split_once("error: --server: the command ended after ").map_or(("", &*error), |(_, rest)| {
            rest.split_once(" s, before it accepted connections ").unwrap_or((rest, ""))
        });
    assert!(time.parse().is_ok_and(|seconds: f64| seconds >= 0.0), "{error}");
    assert_eq!(rest.lines().next(), Some("(exit status 3)"), "{error}");
}

#[test]
fn a_missing_device_is_an_error_and_is_not_made() {
    if !can_run(&["ping"]) {
        return;
    }
    for command in [
        "emulate --path clean --outside none -- true",
        "testbed --path clean --variants sack --to kernel --duration 1s",
    ] {
        let script = format!(
            "mount --make-rprivate / && mount -t tmpfs reknit /dev/net && {} {command}; ls /dev/net",
            env!("CARGO_BIN_EXE_reknit")
        );
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
        let error = stderr(&output);
        assert!(error.contains("/dev/net/tun: No such file") && error.trim_end().lines().count() == 1, "{error}");
        assert_eq!(stdout(&output), "", "{command}");
    }
}

#[test]
fn programs_inside_see_the_device() {
    if !can_run(&["ping"]) {
        return;
    }
    for is_root in [true, false] {
        let reknit = if is_root { env!("CARGO_BIN_EXE_reknit") } else { "$REKNIT" };
        let show = format!(
            "ls /sys/class/net; cat /sys/class/net/reknit0/mtu; \
             {reknit} watch reknit0 & sleep 0.5; ping -q -c 1 server >/dev/null; kill -INT $!; wait $!"
        );
        let arguments = ["--path", "clean", "--outside", "none", "--", "bash", "-c", &show];
        let Some(output) = run_as(is_root, &arguments) else { return };
        let (text, error) = (stdout(&output), stderr(&output));
        assert!(text.starts_with("lo\nreknit0\n1500\n"), "{text}{error}");
        assert!(!error.contains("error"), "{error}");
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        let last = format!("  congestion control of the kernel inside: {}", default.trim());
        assert_eq!(error.lines().last(), Some(&last[..]), "{error}");
    }
}

#[test]
fn a_router_says_which_packets_are_too_big() {
    if !can_run(&["ping"]) {
        return;
    }
    let link = |direction: &str| format!("[[{direction}]]\nkind = \"link\"\ndelay = \"1 ms\"\n");
    let mtu = "[[forward]]\nkind = \"mtu\"\nsize = \"1300 B\"\n";
    let folder = Folder::new();
    let path = folder.path("mtu.toml", &(mtu.to_owned() + &link("forward") + &link("reverse")));
    // Through the outer end's kernel, whose answer comes back whole.
    let ping = "ping -M do -c 2 -i 0.2 -W 1 -s 1272 gateway; ping -M do -c 1 -W 1 -s 1273 gateway; true";
    let Some(output) = run_as(true, &["--path", &path, "--quiet", "--", "sh", "-c", ping]) else { return };
    let text = stdout(&output) + &stderr(&output);
    assert!(text.contains("2 received") && text.contains("mtu = 1300"), "{text}");
}

#[test]
fn without_packets_nothing_is_recorded() {
    if !can_run(&[]) {
        return;
    }
    let folder = Folder::new();
    let record = folder.file("nothing.toml");
    let name = record.to_str().unwrap();
    let output = run(&["--path", "clean", "--outside", "none", "--quiet", "--record", name, "--", "true"]);
    assert_eq!(stderr(&output), format!("warning: --record {name}: not written, because no packet took the path\n"));
    assert!(output.status.success() && !record.exists());
}

#[test]
fn a_capture_on_a_full_disk_is_named() {
    if !can_run(&["ping"]) {
        return;
    }
    for option in ["--pcap", "--pcap-outside"] {
        // More than the buffer of the file holds.
        let ping = ["--", "ping", "-q", "-s", "1400", "-c", "20", "-i", "0.01", "10.77.0.1"];
        let output =
            run(&[&["--path", "clean", "--outside", "none", "--quiet", option, "/dev/full"], &ping[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(text.contains(&format!("error: {option} /dev/full: No space left on device")), "{text}");
    }
}
