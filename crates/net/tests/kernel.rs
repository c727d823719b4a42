//! Sockets of a network with those of the kernel as peers, each pair in a network namespace of its own.

mod namespace;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use namespace::{KERNEL, KERNEL_6, OURS, OURS_6, in_namespace, network, within};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use reknit_net::{Network, SocketOptions, TcpListener, TcpStream};
use reknit_testkit::machine;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const PORT: u16 = 7000;

fn ours() -> SocketAddr {
    (OURS, PORT).into()
}

fn kernels() -> SocketAddr {
    (KERNEL, PORT).into()
}

/// Bytes that do not repeat soon.
fn chunk(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = (0..8192).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes `chunks` chunks and the end; the digest of what was written.
async fn send(mut into: impl AsyncWrite + Unpin, chunks: u64) -> io::Result<Vec<u8>> {
    let mut digest = Sha256::new();
    for number in 0..chunks {
        let chunk = chunk(number);
        digest.update(&chunk);
        into.write_all(&chunk).await?;
    }
    into.shutdown().await?;
    Ok(digest.finalize().to_vec())
}

/// Reads to the end; the digest and the number of bytes.
async fn receive(mut from: impl AsyncRead + Unpin) -> io::Result<(Vec<u8>, usize)> {
    let (mut digest, mut total, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match from.read(&mut buffer).await? {
            0 => return Ok((digest.finalize().to_vec(), total)),
            n => {
                digest.update(&buffer[..n]);
                total += n;
            }
        }
    }
}

/// Both directions at once; true if everything has arrived as it was sent.
async fn exchange(ours: TcpStream, kernel: tokio::net::TcpStream, chunks: u64) -> io::Result<()> {
    let (our_read, our_write) = ours.into_split();
    let (kernel_read, kernel_write) = kernel.into_split();
    let (a, b, c, d) =
        tokio::join!(send(our_write, chunks), receive(kernel_read), send(kernel_write, chunks), receive(our_read));
    let size = chunks as usize * chunk(0).len();
    assert_eq!((a?, size), b?, "from us to the kernel");
    assert_eq!((c?, size), d?, "from the kernel to us");
    Ok(())
}

/// Transfers over a connection that the kernel opens, and over one that we open.
fn exchange_both_ways(ours: IpAddr, kernel: IpAddr, offload: bool) {
    in_namespace(move || async move {
        let network = network(offload)?;
        let (ours, kernel) = ((ours, PORT).into(), (kernel, PORT).into());
        let listener = TcpListener::bind(&network, ours)?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), tokio::net::TcpStream::connect(ours))?;
        exchange(accepted.0, opened, 20).await?;
        let listener = tokio::net::TcpListener::bind(kernel).await?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), TcpStream::connect(&network, kernel))?;
        exchange(opened, accepted.0, 20).await
    });
}

#[test]
fn transfers_with_offload() {
    exchange_both_ways(OURS, KERNEL, true);
    exchange_both_ways(OURS_6, KERNEL_6, true);
}

#[test]
fn transfers_without_offload() {
    exchange_both_ways(OURS, KERNEL, false);
    exchange_both_ways(OURS_6, KERNEL_6, false);
}

#[test]
fn five_hundred_connections_at_once() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = TcpListener::bind(&network, ours())?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        let clients: Vec<_> = (0..500u64)
            .map(|number| {
                tokio::spawn(async move {
                    let mut stream = tokio::net::TcpStream::connect(ours()).await?;
                    let sent = chunk(number);
                    stream.write_all(&sent[..5000]).await?;
                    stream.shutdown().await?;
                    let mut got = Vec::new();
                    stream.read_to_end(&mut got).await?;
                    assert!(got == sent[..5000]);
                    io::Result::Ok(())
                })
            })
            .collect();
        for client in clients {
            client.await.map_err(io::Error::other)??;
        }
        Ok(())
    });
}

