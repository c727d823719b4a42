//! Each error in the input is one line that names the place and what is allowed, with exit code 2.

#[path = "wrong_input/files.rs"]
mod files;
#[path = "wrong_input/options.rs"]
mod options;

use std::path::Path;
use std::process::{Command, Output};

fn reknit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).output().expect("the command runs")
}

/// The line with the error.
fn error(arguments: &[&str]) -> String {
    let output = reknit(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text:?}");
    let line = text.trim_end().to_owned();
    assert!(line.starts_with("error: "), "{line:?}");
    line
}

fn assert_says(arguments: &[&str], parts: &[&str]) {
    let line = error(arguments);
    for part in parts {
        assert!(line.contains(part), "{line:?} does not contain {part:?}");
    }
}

/// A path file with this content.
fn file(name: &str, content: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wrong-{name}.toml"));
    std::fs::write(&path, content).unwrap();
    path.to_string_lossy().into_owned()
}

/// Compares the variant in a file with this content. The error begins with the file's name.
fn assert_refused(name: &str, content: &str, says: &str) {
    let path = file(name, content);
    for command in ["compare", "testbed"] {
        assert_says(&[command, "--path", "clean", "--variant-file", &path], &[&format!("error: {path}{says}")]);
    }
}

#[test]
fn an_unknown_path() {
    assert_says(
        &["compare", "--path", "moon"],
        &["moon: unknown path", "`reknit paths` lists the built-in ones", "`.toml`"],
    );
}

#[test]
fn a_misspelt_path() {
    assert_says(&["paths", "clean", "--plot", "a.pdf"], &["--plot a.pdf: ", "the file name must end in .svg or .png"]);
    assert_says(&["paths", "clean", "--plot", "png"], &["--plot png: "]);
    assert_says(&["paths", "two-path-50ms"], &["unknown path", "did you mean `two-paths-50ms`"]);
}

#[test]
fn a_misspelt_variant() {
    for arguments in [&["variants", "rak"][..], &["compare", "--path", "clean", "--variants", "rak"]] {
        assert_says(arguments, &["unknown variant `rak`; ", "did you mean `rack`", "`reknit variants` lists all"]);
    }
}

#[test]
fn a_path_without_time() {
    for (name, content) in [
        ("nothing", "description = \"nothing\"\n"),
        ("only-delays", "[[forward]]\nkind = \"delay\"\nextra = \"constant(5 ms)\"\n"),
    ] {
        let path = file(name, content);
        assert_says(&["compare", "--path", &path], &[&path, "data takes no time on this path", "`rate` or a `delay`"]);
    }
}

