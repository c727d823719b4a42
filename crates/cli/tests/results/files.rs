//! Variants and scenarios: lists, explanations, and files.

use super::*;

#[test]
fn families_are_named_as_in_the_registry() {
    // Some families have a variant with the same name.
    for family in &FAMILIES {
        let name = format!("family:{}", family.key);
        let rows =
            piped(&["compare", "--path", "clean", "--variants", &name, "--duration", "1s", "--seeds", "1", "--csv"]);
        assert_eq!(rows.lines().count(), 1 + family.variants.len(), "{rows}");
    }
    let rows = include_str!("../../../../docs/reference/variants.md").lines().filter(|line| line.starts_with("| "));
    for family in &FAMILIES {
        let row = rows.clone().find(|row| row.starts_with(&format!("| {family} |"))).expect("a row of the families");
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let is_of_it =
            |name: &&str| reknit_variants::find(name).is_ok_and(|variant| variant.family().key == family.key);
        assert!(!names.is_empty() && names.iter().all(is_of_it), "{row}");
    }
}

#[test]
fn the_list_of_variants_is_complete() {
    let whole = piped(&["variants"]);
    for variant in reknit_variants::VARIANTS.iter() {
        let side = variant.side.to_string();
        let cells = [variant.name, variant.summary, &side, variant.peer_needs, variant.source];
        let line = whole.lines().find(|line| line.starts_with(&format!("{} ", variant.name))).unwrap_or_default();
        assert!(cells.iter().all(|cell| line.contains(cell)), "{}: {line:?}", variant.name);
        assert!(line.find(variant.summary) < line.find(variant.source), "{line:?}");
    }
    // At any width, no word of a summary is missing.
    for width in [40, 60, 80, 120] {
        let text = reknit(&["variants"], width);
        for variant in reknit_variants::VARIANTS.iter() {
            let first = [format!("{} ", variant.name), format!("variant: {}", variant.name)];
            let is_first = |line: &&str| format!("{line} ").starts_with(&first[0]) || *line == first[1];
            let from_here = text.lines().skip_while(|line| !is_first(line));
            let row: Vec<&str> = from_here.take(12).collect();
            let missing = variant.summary.split(' ').find(|word| !row.iter().any(|line| line.contains(word)));
            assert_eq!(missing, None, "{} at {width}\n{text}", variant.name);
        }
    }
}

#[test]
fn an_explanation_has_rules_parameters_and_parts() {
    let text = reknit(&["variants", "rack"], 80);
    for part in [
        "RACK-TLP\n",
        "What it changes. Losses are detected by time",
        "Rules. §6.2 steps 1 to 5",
        "SACK, DSACK to adapt",
        "without SACK, losses are detected",
        "* loss_detector       `rack`: RACK-TLP",
        "  dup_thresh          `fixed`: ",
        "loss_detector.max_ack_delay = 25 ms\n    How long the peer may delay an ACK (§7.2).",
        "dup_thresh.dup_thresh = 3 segments\n",
        "reknit variants rack --toml",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let other = reknit(&["variants", "reno-nt4"], 80);
    assert!(other.contains("dup_thresh.dup_thresh = 2 segments (default 3)"), "{other}");
}

#[test]
fn a_variant_file_is_compared_under_its_name() {
    let same = file("same", &reknit(&["variants", "rack", "--toml"], 80));
    let other = file("other", "name = \"patient\"\nbase = \"rack\"\n[loss_detector]\nreo_wnd_divisor = 1\n");
    let arguments = ["compare", "--path", "two-paths-50ms", "--duration", "10 s", "--seeds", "1", "--csv"];
    let files = ["--variant-file", &same, "--variant-file", &other];
    // Without --variants, they are compared with their bases.
    let text = reknit(&[&arguments[..], &files].concat(), 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[1].replacen("rack", "my-rack", 1), lines[2]);
    assert!(lines[3].starts_with("two-paths-50ms,patient,1,"), "{text}");
    assert_ne!(lines[2].replacen("my-rack", "patient", 1), lines[3]);
    // With --variants, the order is as given.
    let text = reknit(&[&arguments[..], &files, &["--variants", "patient,sack"]].concat(), 80);
    let names: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(names, ["patient", "sack", "my-rack"]);
}

#[test]
fn warnings_about_a_variant_are_printed_once() {
    let path = file("warned", "name = \"hopeful\"\n[spurious_response]\nalgorithm = \"instant\"\n");
    let arguments = ["compare", "--path", "clean", "--duration", "2 s", "--seeds", "3", "--variant-file", &path];
    let text = notes(&arguments);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with(&format!("warning: {path}: spurious_response: `instant` has no effect: ")), "{text}");
}

