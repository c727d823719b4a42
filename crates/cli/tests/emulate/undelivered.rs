//! What has not arrived when an emulation ends is named.

use super::*;

/// 30 kB at 2 kB/s: most of it is in the socket when the command ends. The receiver sees a reset, not the end.
#[test]
fn data_that_is_not_delivered_is_named() {
    if !can_run(&["bash", "head"]) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let send = format!("head -c 30000 /dev/zero > /dev/tcp/gateway/{}", listener.local_addr().unwrap().port());
    let receiver = std::thread::spawn(move || std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()));
    let output = run(&["--rate", "16 kbit/s", "--outside", "relay", "--quiet", "--", "bash", "-c", &send]);
    assert_eq!(output.status.code(), Some(0));
    let text = stderr(&output);
    let warning =
        text.lines().find_map(|line| line.strip_prefix("warning: ")?.split_once(" s after the command ended, "));
    let (waited, rest) = warning.unwrap_or_else(|| panic!("{text}"));
    let (bytes, rest) = rest.split_once(' ').unwrap();
    assert_eq!(rest, "bytes and the end of 1 connection were not acknowledged; the other end may not get them");
    let (waited, bytes): (f64, u32) = (waited.parse().unwrap(), bytes.replace(',', "").parse().unwrap());
    assert!(waited >= 5.0 && (10_000..30_000).contains(&bytes), "{text}");
    assert_eq!(receiver.join().unwrap().unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn datagrams_that_do_not_arrive_are_named() {
    if !can_run(&["bash"]) {
        return;
    }
    let send = "for n in 1 2 3; do echo $n > /dev/udp/gateway/9; done";
    let said = |delay: &str| {
        let output = run(&["--delay", delay, "--outside", "none", "--quiet", "--", "bash", "-c", send]);
        assert_eq!(output.status.code(), Some(0));
        stderr(&output)
    };
    let warning = "3 UDP packets had not reached the other end when the emulation ended, and will not reach it";
    assert_eq!(said("5 s"), format!("warning: {warning}\n"));
    assert_eq!(said("50 ms"), "");
}
