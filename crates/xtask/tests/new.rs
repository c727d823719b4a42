//! A new variant is entered in a copy of the crate.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

#[test]
fn a_variant_is_in_every_list() {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(ROOT).join("crates/variants"), &folder.path().join("crates/variants"));
    let read = |file: &Path| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let new = |family, name| xtask::new::variant(folder.path(), family, name);
    let files = new("threshold", "more-patient").unwrap();
    let names =
        ["src/threshold/more_patient.rs", "tests/vectors/more_patient.rs", "src/threshold/mod.rs", "src/algorithms.rs"];
    let names: Vec<PathBuf> =
        names.iter().chain(&["tests/vectors/main.rs"]).map(|name| Path::new("crates/variants").join(name)).collect();
    assert_eq!(files, names);
    let [algorithm, test, module, algorithms, main] = [0, 1, 2, 3, 4].map(|i| read(&files[i]));
    assert!(
        algorithm.contains("struct MorePatientConfig {") && algorithm.contains("struct MorePatient {"),
        "{algorithm}"
    );
    assert!(!algorithm.contains(" Patient") && !algorithm.contains("template"), "{algorithm}");
    assert!(test.contains("variant(\"more-patient\")") && !test.contains("template"), "{test}");
    assert!(module.contains("\npub mod more_patient;\n"), "{module}");
    let list = module.split_once("VARIANTS: &[Variant] = &[").unwrap().1.split_once("];").unwrap().0;
    assert!(list.ends_with("    MORE_PATIENT,\n"), "{list}");
    assert!(
        module.contains("    name: \"more-patient\",")
            && module.contains("page: &crate::pages::THRESHOLD_MORE_PATIENT")
    );
    assert!(algorithms.contains("        MorePatient(crate::threshold::more_patient::MorePatientConfig),\n"));
    assert!(main.contains("\nmod more_patient;\n"), "{main}");
}

#[test]
fn what_cannot_be_added_is_refused() {
    for (family, name, says) in [
        ("thresholds", "mine", "thresholds: no such family; allowed are base, "),
        ("threshold", "rack", "rack: there is already a variant"),
        ("threshold", "My_Name", "My_Name: write a name in lower case"),
        ("threshold", "a--b", "a--b: write a name"),
    ] {
        let error = xtask::new::variant(Path::new("/nowhere"), family, name).unwrap_err();
        assert!(error.starts_with(says) && error.lines().count() == 1, "{error}");
    }
}