#[test]
fn failures_are_those_that_programs_know() {
    in_namespace(|| async {
        let network = network(true)?;
        let refused = TcpStream::connect(&network, kernels()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(refused.to_string(), "10.77.0.1:7000: connection refused; start a server that listens there");
        let refused = tokio::net::TcpStream::connect(ours()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let in_use = TcpListener::bind(&network, ours())?;
        let again = TcpListener::bind(&network, ours()).err().expect("only one may listen");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(again.to_string(), "10.77.0.2:7000 is in use; choose another port, or 0 for a free one");
        let elsewhere = TcpListener::bind(&network, kernels()).err().map(|error| error.to_string());
        assert_eq!(
            elsewhere.as_deref(),
            Some("10.77.0.1:7000 is not an address of this stack; it has 10.77.0.2, fd77::2")
        );
        let (accepted, opened) = tokio::try_join!(in_use.accept(), tokio::net::TcpStream::connect(ours()))?;
        let (mut accepted, _) = accepted;
        drop(in_use);
        accepted.write_all(b"unread").await?;
        while accepted.info()?.unacknowledged.0 > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(opened); // with unread data, so it resets
        let mut rest = Vec::new();
        let result = accepted.read_to_end(&mut rest).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        let gone = tokio::net::TcpStream::connect(ours()).await.unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::ConnectionRefused, "nobody listens any more");
        Ok(())
    });
}

#[test]
fn closing_with_unread_data_resets_the_kernel() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = TcpListener::bind(&network, ours())?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), tokio::net::TcpStream::connect(ours()))?;
        let (accepted, mut opened) = (accepted.0, opened);
        opened.write_all(b"nobody reads this").await?;
        while accepted.info()?.readable.0 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(accepted);
        let error = opened.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    });
}

#[test]
fn a_variant_changes_in_the_middle_and_halves_reunite() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = tokio::net::TcpListener::bind(kernels()).await?;
        let mut options = SocketOptions::default();
        options.config.nagle = false;
        let opened = TcpStream::connect_with(&network, None, kernels(), &options);
        let (accepted, opened) = tokio::try_join!(listener.accept(), opened)?;
        let (read, mut write) = opened.into_split();
        let received = tokio::spawn(receive(accepted.0));
        let mut digest = Sha256::new();
        for (number, name) in (0..).zip(["linux", "bbr", "pr", "sack", "reknit"].repeat(4)) {
            write.as_ref().set_variant(name).map_err(io::Error::other)?;
            let chunk = chunk(number);
            digest.update(&chunk);
            write.write_all(&chunk).await?;
        }
        assert!(write.as_ref().set_variant("rino").unwrap_err().to_string().contains("reno"));
        let mut stream = read.reunite(write).map_err(|_| io::Error::other("they belong together"))?;
        stream.shutdown().await?;
        let (received, _) = received.await.map_err(io::Error::other)??;
        assert_eq!(received, digest.finalize().to_vec());
        Ok(())
    });
}

#[test]
fn the_network_ends_with_its_last_user() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = tokio::net::TcpListener::bind(kernels()).await?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), TcpStream::connect(&network, kernels()))?;
        let (mut accepted, mut opened) = (accepted.0, opened);
        opened.write_all(&chunk(1)).await?;
        drop((opened, network));
        let mut got = Vec::new();
        within(accepted.read_to_end(&mut got)).await?;
        assert!(got == chunk(1), "what was written still arrives");
        drop(accepted);
        for _ in 0..1000 {
            if !std::fs::read_to_string("/proc/thread-self/net/dev")?.contains("reknit") {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the device is still there");
    });
}

#[test]
fn a_device_that_cannot_be_created_says_why() {
    in_namespace(|| async {
        let _first = network(true)?;
        let second = Network::builder(OURS).device("reknit0", KERNEL, 24).start().err().expect("the name is in use");
        let advice = "another program uses the name: choose another one";
        assert_eq!(second.to_string(), format!("TUN device reknit0: Device or resource busy; {advice}"));
        let none = Network::builder(OURS).start().err().map(|error| error.to_string());
        assert_eq!(none.as_deref(), Some("no device: call `device` with its name and address"));
        Ok(())
    });
}

#[test]
fn a_machine_without_tun_says_so() {
    in_namespace(|| async {
        // In a mount namespace of this thread alone, /dev/net is empty and cannot be written.
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
        mount(Some("none"), "/dev/net", Some("tmpfs"), MsFlags::MS_RDONLY, None::<&str>)?;
        let error = network(true).err().expect("there is no TUN");
        let advice = "the kernel has no /dev/net/tun: load its module with `modprobe tun`";
        assert_eq!(error.to_string(), format!("TUN device reknit0: No such file or directory; {advice}"));
        Ok(())
    });
}

#[test]
fn streams_outlive_the_runtime_of_their_network_with_an_error() {
    in_namespace(|| async {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:7000").await?;
        // The other thread is in the same namespace.
        let other = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { TcpStream::connect(&network(true)?, kernels()).await })
        });
        let (accepted, opened) = tokio::join!(listener.accept(), tokio::task::spawn_blocking(|| other.join()));
        let (_accepted, mut opened) = (accepted?, opened?.expect("no panic")?);
        let error = within(opened.read(&mut [0; 10])).await.unwrap_err();
        assert_eq!(error.to_string(), "the runtime in which the network was started has ended");
        Ok(())
    });
}

