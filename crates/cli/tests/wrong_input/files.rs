//! Files of variants and scenarios.

use super::*;

#[test]
fn errors_in_a_scenario_name_its_file_and_key() {
    let path = file("s-set", "path = \"rr-tcp\"\nset = { \"forward.tunnel.rate\" = \"1 Mbit/s\" }\n");
    let says = "s-set.toml: set.\"forward.tunnel.rate\": forward.tunnel: no such stage; the stages are access, loss";
    assert_says(&["compare", "--scenario", &path], &[says]);
    // An error in an option names the option.
    let path = file("s-own", "path = { forward = [{ kind = \"link\", rate = \"1 Mbit/s\" }] }\n");
    assert_says(
        &["compare", "--scenario", &path, "--set", "forward.tunnel.rate=1 Mbit/s"],
        &["error: --set forward.tunnel.rate=1 Mbit/s: forward.tunnel: no such stage; the only stage is link"],
    );
    let path = file("s-warm", "path = \"rr-tcp\"\nwarm_up = \"9 s\"\n");
    let says = "s-warm.toml: warm_up = 9 s: must be shorter than the run of 3 s";
    assert_says(&["compare", "--scenario", &path, "--duration", "3 s"], &[says]);
    let path = file("s-variants", "path = \"rr-tcp\"\nvariants = [\"tahoe\"]\n");
    assert_says(&["compare", "--scenario", &path], &["s-variants.toml: variants: unknown variant `tahoe`"]);
    let path = file("s-nowhere", "duration = \"3 s\"\n");
    assert_says(&["compare", "--scenario", &path], &["s-nowhere.toml: path: missing; name one here, or give --path"]);
}

#[test]
fn a_variant_file_that_does_not_exist() {
    assert_says(
        &["compare", "--path", "clean", "--variant-file", "/nowhere/my.toml"],
        &["/nowhere/my.toml: No such file"],
    );
}

#[test]
fn a_variant_file_that_is_not_toml() {
    assert_refused("v-toml", "name = \"mine\"\nbase = = 3\n", ":2: ");
}

#[test]
fn an_unknown_key_in_a_variant_file() {
    assert_refused(
        "v-key",
        "name = \"mine\"\nbases = \"rack\"\n",
        ": bases: unknown key; did you mean `base`? Allowed are name, base, ",
    );
}

#[test]
fn an_unknown_algorithm_in_a_variant_file() {
    assert_refused(
        "v-algorithm",
        "name = \"mine\"\n[rto_estimator]\nalgorithm = \"guess\"\n",
        ": rto_estimator.algorithm: unknown algorithm `guess`; allowed are rfc6298",
    );
}

#[test]
fn a_parameter_without_its_unit_in_a_variant_file() {
    assert_refused(
        "v-unit",
        "name = \"mine\"\nbase = \"rack\"\n[loss_detector]\nmax_ack_delay = \"25\"\n",
        ": loss_detector.max_ack_delay: `25` is not a duration; write a number and a unit (ns, us, ms, s, min)",
    );
}

#[test]
fn algorithms_that_cannot_be_combined() {
    assert_refused(
        "v-sack",
        "name = \"mine\"\nbase = \"newreno\"\n[[spurious_detectors]]\nalgorithm = \"dsack\"\n",
        ": spurious_detectors: `dsack` needs SACK, which this variant does not use; ",
    );
}

#[test]
fn two_ack_policies() {
    assert_refused(
        "v-receivers",
        "name = \"mine\"\n[[ack_policy]]\nalgorithm = \"delayed\"\n[[ack_policy]]\nalgorithm = \"delayed\"\n",
        ": ack_policy: exactly one algorithm fills this seam; write one table [ack_policy]",
    );
}

#[test]
fn two_files_with_the_same_variant_name() {
    let (one, two) = (file("v-one", "name = \"mine\"\n"), file("v-two", "name = \"mine\"\n"));
    assert_says(
        &["compare", "--path", "clean", "--variant-file", &one, "--variant-file", &two],
        &[&format!("{two}: name: another file also defines the variant `mine`")],
    );
}

#[test]
fn an_unknown_variant_with_variant_files() {
    let path = file("v-beside", "name = \"mine\"\n");
    assert_says(
        &["compare", "--path", "clean", "--variants", "mien", "--variant-file", &path],
        &["--variants: unknown variant `mien`; ", "did you mean `mine`", "variant files define mine"],
    );
}

#[test]
fn an_empty_variant_file() {
    assert_says(&["variants", "--toml"], &["error: NAME is missing (see `reknit variants --help`)"]);
}

/// Compares on the scenario with this content.
fn assert_scenario_refused(name: &str, content: &str, says: &str) {
    let path = file(name, content);
    assert_says(&["compare", "--scenario", &path], &[&format!("error: {path}{says}")]);
}

#[test]
fn a_scenario_that_does_not_exist() {
    assert_says(&["compare", "--scenario", "/nowhere/web.toml"], &["error: /nowhere/web.toml: No such file"]);
}

#[test]
fn invalid_keys_in_a_scenario() {
    const FLOWS: &str = "[[flows]]\nworkload = \"bulk\"\n";
    for (content, says) in [
        ("flow = 3\n", ": flow: unknown key; did you mean `flows`? Allowed are description, path, "),
        ("[axes]\nloss = [0]\n", ": axes: only `reknit sweep` runs a scenario with [axes]"),
        (FLOWS, ": path: missing; name one here, or give --path"),
        (&format!("path = \"moon\"\n{FLOWS}"), ": path: moon: unknown path; `reknit paths` lists the built-in ones"),
        (
            &format!("[path]\nforward = 3\n{FLOWS}"),
            ": path.forward: must be a list of stages (in TOML: [[forward]] tables)",
        ),
        (&format!("path = \"clean\"\nvariants = [\"tahoe\"]\n{FLOWS}"), ": variants: unknown variant `tahoe`"),
        (&format!("path = \"clean\"\n{FLOWS}variant = \"tahoe\""), ": flows[0].variant: unknown variant `tahoe`"),
        (&format!("path = \"clean\"\n{FLOWS}tcp = {{ mss = 9 }}"), ": flows[0].tcp.mss = 9: must be from 64 to"),
        (
            "path = \"clean\"\n[[flows]]\nworkload = \"web\"",
            ": flows[0].workload.kind: unknown workload `web`; allowed are",
        ),
    ] {
        assert_scenario_refused("s-key", content, says);
    }
}

#[test]
fn a_scenario_that_cannot_be_live() {
    let path = file("s-live", "path = \"clean\"\nflows = 3\n");
    assert_says(&["testbed", "--scenario", &path], &[&format!("error: {path}: flows: the testbed runs one flow")]);
}
