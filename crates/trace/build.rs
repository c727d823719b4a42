//! Identifies the sources on which an analysis depends.

fn main() {
    reknit_version::emit(&["src", "../path/src", "../units/src"]);
}