#[test]
fn several_tasks_accept_from_one_listener() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = std::sync::Arc::new(TcpListener::bind(&network, ours())?);
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let listener = listener.clone();
                tokio::spawn(async move { listener.accept().await.map(|(stream, _)| stream) })
            })
            .collect();
        tokio::task::yield_now().await; // all of them wait now
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(tokio::net::TcpStream::connect(ours()).await?);
        }
        for task in tasks {
            within(task).await.map_err(io::Error::other)??;
        }
        Ok(())
    });
}

#[test]
fn peeking_and_vectored_writes() {
    in_namespace(|| async {
        let network = network(true)?;
        let listener = TcpListener::bind(&network, ours())?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), tokio::net::TcpStream::connect(ours()))?;
        let ((mut accepted, _), mut opened) = (accepted, opened);
        assert!(!accepted.nodelay()?);
        accepted.set_nodelay(true)?;
        assert!(accepted.nodelay()?);
        let (parts, mut got) = ([&b"one, "[..], b"", b"two"].map(io::IoSlice::new), [0; 8]);
        assert!(accepted.is_write_vectored());
        assert_eq!(accepted.write_vectored(&parts).await?, 8);
        opened.read_exact(&mut got).await?;
        assert_eq!(&got, b"one, two");
        let mut peeked = [0; 3];
        let (peeking, writing) = tokio::join!(accepted.peek(&mut peeked), opened.write_all(b"hello"));
        writing?;
        assert_eq!((&peeked[..peeking?], accepted.peek(&mut [0; 9]).await?), (&b"hel"[..], 5));
        accepted.read_exact(&mut got[..5]).await?;
        assert_eq!(&got[..5], b"hello");
        opened.shutdown().await?;
        assert_eq!(accepted.peek(&mut peeked).await?, 0);
        Ok(())
    });
}

#[test]
fn a_device_that_is_removed_ends_everything_with_a_reason() {
    if !machine::has(&["ip"]) {
        return;
    }
    in_namespace(|| async {
        let network = network(true)?;
        let listener = TcpListener::bind(&network, ours())?;
        let (accepted, _opened) = tokio::try_join!(listener.accept(), tokio::net::TcpStream::connect(ours()))?;
        let mut accepted = accepted.0;
        let removed = std::process::Command::new("ip").args(["link", "del", "reknit0"]).status()?;
        assert!(removed.success());
        let reason = "the TUN device was removed; start the network again";
        let error = within(accepted.read(&mut [0; 10])).await.unwrap_err();
        assert_eq!(error.to_string(), reason);
        let error = within(listener.accept()).await.expect_err("nothing can arrive");
        assert_eq!(error.to_string(), reason);
        let error = TcpStream::connect(&network, kernels()).await.unwrap_err();
        assert_eq!(error.to_string(), reason);
        Ok(())
    });
}

#[test]
fn the_device_has_several_addresses() {
    if !machine::has(&["ip"]) {
        return;
    }
    in_namespace(|| async {
        let more = |last| IpAddr::from([10, 88, 0, last]);
        let network = Network::builder(OURS)
            .address(more(2))
            .device("reknit0", KERNEL, 24)
            .device_address(KERNEL_6, 64)
            .device_address(more(1), 24)
            .start()?;
        let listener = TcpListener::bind(&network, ([0, 0, 0, 0], PORT).into())?;
        for address in [OURS, more(2)] {
            let remote = SocketAddr::new(address, PORT);
            let (accepted, _opened) = tokio::try_join!(listener.accept(), tokio::net::TcpStream::connect(remote))?;
            assert_eq!(accepted.0.local_addr()?, remote);
        }
        let twice = Network::builder(OURS).device("reknit1", KERNEL, 24).device_address(more(1), 99).start();
        let error = twice.err().expect("no such prefix").to_string();
        assert!(error.starts_with("TUN device: address 10.88.0.1/99: "), "{error}");
        Ok(())
    });
}

#[test]
fn a_missing_device_node_is_an_error_and_is_not_made() {
    in_namespace(|| async {
        unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from)?;
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(io::Error::from)?;
        mount(none, "/dev/net", Some("tmpfs"), MsFlags::empty(), none).map_err(io::Error::from)?;
        let error = Network::builder(OURS).device("reknit0", KERNEL, 24).start().err().expect("no node").to_string();
        assert!(error.ends_with("the kernel has no /dev/net/tun: load its module with `modprobe tun`"), "{error}");
        assert!(!std::fs::exists("/dev/net/tun")?);
        Ok(())
    });
}
