//! The header, used by a program that the machine's C compiler builds.

use std::path::Path;
use std::process::Command;

use reknit_testkit::machine;

#[test]
fn the_loss_detector_is_the_same_in_c() {
    if !machine::has(&["cc"]) {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recovery");
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().expect("it is in a folder");
    let library = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libreknit_recovery_c"))
            && path.extension().is_some_and(|e| e == "so")
    });
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"])
        .arg(here.join("tests/recovery.c"))
        .arg("-I")
        .arg(here.join("include"))
        .arg("-o")
        .arg(&program)
        .arg(library.expect("cargo has built the library"))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
