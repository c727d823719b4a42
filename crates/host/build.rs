//! Identifies the sources on which live results depend.

fn main() {
    reknit_version::emit(&[
        "src",
        "../config/src",
        "../units/src",
        "../recovery/src",
        "../tcp/src",
        "../variants/src",
        "../path/src",
        "../path/profiles",
        "../wire/src",
        "../stack/src",
    ]);
}
