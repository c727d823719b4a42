//! The names of the other end, and what is reached there.

use super::*;

#[test]
fn the_other_end_has_a_name_for_its_ipv6_address() {
    if !can_run(&["ping"]) {
        return;
    }
    let ping = "if grep -q 1 /proc/sys/net/ipv6/conf/all/disable_ipv6; then exit 9; fi; ping -q -c 1 server6 && \
                ping -q -c 1 gateway6 && ping -q -c 1 server && ! ping -q -c 1 -6 server 2>/dev/null";
    let output = run(&["--path", "clean", "--outside", "none", "--quiet", "--", "sh", "-c", ping]);
    if output.status.code() == Some(9) {
        return machine::skip("IPv6");
    }
    let (text, error) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{text}{error}");
    for name in ["PING server6(server6 (fd77:", "PING gateway6(server6 (fd77:", "PING server (10.77."] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn a_server_on_this_machine_is_reached_at_the_gateway() {
    if !can_run(&["ping"]) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::io::Write::write_all(&mut client, b"hello\n").unwrap();
        }
    });
    for is_root in [true, false] {
        let fetch = format!("cat < /dev/tcp/gateway/{port}");
        let arguments = ["--path", "clean", "--outside", "relay", "--quiet", "--", "bash", "-c", &fetch];
        let Some(output) = run_as(is_root, &arguments) else { return };
        assert_eq!(stdout(&output), "hello\n", "{}", stderr(&output));
        // A server in the experiment is meant to be alone there.
        let arguments = [&["--server", "iperf3 -s"], &arguments[..]].concat();
        let Some(output) = run_as(is_root, &arguments) else { return };
        assert_eq!(stdout(&output), "", "{}", stderr(&output));
    }
}
