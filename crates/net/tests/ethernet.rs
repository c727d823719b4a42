//! A network on an Ethernet interface, with the kernel of another namespace as its peer.

#[expect(dead_code, reason = "this test has its own network")]
mod namespace;

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use namespace::{OURS, in_namespace, within};
use nix::sched::{CloneFlags, unshare};
use reknit_net::{EthernetIo, Network, TcpListener, TcpStream, UdpSocket};
use reknit_testkit::machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const LEN: usize = 20_000_000;

fn ip(command: &str) {
    let output = Command::new("ip").args(command.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {command}: {}", String::from_utf8_lossy(&output.stderr));
}

fn own() -> Ipv4Addr {
    match OURS {
        std::net::IpAddr::V4(own) => own,
        std::net::IpAddr::V6(_) => unreachable!("it is one of IPv4"),
    }
}

/// Makes two interfaces: `ours` here, and `peer` in the namespace in which `run` is then called, with the kernel's address.
fn with_peer<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> std::thread::JoinHandle<R> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (made, is_made) = std::sync::mpsc::channel();
    let (up, is_up) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ready.send(nix::unistd::gettid()).unwrap();
        is_made.recv().unwrap();
        ip(&format!("address add {PEER}/24 dev peer"));
        ip("link set peer up");
        up.send(()).unwrap();
        run()
    });
    ip(&format!("link add ours type veth peer name peer netns {}", is_ready.recv().unwrap()));
    ip("link set ours up");
    made.send(()).unwrap();
    is_up.recv().unwrap();
    thread
}

/// The kernel's end: returns what it gets on port 7000, and connects to port 80.
fn peer() -> io::Result<usize> {
    use std::io::{Read, Write};
    let (mut stream, _) = std::net::TcpListener::bind((PEER, 7000))?.accept()?;
    let mut got = Vec::new();
    stream.read_to_end(&mut got)?;
    stream.write_all(&got)?;
    drop(stream);
    let mut stream = std::net::TcpStream::connect((OURS, 80))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert_eq!(answer, "hello");
    let socket = std::net::UdpSocket::bind((PEER, 0))?;
    socket.send_to(&vec![5; 40_000], (OURS, 53))?; // in fragments
    Ok(got.len())
}

#[test]
fn transfers_both_ways_beside_the_kernel() {
    if !machine::has(&["root", "/dev/net/tun", "ip"]) {
        return;
    }
    in_namespace(|| async {
        let peer = with_peer(peer);
        let network = Network::builder(OURS).start_on(EthernetIo::open("ours", own(), PEER)?)?;
        let listener = TcpListener::bind(&network, (OURS, 80).into())?;
        let udp = UdpSocket::bind(&network, (OURS, 53).into())?;
        let mut stream = TcpStream::connect(&network, (PEER, 7000).into()).await?;
        let sent: Vec<u8> = (0..LEN as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect();
        stream.write_all(&sent).await?;
        stream.shutdown().await?;
        let mut got = Vec::new();
        within(stream.read_to_end(&mut got)).await?;
        assert!(got == sent, "{} bytes came back", got.len());
        let (mut accepted, from) = within(listener.accept()).await?;
        assert_eq!(from.ip(), PEER);
        accepted.write_all(b"hello").await?;
        accepted.closed().await?;
        let mut datagram = vec![0; 60_000];
        assert_eq!(within(udp.recv(&mut datagram)).await?.len, 40_000);
        assert_eq!(tokio::task::spawn_blocking(|| peer.join().unwrap()).await??, LEN);
        Ok(())
    });
}

#[test]
fn interfaces_that_cannot_be_used_are_refused_with_a_reason() {
    in_namespace(|| async {
        for (interface, reason) in [
            ("nowhere0", "interface nowhere0: there is no such interface"),
            ("a-name-that-is-too-long", "interface a-name-that-is-too-long: there is no such interface"),
            ("lo", "interface lo: it is not an Ethernet interface; use `FdIo` or `Device`"),
        ] {
            assert_eq!(EthernetIo::open(interface, own(), PEER).unwrap_err().to_string(), reason);
        }
        Ok(())
    });
}
