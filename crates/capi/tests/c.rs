//! The header and the example, built by the machine's C compiler, with the kernel as the peer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use reknit_testkit::machine;

const LEN: usize = 10_000_000;

fn crate_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder in which cargo puts the library for C.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.ancestors().nth(1).expect("it is in a folder").to_owned()
}

/// A folder for this test's files.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn compile(source: &Path, program: &Path) {
    let library = std::fs::read_dir(library_folder()).unwrap().flatten().map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libreknit_c"))
            && path.extension().is_some_and(|e| e == "so")
    });
    let output = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"])
        .arg(source)
        .arg("-I")
        .arg(crate_file("include"))
        .arg("-o")
        .arg(program)
        .arg(library.expect("cargo has built the library"))
        .arg(format!("-Wl,-rpath,{}", library_folder().display()))
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Bytes that do not repeat.
fn data() -> Vec<u8> {
    (0..LEN as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}

#[test]
fn a_file_goes_to_the_kernel_and_back() {
    if !machine::has(&[&machine::LIVE[..], &["cc"]].concat()) {
        return;
    }
    let folder = folder("transfer");
    let program = folder.join("transfer");
    compile(&crate_file("examples/transfer.c"), &program);
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        let (sent, returned) = (folder.join("sent"), folder.join("returned"));
        std::fs::write(&sent, data()).unwrap();
        let mut child = Command::new(&program).arg("send").arg(&sent).arg("10.78.0.1:7000").spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        drop(stream);
        assert!(child.wait().unwrap().success());
        assert!(got == data(), "{} bytes arrived", got.len());

        let mut child = Command::new(&program).arg("receive").arg(&returned).arg("10.78.0.1:7000").spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&got).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(std::fs::read(&returned).unwrap() == got);
        let refused = Command::new(&program).arg("send").arg(&sent).arg("10.78.0.1:7001").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&refused.stderr), "10.78.0.1:7001: connection refused\n");

        let first = Command::new(&program).arg("send").arg(&sent).arg("10.78.0.1:7000").spawn();
        let (_stream, _) = listener.accept().unwrap(); // while it sends, it has the device
        let second = Command::new(&program).arg("send").arg(&sent).arg("10.78.0.1:7000").output().unwrap();
        let why = String::from_utf8_lossy(&second.stderr);
        assert!(why.contains("no other program may use it") && why.lines().count() == 1, "{why}");
        let mut first = first.unwrap();
        first.kill().unwrap();
        first.wait().unwrap();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Compiles a test that needs no network, and runs it.
fn passes(name: &str) {
    if !machine::has(&["cc"]) {
        return;
    }
    let program = folder(name).join(name);
    compile(&crate_file(&format!("tests/{name}.c")), &program);
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_arguments_are_refused_with_a_reason() {
    passes("arguments");
}

#[test]
fn datagrams_go_there_and_back() {
    passes("datagrams");
}
