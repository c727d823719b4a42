//! Values of options and of `--set`, and files that are given twice.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use reknit_testkit::machine;

use super::*;

#[test]
fn a_value_that_occurs_in_the_explanation_is_named() {
    let compare = ["compare", "--path", "clean"];
    for (arguments, says) in [
        (&[&compare[..], &["--seeds", "0"]].concat()[..], "--seeds 0: must be a whole number from 1 to 10000"),
        (&["watch", "lo", "--metrics", "127.0.0.1"], "--metrics 127.0.0.1: must be an IP address and a port"),
        (&["analyze", "x.pcap", "--from", "5"], "--from 5: must be a time since the first packet"),
        (&["analyze", "x.pcap", "--from", "1700000000.1234567890"], "--from 1700000000.1234567890: too many digits"),
        (&[&compare[..], &["--loss", "5"]].concat(), "--loss: `5` is not a probability"),
    ] {
        assert_says(arguments, &[&format!("error: {says}")]);
    }
}

#[test]
fn wrong_tcp_options_of_a_path_are_refused_by_all_commands() {
    for (name, line, says) in [
        ("tcp-text", "min_rto = \"abc\"", "tcp.min_rto: `abc` is not a duration"),
        ("tcp-negative", "mss = -5", "tcp.mss: "),
        ("tcp-small", "mss = 1", "tcp.mss = 1: must be from 64 to 65495"),
        ("tcp-key", "mms = 1000", "tcp.mms: unknown key"),
    ] {
        let path = file(name, &format!("[[forward]]\nkind = \"link\"\ndelay = \"1 ms\"\n[tcp]\n{line}\n"));
        let commands = [
            &["paths", &path][..],
            &["paths", &path, "--toml"],
            &["emulate", "--path", &path],
            &["compare", "--path", &path],
        ];
        let errors = commands.map(|command| error(command).split(" (see").next().unwrap().to_owned());
        assert!(errors[0].starts_with(&format!("error: {path}: {says}")), "{errors:?}");
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    }
}

#[test]
fn a_path_without_stages_is_refused_by_all_commands() {
    let path = file("no-stages", "");
    for command in [&["paths", &path][..], &["emulate", "--path", &path], &["compare", "--path", &path]] {
        assert_says(command, &[&format!("error: {path}: data takes no time on this path"), "add a link with a `rate`"]);
    }
}

#[test]
fn a_wrong_rate_names_its_option() {
    for (rate, says) in [
        ("0 Mbit/s", "--rate 0 Mbit/s: must be more than 0"),
        ("-1 Mbit/s", "--rate: `-1 Mbit/s` is negative; a rate is 0 or more"),
    ] {
        assert_says(&["compare", "--rate", rate], &[&format!("error: {says}")]);
    }
}

#[test]
fn an_override_that_makes_the_path_wrong_is_named() {
    let set = |command: &'static str, path: &'static str, assignment: &'static str| {
        [command, "--path", path, "--set", "forward.0.rate=3 Mbit/s", "--set", assignment]
    };
    for command in ["compare", "emulate", "testbed"] {
        let says = "error: --set forward.bottleneck.rate=2: forward[3].rate: `2` is not a rate";
        assert_says(&set(command, "rr-tcp", "forward.bottleneck.rate=2"), &[says]);
    }
    for command in ["compare", "emulate"] {
        let says = "error: --set tcp.mss=1: must be from 64 to 65495";
        assert_says(&set(command, "clean", "tcp.mss=1"), &[says]);
    }
    let grid = "path = \"rr-tcp\"\nvariants = [\"sack\"]\nset = { \"forward.bottleneck.rate\" = \"4 Mbit/s\" }\n";
    let grid = file("grid-to-override", grid);
    for (assignment, says) in [
        ("tcp.mss=1", "must be from 64 to 65495"),
        ("tcp.fast=1", "unknown key"),
        ("forward.neck.rate=1 Mbit/s", "forward.neck: no such stage"),
        ("forward.bottleneck.rate=2", "forward[3].rate: `2` is not a rate"),
        ("speed=2", "expected tcp.KEY=VALUE"),
    ] {
        let option = format!("error: --set {assignment}: ");
        for command in [&["sweep", &grid][..], &["compare", "--path", "rr-tcp"]] {
            assert_says(&[command, &["--set", "tcp.min_rto=200ms", "--set", assignment]].concat(), &[&option, says]);
        }
    }
    // What was wrong before is not blamed on an override.
    let wrong = file("grid-wrong-before", "path = \"clean\"\nvariants = [\"sack\"]\nset = { \"tcp.mss\" = 1 }\n");
    assert_says(&["sweep", &wrong, "--set", "tcp.min_rto=200ms"], &["error: clean: tcp.mss = 1: must be from 64"]);
    let path = file("wrong-before", "[[forward]]\nkind = \"link\"\nrate = \"2\"\n");
    assert_says(&["paths", &path, "--set", "forward.0.delay=1 ms"], &[&format!("error: {path}: forward[0].rate: `2`")]);
}