/// The variant files in the documentation work as printed.
#[test]
fn documented_variant_files_work() {
    let documents =
        [include_str!("../../../../docs/reference/variants.md"), include_str!("../../../../docs/guide/compare.md")];
    let mut shown = 0;
    for text in documents {
        let blocks = text.split("```toml").skip(1).filter_map(|rest| rest.split_once('\n')?.1.split("```").next());
        for block in blocks.filter(|block| block.starts_with("name = ")) {
            let path = file(&format!("documented-{shown}"), block);
            let arguments =
                ["compare", "--path", "clean", "--duration", "1 s", "--seeds", "1", "--variant-file", &path];
            assert_eq!(notes(&arguments), "", "{block}");
            shown += 1;
        }
    }
    assert!(shown >= 2, "the documentation has no variant file");
}

/// The scenario in the documentation, as a file.
fn documented_scenario() -> String {
    let text = include_str!("../../../../docs/reference/scenarios.md");
    let block =
        text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has a scenario");
    file("scenario", block)
}

#[test]
fn the_documented_scenario_works() {
    let scenario = documented_scenario();
    let text = piped(&["compare", "--scenario", &scenario]);
    for column in ["transactions", "completion p50", "completion p99", "competing Mbit/s", "Jain"] {
        assert!(text.contains(column), "{column}\n{text}");
    }
    let document: Value = serde_json::from_str(&reknit(&["compare", "--scenario", &scenario, "--json"], 80)).unwrap();
    assert_documented(&document);
    assert_eq!((&document["path"], &document["flows"]), (&"random-delay".into(), &10.into()));
    assert_eq!((&document["scenario"], &document["duration_s"]), (&scenario.into(), &20.0.into()));
    for run in document["variants"].as_array().unwrap().iter().flat_map(|row| row["runs"].as_array().unwrap()) {
        let groups = run["groups"].as_array().unwrap();
        let of = |key: &str| groups.iter().map(|group| group[key].clone()).collect::<Vec<Value>>();
        assert_eq!(of("group"), ["browsers/pages", "browsers/files", "long"]);
        assert_eq!(of("flows"), [6, 2, 2]);
        assert_eq!(of("variant"), [Value::Null, Value::Null, "newreno".into()]);
        assert!(groups[0]["transactions"]["completed"].as_u64().unwrap() > 50, "{run}");
        assert!(groups[2]["transactions"].is_null() && groups[2]["goodput_mbit_s"].as_f64().unwrap() > 0.1, "{run}");
    }
}

#[test]
fn options_override_the_scenario() {
    let scenario = documented_scenario();
    let options = ["--path", "clean", "--variants", "newreno", "--seeds", "1", "--duration", "5 s", "--csv"];
    let text = reknit(&[&["compare", "--scenario", &scenario], &options[..]].concat(), 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains(",transactions_completed,") && lines[0].contains(",transactions_p99_ms,"), "{text}");
    assert!(lines[1].starts_with("clean,newreno,1,"), "{text}");
    let flows: Value = serde_json::from_str(&piped(&[
        "compare",
        "--scenario",
        &scenario,
        "--flows",
        "3",
        "--variants",
        "newreno",
        "--seeds",
        "1",
        "--duration",
        "5 s",
        "--json",
    ]))
    .unwrap();
    assert_eq!(flows["flows"], 3);
}

#[test]
fn a_scenario_of_bulk_flows_gives_the_same_results_as_options() {
    let scenario =
        file("bulk", "path = \"rr-tcp\"\n[[flows]]\ncount = 3\ninterval = \"100 ms\"\nworkload = \"bulk\"\n");
    let common = ["--variants", "sack", "--duration", "5 s", "--seeds", "1", "--csv"];
    let by_file = reknit(&[&["compare", "--scenario", &scenario], &common[..]].concat(), 80);
    let by_options = reknit(&[&["compare", "--path", "rr-tcp", "--flows", "3"], &common[..]].concat(), 80);
    assert_eq!(by_file, by_options);
}
