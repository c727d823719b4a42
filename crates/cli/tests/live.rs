//! The command with live transfers.

use std::process::{Command, Output};

use reknit_testkit::machine;
use serde_json::Value;

/// None if the test is skipped.
fn testbed(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reknit"));
    command.arg("testbed").args(arguments).env("COLUMNS", "200");
    machine::has(&machine::LIVE).then(|| command.output().unwrap())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line was printed, perhaps with a warning that this machine was too slow.
fn assert_says(output: &Output, line: &str) {
    let stderr = stderr(output);
    assert!(stderr.lines().any(|said| said == line), "{stderr}");
}

/// 300 kB take 2.4 s at this rate.
#[test]
fn an_unfinished_transfer_is_a_row_and_the_others_still_run() {
    let options = ["--path", "clean", "--set", "forward.link.rate=1 Mbit/s", "--duration", "1 s", "--json"];
    let arguments = [&options[..], &["--variants", "kernel:cubic,rack", "--size", "300 kB"]].concat();
    let Some(output) = testbed(&arguments) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_says(&output, "error: 2 of 2 transfers did not finish in time");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let transfers = report["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 2, "{report}");
    for transfer in transfers {
        assert_eq!(transfer["ending"], "unfinished", "{transfer}");
        assert!(transfer["delivered_bytes"].as_u64().unwrap() > 10_000, "{transfer}");
    }
}

#[test]
fn a_loss_of_everything_warns() {
    let options = ["--path", "clean", "--loss", "1", "--variants", "rack", "--duration", "500 ms", "--json"];
    let Some(output) = testbed(&options) else { return };
    assert_says(&output, "warning: clean: the loss is 100 %, so no data arrives");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["transfers"][0]["delivered_bytes"], 0, "{report}");
}

#[test]
fn repeated_transfers_have_an_interval_and_their_own_captures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    let arguments = [
        "--path",
        "clean",
        "--variants",
        "kernel:reno,rack",
        "--size",
        "50 kB",
        "--pcap-sender",
        file.to_str().unwrap(),
    ];
    let Some(output) = testbed(&[&arguments[..], &["--repeat", "2"]].concat()) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.starts_with("rack ")).unwrap();
    assert!(row.contains('±') && row.contains("2 finished"), "{table}");
    let mut captures: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    captures.sort();
    assert_eq!(captures, ["a-kernel-reno-1.pcapng", "a-kernel-reno-2.pcapng", "a-rack-1.pcapng", "a-rack-2.pcapng"]);
    let once = testbed(&arguments[..6]).unwrap();
    assert!(!String::from_utf8_lossy(&once.stdout).contains('±'), "one transfer has no interval");
}

/// A shield in a network namespace of its own, which a signal ends.
const SHIELD: &str = r#"
ip link set lo up
$REKNIT shield --interface lo --mode resequence --queues 1 --log json 2>$LOG &
shield=$!
until grep -q '"event":"started"' $LOG; do kill -0 $shield || exit 1; sleep 0.02; done
iptables -t mangle -S | grep -c REKNIT_SHIELD
$REKNIT shield status | grep -c 'packets '
kill -TERM $shield
wait $shield
echo $?
iptables -t mangle -S | grep -c REKNIT_SHIELD
grep -c '"event":"ended"' $LOG
"#;

#[test]
fn a_signal_ends_a_shield_and_its_rules() {
    if !machine::has(&["root", "ip", "iptables", "ip6tables", "unshare"]) {
        return;
    }
    if !std::path::Path::new("/proc/self/net/netfilter/nfnetlink_queue").exists() {
        return machine::skip("NFQUEUE");
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", SHIELD]).env("REKNIT", env!("CARGO_BIN_EXE_reknit")).env("LOG", &log);
    let output = command.output().unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    // The chain, its rule and two jumps; then nothing.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4\n1\n0\n0\n1\n", "{}\n{log}", stderr(&output));
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
}