#[test]
fn a_store_that_cannot_be_made_names_its_option() {
    let grid = file("grid", "path = \"clean\"\nvariants = [\"sack\"]\n[axes]\nloss = [0]\n");
    let output = reknit(&["sweep", &grid, "--store", "/proc/x"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((text.as_str(), output.status.code()), ("error: --store /proc/x: No such file or directory\n", Some(1)));
}

#[test]
fn an_interface_that_does_not_exist() {
    for more in [&["--dry-run"][..], &[]] {
        let arguments = [&["shield", "--interface", "nosuch0", "--mode", "resequence"], more].concat();
        assert_says(&arguments, &["error: --interface nosuch0: no interface has this name; interfaces: ", "lo"]);
    }
}

#[test]
fn an_interface_that_is_given_twice() {
    let says = "error: --interface wan0,wan0: wan0 is given twice; give each interface once";
    assert_says(&["shield", "--interface", "wan0,wan0", "--mode", "equalise"], &[says]);
    assert_says(&["shield", "--interface", "wan0", "--interface", "wan0"], &[says]);
}

#[test]
fn a_server_of_another_family_than_its_listener() {
    let arguments = ["proxy", "--listen", "[::]:443", "--to", "192.0.2.4:5", "--dry-run"];
    let says =
        "error: --to 192.0.2.4:5: must be of the same family as --listen, or give --client-address proxy-v2 or hide";
    assert_says(&arguments, &[says]);
}

#[test]
fn an_address_that_servers_on_the_bad_leg_cannot_see() {
    for address in ["hide", "proxy-v2"] {
        let arguments =
            ["proxy", "--listen", "0.0.0.0:443", "--bad-leg", "servers", "--client-address", address, "--dry-run"];
        let says = format!(
            "error: --client-address {address}: must be keep with --bad-leg servers, where the proxy connects from the \
             address of the client"
        );
        assert_says(&arguments, &[&says]);
    }
}

#[test]
fn a_capture_that_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let [capture, link] = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(&capture, "").unwrap();
    std::fs::hard_link(&capture, &link).unwrap();
    let says = format!("error: {capture}: is given twice; give each file once");
    assert_says(&["analyze", &capture, &capture], &[&says]);
    let says = format!("error: {link}: is the same file as {capture}; give each file once");
    assert_says(&["analyze", &capture, &link], &[&says]);
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for arguments in [&["--help"][..], &["compare", "--help"], &["--version"], &["paths"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).stdout(full).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("error: standard output: No space left on device"), "{arguments:?}: {text:?}");
        assert_eq!((text.lines().count(), output.status.code()), (1, Some(1)), "{arguments:?}");
    }
}

#[test]
fn services_say_which_rights_they_need() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("reknit");
    std::fs::copy(env!("CARGO_BIN_EXE_reknit"), &program).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    for arguments in
        [&["shield", "--interface", "lo"][..], &["proxy", "--listen", "127.0.0.1:1", "--to", "127.0.0.1:2"]]
    {
        let mut command = Command::new(&program);
        command.args(arguments);
        if machine::has(&["root"]) {
            command.uid(65534).gid(65534);
        }
        let output = loop {
            match command.output() {
                // Another test has started a program while the copy was open for writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                output => break output.unwrap(),
            }
        };
        let text = String::from_utf8(output.stderr).unwrap();
        let says = format!("error: `reknit {}` needs root, or the capabilities CAP_NET_ADMIN and ", arguments[0]);
        assert!(text.starts_with(&says) && text.lines().count() == 1, "{text}");
    }
}