#[test]
fn an_outage_of_a_whole_burst_is_no_path_without_time() {
    let link = "[[forward]]\nkind = \"link\"\nrate = \"1 Mbit/s\"\n";
    let outage = "[[forward]]\nkind = \"script\"\nrules = [{ from = \"0 s\", to = \"2 s\", action = \"drop\" }]\n";
    let path = file("outage", &format!("{link}{outage}"));
    let output = reknit(&["simulate", "--path", &path, "--variant", "sack", "--duration", "5s"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_rate_of_zero() {
    let path = file("zero", "[[forward]]\nkind = \"multipath\"\npaths = [{ rate = \"0 bit/s\" }]\n");
    assert_says(&["compare", "--path", &path], &["forward[0].paths[0].rate: must be more than 0 (multipath stage)"]);
}

#[test]
fn files_without_end() {
    let zeros = "/dev/zero";
    if std::path::Path::new(zeros).exists() {
        for arguments in [
            &["compare", "--path", zeros][..],
            &["compare", "--scenario", zeros],
            &["sweep", zeros],
            &["compare", "--path", "clean", "--variant-file", zeros],
        ] {
            assert_says(arguments, &[zeros, "is larger than 16 MiB"]);
        }
    }
}

#[test]
fn a_duration_of_zero() {
    for command in ["compare", "testbed"] {
        assert_says(&[command, "--path", "clean", "--duration", "0 s"], &["--duration", "must be more than 0"]);
    }
}

#[test]
fn a_payload_file_that_does_not_exist() {
    assert_says(&["testbed", "--path", "clean", "--file", "/nowhere/f"], &["--file /nowhere/f: No such file"]);
}

#[test]
fn a_divisor_of_zero() {
    assert_refused(
        "v-divisor",
        "name = \"mine\"\nbase = \"rack\"\n[loss_detector]\nreo_wnd_divisor = 0\n",
        ": loss_detector.reo_wnd_divisor = 0: must be from 1 to 1000",
    );
    assert_refused(
        "v-memory",
        "name = \"mine\"\nbase = \"rr-taes\"\n[dup_thresh]\nmemory = 0\n",
        ": dup_thresh.memory = 0: must be from 1 to 1000000",
    );
}

#[test]
fn a_string_instead_of_a_number() {
    assert_says(
        &["compare", "--path", "clean", "--set", "tcp.mss=big"],
        &["--set tcp.mss=big: must be a whole number, not \"big\""],
    );
}

#[test]
fn a_file_that_does_not_exist() {
    assert_says(&["compare", "--path", "/nowhere/path.toml"], &["/nowhere/path.toml: ", "No such file"]);
}

#[test]
fn a_file_that_is_not_toml() {
    let path = file("broken", "description = \"x\"\nrate = = 3\n");
    assert_says(&["compare", "--path", &path], &[&format!("{path}:2: ")]);
}

#[test]
fn an_unknown_key_in_a_file() {
    let path = file("key", "[[forward]]\nkind = \"link\"\nspeed = \"10 Mbit/s\"\n");
    assert_says(
        &["compare", "--path", &path],
        &[
            &path,
            "forward[0].speed: unknown key; allowed are rate, delay, queue, red, codel, fq_codel, pie (link stage)",
        ],
    );
}

#[test]
fn an_unknown_kind_of_stage() {
    let path = file("kind", "[[reverse]]\nkind = \"jitter\"\n");
    assert_says(
        &["compare", "--path", &path],
        &["reverse[0].kind: unknown kind of stage `jitter`; allowed are link, "],
    );
}

#[test]
fn a_value_without_its_unit() {
    let path = file("unit", "[[forward]]\nkind = \"link\"\nrate = \"10\"\n");
    assert_says(&["compare", "--path", &path], &["forward[0].rate: `10` is not a rate", "Mbit/s", "for example"]);
}

#[test]
fn an_impossible_distribution() {
    assert_says(
        &["compare", "--path", "rr-tcp", "--set", "forward.delays.extra=gauss(1 ms, 2 ms)"],
        &["forward[2].extra: `gauss(1 ms, 2 ms)` is not a distribution", "normal(MEAN, SD)"],
    );
}

#[test]
fn an_unknown_variant() {
    assert_says(
        &["compare", "--path", "rr-tcp", "--variants", "sack,tahoe"],
        &["--variants: unknown variant `tahoe`; `reknit variants` lists all"],
    );
}

#[test]
fn a_duration_without_its_unit() {
    assert_says(
        &["compare", "--path", "rr-tcp", "--duration", "60"],
        &[
            "error: --duration: `60` is not a duration; write a number and a unit (ns, us, ms, s, min), for example `25 ms` (see",
        ],
    );
}

#[test]
fn a_share_above_one() {
    assert_says(
        &["compare", "--path", "rr-tcp", "--loss", "5"],
        &["error: --loss: `5` is not a probability; write a number from 0 to 1, or a percentage such as `1 %`"],
    );
}

#[test]
fn no_seeds() {
    for seeds in ["0", "-3", "1e3"] {
        assert_says(
            &["compare", "--path", "rr-tcp", "--seeds", seeds],
            &["--seeds", "must be a whole number from 1 to 10000"],
        );
    }
}

#[test]
fn an_override_of_a_stage_that_does_not_exist() {
    assert_says(
        &["compare", "--path", "rr-tcp", "--set", "forward.tunnel.rate=1 Mbit/s"],
        &["--set forward.tunnel.rate=1 Mbit/s", "no such stage; the stages are access, loss, delays, bottleneck, exit"],
    );
}

#[test]
fn an_override_of_an_entry_that_does_not_exist() {
    assert_says(
        &["compare", "--path", "two-paths-50ms", "--set", "forward.paths.paths.2.delay=80ms"],
        &["--set forward.paths.paths.2.delay=80ms: forward.paths.paths.2: no such entry; the entries are 0, 1"],
    );
    assert_says(
        &["compare", "--path", "two-paths-50ms", "--set", "forward.paths.choice.by=size"],
        &["forward.paths.choice.by: `\"round-robin\"` has no keys"],
    );
    assert_says(
        &["compare", "--path", "two-paths-50ms", "--set", "forward.bottleneck.queue.packets=9"],
        &["forward[0].queue: "],
    );
}

#[test]
fn a_kernel_in_simulation() {
    assert_says(
        &["compare", "--path", "clean", "--variants", "kernel:cubic"],
        &["`kernel:cubic`: kernels do not run in simulation", "--variants kernel:cubic`"],
    );
}

#[test]
fn patterns_that_match_nothing() {
    assert_says(
        &["compare", "--path", "clean", "--variants", "qq-*"],
        &["--variants: no variant matches `qq-*`; `reknit variants` lists them"],
    );
    assert_says(&["compare", "--path", "moon-*"], &["moon-*: no path matches; `reknit paths` lists the built-in ones"]);
}

#[test]
fn negative_and_oversized_quantities() {
    for command in ["compare", "simulate", "testbed"] {
        let refused =
            |option: &str, value: &str, says: &str| assert_says(&[command, "--path", "clean", option, value], &[says]);
        refused("--duration", "-5 s", "--duration: `-5 s` is negative; a duration is 0 or more");
        refused("--duration", "99999999999999999999 s", "`99999999999999999999 s` is too large; at most 9200000000 s");
        refused("--loss", "-1%", "--loss: `-1%` is not a probability");
    }
    assert_says(
        &["compare", "--path", "clean", "--set", "forward.0.rate=99999999999999 Gbit/s"],
        &["forward[0].rate: `99999999999999 Gbit/s` is too large; at most 9200000000 Gbit/s"],
    );
    assert_says(&["compare", "--path", "clean", "--seeds", "99999999999"], &["must be a whole number from 1 to 10000"]);
}

#[test]
fn directories_instead_of_files() {
    let folder = std::env::temp_dir().display().to_string();
    for arguments in [
        &["compare", "--path", &format!("{folder}/")][..],
        &["compare", "--scenario", &folder],
        &["compare", "--path", "clean", "--variant-file", &folder],
        &["simulate", "--scenario", &folder],
        &["sweep", &folder],
        &["paths", &format!("{folder}/")],
    ] {
        assert_says(arguments, &["is a directory, not a file", &folder]);
    }
    assert_says(
        &["testbed", "--path", "clean", "--file", &folder],
        &[&format!("--file {folder}: is a directory, not a file")],
    );
    for arguments in [&["analyze", &folder][..], &["replay", &folder], &["watch", &folder]] {
        let output = reknit(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text, format!("error: {folder}: is a directory, not a file\n"), "{arguments:?}");
        assert!(output.stdout.is_empty() && output.status.code() == Some(1), "{arguments:?}");
    }
}

#[test]
fn an_override_without_a_value() {
    assert_says(&["compare", "--path", "rr-tcp", "--set", "faster"], &["--set faster", "expected ", "tcp.KEY=VALUE"]);
}

#[test]
fn an_unknown_tcp_option() {
    assert_says(
        &["compare", "--path", "clean", "--set", "tcp.window=3"],
        &["--set tcp.window=3: unknown key; ", "max_window"],
    );
}

#[test]
fn a_tcp_option_that_cannot_work() {
    for command in ["compare", "testbed"] {
        assert_says(
            &[command, "--path", "clean", "--set", "tcp.mss=9"],
            &["--set tcp.mss=9: must be from 64 to 65495"],
        );
    }
}

#[test]
fn a_misspelt_flag() {
    assert_says(
        &["compare", "--path", "clean", "--varients", "sack"],
        &["error: --varients: unknown option; did you mean `--variants`? (see `reknit compare --help`)"],
    );
}

#[test]
fn no_path() {
    assert_says(
        &["compare"],
        &["error: --path is missing; `reknit paths` lists the built-in ones (see `reknit compare --help`)"],
    );
    assert_says(&["emulate"], &["error: --path is missing; `reknit paths` lists the built-in ones"]);
    assert_says(&["simulate", "--path", "clean"], &["error: --variant is missing; `reknit variants` lists all"]);
    assert_says(&["analyze"], &["error: FILE is missing (see `reknit analyze --help`)"]);
    assert_says(&["compare", "--path"], &["error: --path needs a value (see `reknit compare --help`)"]);
}

#[test]
fn a_word_that_is_not_in_the_list() {
    assert_says(
        &["analyze", "x.pcap", "--at", "sendr"],
        &[
            "error: --at sendr: must be sender, middle or receiver; did you mean `sender`? (see `reknit analyze --help`)",
        ],
    );
    assert_says(&["analyze", "x.pcap", "--at"], &["error: --at needs a value: sender, middle or receiver"]);
}

#[test]
fn help_is_also_a_command() {
    for (arguments, starts) in
        [(&["help"][..], "Compare TCP algorithms"), (&["help", "compare"], "Compare variants on a path, in simulation")]
    {
        let output = reknit(arguments);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(starts), "{arguments:?}");
    }
    assert_says(&["help", "comparee"], &["error: comparee: unknown command; did you mean `compare`?"]);
}

#[test]
fn output_files_are_checked_first_and_named_with_their_option() {
    let folder = std::env::temp_dir().display().to_string();
    for (arguments, option) in [
        (&["analyze", "none.pcap"][..], "--path"),
        (&["analyze", "none.pcap"], "--html"),
        (&["analyze", "none.pcap"], "--annotate"),
        (&["compare", "--path", "clean", "--variants", "sack", "--duration", "1 s"], "--pcap"),
        (&["emulate", "--path", "clean"], "--pcap"),
        (&["emulate", "--path", "clean"], "--pcap-outside"),
        (&["testbed", "--path", "clean"], "--pcap-sender"),
        (&["testbed", "--path", "clean"], "--pcap-receiver"),
    ] {
        for (file, says) in [("/nowhere/x", "No such file or directory"), (&*folder, "is a directory, not a file")] {
            let output = reknit(&[arguments, &[option, file]].concat());
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(text.starts_with(&format!("error: {option} {file}: {says}")), "{arguments:?}: {text}");
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        }
    }
}

#[test]
fn names_are_checked_before_the_capture_is_read() {
    for (option, wrong) in [("--sender", "tahoe"), ("--variants", "tahoe")] {
        let says = format!("error: {option}: unknown variant `tahoe`; `reknit variants` lists all");
        assert_says(&["replay", "/nowhere/x.pcap", option, wrong], &[&says]);
    }
}

#[test]
fn a_grid_names_the_axis_and_suggests_a_key() {
    let path = file("axes", "path = \"clean\"\nvariants = [\"sack\"]\n[axes]\nlos = [0]\n");
    assert_says(
        &["sweep", &path],
        &["wrong-axes.toml: axes.los: unknown key; did you mean `loss`? These can vary: variant,"],
    );
    let path = file("no-variant", "path = \"clean\"\n[axes]\nloss = [0]\n");
    assert_says(&["sweep", &path], &["wrong-no-variant.toml: `variants` is missing; list the variants"]);
}

#[test]
fn two_formats_at_once() {
    assert_says(&["compare", "--path", "clean", "--json", "--csv"], &["error: --json cannot be used with --csv (see"]);
}

#[test]
fn an_oracle_in_the_testbed() {
    assert_says(
        &["testbed", "--path", "clean", "--variants", "oracle"],
        &["--variants: `oracle` runs in simulation only: only the simulator can tell it which packets were lost"],
    );
}

#[test]
fn a_congestion_control_that_the_kernel_does_not_have() {
    assert_says(
        &["testbed", "--path", "clean", "--variants", "kernel:vegas2"],
        &["--variants: this kernel has no congestion control `vegas2`; it has "],
    );
}

#[test]
fn an_unknown_command() {
    assert_says(
        &["simulat"],
        &["error: simulat: unknown command; did you mean `simulate` or `emulate`? (see `reknit --help`)"],
    );
}

#[test]
fn errors_in_options_name_the_help_of_their_command() {
    assert_says(&["compare", "--path", "clean", "--seeds", "x"], &["(see `reknit compare --help`)"]);
    assert_says(&["testbed", "--path", "clean", "--size", "-4MB"], &["--size", "-4MB", "is negative"]);
    assert_says(&["analyze", "x.pcap", "--stream", "-1"], &["--stream", "must be a whole number from 0 to 4294967295"]);
    assert_says(
        &["watch", "lo", "--metrics", "9435"],
        &["--metrics", "an IP address and a port, for example `127.0.0.1:9435`"],
    );
    assert_says(
        &["emulate", "--path", "clean", "ping", "gateway"],
        &["error: ping: unexpected argument; write `--` before the command"],
    );
    assert_says(&["simulate", "--path", "clean", "--variant", "rak"], &["error: --variant: unknown variant `rak`"]);
    assert_says(&["compare", "--path", ""], &["error: --path ``: no path has this name; `reknit paths` lists"]);
}

#[test]
fn a_closed_standard_error_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_reknit"));
    let status = command.args(["compare", "--path", "moon"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_capture_that_cannot_be_written_is_a_failure() {
    let arguments =
        ["compare", "--path", "rr-tcp", "--variants", "sack", "--duration", "1 s", "--pcap", "/nowhere/x.pcapng"];
    let output = reknit(&arguments);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: --pcap /nowhere/x.pcapng: No such file or directory"), "{text}");
}

#[test]
fn an_unknown_variant_to_explain() {
    assert_says(&["variants", "tahoe"], &["unknown variant `tahoe`; `reknit variants` lists all"]);
}

/// Runs without `target/venv` and without a `python3`.
#[test]
fn papers_without_the_package_say_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("reknit");
    std::fs::copy(env!("CARGO_BIN_EXE_reknit"), &program).unwrap();
    let run = |option| loop {
        match Command::new(&program).args(["papers", option]).env("PATH", "").output() {
            // Another test has started a program while the copy was open for writing.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    let (output, help) = (run("--quick"), run("--help"));
    assert!(help.status.success());
    let usage = String::from_utf8(help.stdout).unwrap();
    assert!(usage.starts_with("usage: reknit papers") && usage.contains("reknit-study"), "{usage}");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text.trim_end(),
        "error: papers needs the Python package reknit-study, which was not found: `make python` or `pip install . ./study` in \
         reknit's repository installs it"
    );
}

#[test]
fn settings_of_a_shield() {
    let base = ["shield", "--interface", "wan0"];
    assert_says(&["shield"], &["--interface: missing"]);
    assert_says(&[&base[..], &["--difference", "50ms"]].concat(), &["--difference: only with --mode equalise"]);
    assert_says(&[&base[..], &["--mode", "equalise"]].concat(), &["--interface wan0: equalise needs at least two"]);
    let two = ["shield", "--interface", "wan0,wan1", "--mode", "equalise", "--difference", "400ms"];
    assert_says(&two, &["--difference 400 ms: must be more than 0 and at most --limit, 300 ms"]);
    let path = ["compare", "--path", "random-delay", "--shield", "equalise", "--variants", "sack"];
    assert_says(&path, &["forward[2].mode: equalise needs branches"]);
}
