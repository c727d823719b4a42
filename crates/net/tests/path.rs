//! A path whose MTU is smaller than the device's: us, a router (the kernel of one namespace), and a kernel behind it.

mod namespace;

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use namespace::{OURS, OURS_6, in_namespace, network};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use reknit_net::TcpStream;
use reknit_testkit::machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of the transfer.
const LEN: usize = 300_000;
/// What the second link carries.
const MTU: u16 = 1300;

fn byte(position: usize) -> u8 {
    (position * 7 + position / 251) as u8
}

/// Waits until the device can send: a new link drops packets for up to a second.
fn wait_for(device: &str) -> io::Result<()> {
    loop {
        let output = Command::new("ip").args(["-o", "link", "show", device]).output()?;
        if String::from_utf8_lossy(&output.stdout).contains("state UP") {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn run(commands: &[&str]) -> io::Result<()> {
    for command in commands {
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap_or_default()).args(words).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(io::Error::other(format!("{command}: {}", text.trim())));
        }
    }
    Ok(())
}

/// Makes this namespace a router to another one, in which a server reads one connection. Its thread returns what it has read.
fn server_behind_a_router() -> io::Result<JoinHandle<io::Result<Vec<u8>>>> {
    let (tell, told) = channel();
    let (go, may_go) = channel();
    let server = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        tell.send(gettid().as_raw()).map_err(io::Error::other)?;
        may_go.recv().map_err(io::Error::other)?;
        run(&[
            "ip address add 10.78.0.2/24 dev far",
            "ip -6 address add fd78::2/64 dev far nodad",
            "ip link set far up",
            "ip route add default via 10.78.0.1",
            "ip -6 route add default via fd78::1",
        ])?;
        let listener = TcpListener::bind("[::]:7000")?; // for both families
        wait_for("far")?;
        tell.send(0).map_err(io::Error::other)?;
        let mut received = Vec::new();
        listener.accept()?.0.read_to_end(&mut received)?;
        Ok(received)
    });
    let thread = told.recv().map_err(io::Error::other)?;
    run(&[
        &format!("ip link add near type veth peer name far netns {thread}"),
        // The server's device carries more, so its SYN allows larger segments.
        &format!("ip link set near mtu {MTU} up"),
        "ip address add 10.78.0.1/24 dev near",
        "ip -6 address add fd78::1/64 dev near nodad",
    ])?;
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
    go.send(()).map_err(io::Error::other)?;
    told.recv().map_err(io::Error::other)?;
    wait_for("near")?;
    Ok(server)
}

/// Transfers to the server behind the router; the segment size at the end, and how often it was found without ICMP.
fn transfer(remote: &'static str, offload: bool, filtered: bool) {
    in_namespace(move || async move {
        let network = network(offload)?;
        let server = server_behind_a_router()?;
        if filtered {
            run(&[
                "nft add table inet filter",
                "nft add chain inet filter out { type filter hook output priority 0 ; }",
                "nft add rule inet filter out icmp type destination-unreachable drop",
                "nft add rule inet filter out icmpv6 type packet-too-big drop",
            ])?;
        }
        let remote: SocketAddr = remote.parse().map_err(io::Error::other)?;
        let local = (if remote.is_ipv4() { OURS } else { OURS_6 }, 0).into();
        let mut stream = TcpStream::connect_with(&network, Some(local), remote, network.socket_options()).await?;
        stream.write_all(&(0..LEN).map(byte).collect::<Vec<_>>()).await?;
        stream.shutdown().await?;
        assert_eq!(stream.read(&mut [0; 1]).await?, 0);
        let received = server.join().expect("no panic")?;
        assert!(received.iter().copied().eq((0..LEN).map(byte)), "{} bytes", received.len());
        let headers = if remote.is_ipv4() { 40 } else { 60 };
        let (size, counters) = (stream.info()?.segment_size + headers, network.counters());
        if filtered {
            assert!((1000..=MTU).contains(&size), "{size}");
            assert_eq!((counters.icmp_accepted, counters.black_holes), (0, 1));
        } else {
            assert_eq!((size, counters.black_holes), (MTU, 0), "{counters:?}");
            assert!(counters.icmp_accepted > 0);
        }
        Ok(())
    });
}

#[test]
fn the_router_says_what_fits() {
    if !machine::has(&["ip"]) {
        return;
    }
    transfer("10.78.0.2:7000", true, false);
    transfer("10.78.0.2:7000", false, false);
    transfer("[fd78::2]:7000", true, false);
    transfer("[fd78::2]:7000", false, false);
}

#[test]
fn a_silent_router_is_probed() {
    if !machine::has(&["ip", "nft"]) {
        return;
    }
    transfer("10.78.0.2:7000", true, true);
    transfer("[fd78::2]:7000", false, true);
}
