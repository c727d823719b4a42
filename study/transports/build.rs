//! Tells the program which versions of the transports it is built with, as `Cargo.lock` has them.

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file is part of the repository");
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version)) = (value("name"), value("version")) {
            println!("cargo:rustc-env=VERSION_{}={version}", name.replace('-', "_").to_uppercase());
        }
    }
}
