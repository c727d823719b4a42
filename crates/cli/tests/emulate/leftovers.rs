//! What an emulation changes outside, and how that is undone. Each test has its own network namespace and its own `/run`, so
//! that the machine's rules and other emulations have no effect.

use super::*;

/// Runs `script`, in which `$REKNIT` is the program and `$FOLDER` a new folder.
fn alone(script: &str) -> Output {
    let folder = Folder::new();
    let script = format!("mount -t tmpfs reknit /run && {script}");
    let mut command = Command::new("unshare");
    command.args(["-n", "-m", "sh", "-c", &script]).stdin(Stdio::null());
    command.env("FOLDER", folder.0.path()).env("REKNIT", env!("CARGO_BIN_EXE_reknit")).output().unwrap()
}

/// Kills an emulation that has left rules, and a process that outlives it; the next start removes them.
const KILL: &str = r#"true
mkfifo $FOLDER/fifo
exec 3<>$FOLDER/fifo
$REKNIT emulate --path clean --quiet -- sh -c 'setsid sleep 4321 & echo $!; exec sleep 100' >&3 &
ours=$!
read left <&3
kill -9 $ours
wait $ours
nft list tables | grep -c reknit_
cat /proc/sys/net/ipv4/ip_forward
$REKNIT emulate --path clean -- true 2>&1 | grep ": removed"
nft list tables | grep -c reknit_
cat /proc/sys/net/ipv4/ip_forward
case "$(cat /proc/$left/stat)" in *") Z "* | "") echo gone ;; esac
"#;

#[test]
fn the_next_start_cleans_up_after_a_kill() {
    if !can_run(&["mount", "nft", "setsid", "unshare"]) {
        return;
    }
    let output = alone(KILL);
    let text = stdout(&output);
    let (notes, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(": "));
    assert_eq!(rest, ["1", "1", "0", "0", "gone"], "{text}{}", stderr(&output));
    let removed = |what| format!("note: removed what a killed emulation had left: {what}");
    for what in ["firewall rules", "net.ipv4.ip_forward = 1"] {
        assert!(notes.contains(&&*removed(what)), "{text}");
    }
}

/// Address translation fails because there is neither nft nor iptables, or because nft is refused; nothing is left, and the
/// lock is free.
const REFUSED: &str = r#"true
printf '#!/bin/sh\necho "Error: not today" >&2\nexit 1\n' >$FOLDER/nft
chmod 755 $FOLDER/nft
for folder in /nowhere $FOLDER; do
    timeout -s KILL 20 env PATH=$folder $REKNIT emulate --path clean --outside nat --quiet -- true 2>&1
    echo "exit code $?"
done
ls /run/reknit/emulate
cat /proc/sys/net/ipv4/ip_forward
"#;

#[test]
fn without_address_translation_it_ends_with_an_error() {
    if !can_run(&["mount", "timeout", "unshare"]) {
        return;
    }
    let output = alone(REFUSED);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    let [missing, first, refused, second, "lock", "0"] = lines[..] else { panic!("{text}{}", stderr(&output)) };
    assert_eq!([first, second], ["exit code 1"; 2], "{text}");
    assert!(
        missing.starts_with("error: address translation: `iptables ") && missing.contains("No such file"),
        "{text}"
    );
    assert!(refused.starts_with("error: address translation: `nft -f -`: Error: not today"), "{text}");
}

/// Another process holds the lock: before the start, and at the end.
const LOCKED: &str = r#"true
mkdir -p /run/reknit/emulate
mkfifo $FOLDER/fifo
exec 3<>$FOLDER/fifo 4>/run/reknit/emulate/lock
flock 4
stop_waiting() {
    timeout 20 sh -c "until grep waiting $FOLDER/said; do sleep 0.1; done"
    kill -$1 $!
    wait $!
    echo "exit code $?"
    grep error: $FOLDER/said
}
for signal in TERM INT; do
    timeout -s KILL 40 env --default-signal $REKNIT emulate --path clean --outside nat -- true 2>$FOLDER/said &
    stop_waiting $signal
done
flock -u 4
timeout -s KILL 40 \
    $REKNIT emulate --path clean --outside nat --quiet -- sh -c 'echo >&3; sleep 1; exit 3' 2>$FOLDER/said &
read begun <&3
flock 4
stop_waiting TERM
ls /run/reknit/emulate | sed 's/[0-9]*//g'
flock -u 4
$REKNIT emulate --path clean --outside nat --quiet -- true
ls /run/reknit/emulate
cat /proc/sys/net/ipv4/ip_forward
"#;

#[test]
fn a_signal_ends_the_wait_for_another_emulation() {
    if !can_run(&["flock", "mount", "nft", "timeout", "unshare"]) {
        return;
    }
    let output = alone(LOCKED);
    let text = stdout(&output);
    let (waits, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("note: waiting for /run/reknit/emulate/lock, which "));
    assert_eq!(waits.len(), 3, "{text}{}", stderr(&output));
    let ended = |signal| format!("error: /run/reknit/emulate/lock: {signal} while waiting for the lock");
    let expected = ["exit code 143", &ended("SIGTERM"), "exit code 130", &ended("SIGINT"), "exit code 3"];
    assert_eq!(lines, [&expected[..], &["-forwarding", "lock", "lock", "0"]].concat(), "{}", stderr(&output));
}

/// Kills an emulation in a namespace that is only mounted. The record of it is kept until that namespace is cleaned, or gone.
const ELSEWHERE: &str = r"true
touch /run/other
unshare --net=/run/other true
mkfifo $FOLDER/fifo
exec 3<>$FOLDER/fifo
killed() {
    nsenter --net=/run/other $REKNIT emulate --path clean --outside nat --quiet -- sh -c 'echo >&3; exec sleep 100' &
    read begun <&3
    kill -9 $!
    wait $!
    $REKNIT emulate --path clean --outside nat --quiet -- true
}
state() {
    nsenter --net=/run/other nft list tables | grep -c reknit_
    nsenter --net=/run/other cat /proc/sys/net/ipv4/ip_forward
}
killed
state
$REKNIT doctor | tr -s ' \n' ' ' | sed 's/.* leftovers/leftovers/'
echo
nsenter --net=/run/other $REKNIT emulate --path clean --outside nat --quiet -- true
state
killed
ls /run/reknit/emulate | wc -l
umount /run/other
$REKNIT emulate --path clean --outside nat --quiet -- true
ls /run/reknit/emulate
";

#[test]
fn leftovers_in_another_namespace_stay_recorded() {
    if !can_run(&["mount", "nft", "nsenter", "unshare"]) {
        return;
    }
    let output = alone(ELSEWHERE);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    let ["1", "1", doctor, "0", "0", "3", "lock"] = lines[..] else { panic!("{text}{}", stderr(&output)) };
    for what in ["firewall rules", "net.ipv4.ip_forward = 1"] {
        let note = format!(
            "{what} of a killed emulation in the network namespace /run/other; the next `reknit emulate` in that \
             namespace removes them"
        );
        assert!(doctor.contains(&note), "{doctor}");
    }
}
