//! Identifies the sources on which results depend, so that a store does not mix results of different engines.

/// What a simulation runs.
const SIMULATION: [&str; 9] = [
    "src",
    "../config/src",
    "../units/src",
    "../recovery/src",
    "../tcp/src",
    "../variants/src",
    "../path/src",
    "../sim/src",
    "../path/profiles",
];

fn main() {
    println!("cargo::rustc-env=REKNIT_SOURCES={}", reknit_version::digest(&SIMULATION).unwrap_or_default());
    // A replay also depends on what is measured in its capture.
    reknit_version::emit(&[&SIMULATION[..], &["../trace/src"]].concat());
}
