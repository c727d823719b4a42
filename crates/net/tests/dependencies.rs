//! Nothing above the packets knows the operating system.

use std::process::Command;

use reknit_testkit::machine;

#[test]
fn no_crate_of_the_operating_system_without_default_features() {
    // Cargo asks it for its version.
    if !machine::has(&["rustc"]) {
        return;
    }
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--no-default-features"])
        .args(["--package", "reknit-stack", "--package", "reknit-net", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(tree.contains("reknit-net"), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["nix", "rustix", "libc", "tun-rs", "mio", "socket2"] {
        assert!(!tree.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}:\n{tree}");
    }
}
