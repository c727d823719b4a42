//! Networks in one process, without a device: over channels, in any runtime, and in threads.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reknit_net::{ChannelIo, Network, PacketIo, TcpForwarder, TcpListener, TcpStream, channel, pair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LEN: usize = 1_000_000;

fn data() -> Vec<u8> {
    (0..LEN as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}

async fn listen_and_read(network: &Network) -> io::Result<Vec<u8>> {
    let listener = TcpListener::bind(network, (TWO, 80).into())?;
    let (mut stream, _) = listener.accept().await?;
    let mut got = Vec::new();
    stream.read_to_end(&mut got).await?;
    Ok(got)
}

async fn connect_and_write(network: &Network) -> io::Result<TcpStream> {
    let mut stream = loop {
        // The server may not listen yet.
        match TcpStream::connect(network, (TWO, 80).into()).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => tokio::task::yield_now().await,
            other => break other?,
        }
    };
    stream.write_all(&data()).await?;
    Ok(stream)
}

#[tokio::test]
async fn two_networks_over_a_link_in_memory() {
    let (one, two) = pair(1500, 256);
    let one = Network::builder(ONE).start_on(one).unwrap();
    let two = Network::builder(TWO).start_on(two).unwrap();
    let (got, written) = tokio::join!(listen_and_read(&two), async {
        let stream = connect_and_write(&one).await?;
        stream.closed().await
    });
    written.unwrap();
    assert!(got.unwrap() == data());
    assert!(one.shutdown(Duration::from_secs(10)).await.is_ok());
}

#[test]
fn threads_without_a_runtime() {
    let (one, two) = pair(9000, 256);
    let (one, driver_one) = Network::builder(ONE).build(one).unwrap();
    let (two, driver_two) = Network::builder(TWO).build(two).unwrap();
    let drivers =
        [std::thread::spawn(|| driver_one.run_in_thread()), std::thread::spawn(|| driver_two.run_in_thread())];
    let reader = std::thread::spawn(move || block_on(listen_and_read(&two)));
    let stream = block_on(connect_and_write(&one)).unwrap();
    block_on(stream.closed()).unwrap();
    drop((stream, one));
    assert!(reader.join().unwrap().unwrap() == data());
    for driver in drivers {
        driver.join().unwrap();
    }
}

/// Runs a future without a runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park_timeout(Duration::from_millis(10)),
        }
    }
}

#[test]
fn a_network_whose_runtime_ends_still_delivers() {
    // Each network ends with its runtime, in each way that runs destructors, while its peer lives on.
    let rounds = std::env::var("REKNIT_ROUNDS").map_or(300u32, |rounds| rounds.parse().expect("a number"));
    for round in 0..rounds {
        let byte = (round % 251) as u8;
        let (mut peer, io) = pair(1500, 64);
        let server = std::thread::scope(|scope| {
            let client = scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                let ends = std::panic::AssertUnwindSafe(|| {
                    runtime.block_on(async {
                        let network = Network::builder(ONE).start_on(io).unwrap();
                        let mut stream = TcpStream::connect(&network, (TWO, 80).into()).await.unwrap();
                        stream.write_all(&[byte; 5000]).await.unwrap();
                        if round % 3 == 0 {
                            tokio::spawn(async move {
                                let _stream = stream;
                                std::future::pending::<()>().await;
                            });
                        }
                        assert!(round % 100 != 1, "an end by panic");
                    });
                    drop(runtime);
                });
                assert_eq!(std::panic::catch_unwind(ends).is_err(), round % 100 == 1);
            });
            let got = serve(&mut peer);
            client.join().unwrap();
            got
        });
        assert_eq!(server, vec![byte; 5000], "round {round}");
    }
}

/// A host by hand that reads one connection to its end.
fn serve(io: &mut ChannelIo) -> Vec<u8> {
    use reknit_stack::{Event, ListenOptions, Options, Stack};
    use reknit_units::{Duration, Instant};

    let mut now = Instant::ZERO + Duration::from_secs(1000);
    let mut stack = Stack::new(now, Options { addresses: vec![TWO], ..Options::default() }, [2; 32]);
    let listener = stack.listen((TWO, 80).into(), &ListenOptions::default()).unwrap();
    let (mut packet, mut buffer, mut got, mut socket) = (vec![0; 1500], vec![0; 4096], Vec::new(), None);
    loop {
        while let Ok(Some(n)) = io.recv(&mut packet) {
            stack.on_packet(now, &packet[..n]);
        }
        stack.on_timer(now);
        let mut out = Vec::new();
        while stack.poll_packet(now, &mut out) {
            let _ = io.send(&out);
        }
        while let Some(event) = stack.next_event() {
            if let Event::Closed(id) = event {
                stack.close(now, id);
            }
        }
        socket = socket.or_else(|| stack.accept(listener));
        while let Some(id) = socket {
            match stack.read(now, id, &mut buffer) {
                Ok(0) => {
                    stack.close(now, id);
                    while stack.poll_packet(now, &mut out) {
                        let _ = io.send(&out);
                    }
                    return got;
                }
                Ok(n) => got.extend_from_slice(&buffer[..n]),
                Err(_) => break,
            }
        }
        now = now + Duration::from_millis(1);
        std::thread::yield_now();
    }
}

#[test]
fn there_is_an_error_without_a_runtime() {
    let (io, _to, _from) = channel(1500, 8);
    let error = Network::builder(ONE).start_on(io).err().expect("no runtime");
    assert!(error.to_string().contains("no tokio runtime"), "{error}");
}

#[tokio::test]
async fn a_closed_channel_ends_the_network_with_a_reason() {
    let (io, to, from) = channel(1500, 8);
    let network = Network::builder(ONE).start_on(io).unwrap();
    let listener = TcpListener::bind(&network, (ONE, 80).into()).unwrap();
    drop((to, from));
    let error = listener.accept().await.expect_err("nothing can arrive");
    assert_eq!(error.to_string(), "the channel of the network's packets is closed");
}

#[tokio::test]
async fn reading_and_writing_without_waiting() {
    let (one, two) = pair(1500, 64);
    let one = Network::builder(ONE).start_on(one).unwrap();
    let two = Network::builder(TWO).start_on(two).unwrap();
    let listener = TcpListener::bind(&two, (TWO, 80).into()).unwrap();
    let (opened, accepted) = tokio::join!(TcpStream::connect(&one, (TWO, 80).into()), listener.accept());
    let (opened, (accepted, _)) = (opened.unwrap(), accepted.unwrap());
    let mut buffer = [0; 100];
    assert_eq!(accepted.try_read(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    opened.writable().await.unwrap();
    assert_eq!(opened.try_write(b"hello").unwrap(), 5);
    accepted.readable().await.unwrap();
    assert_eq!(accepted.try_read(&mut buffer).unwrap(), 5);
    let mut written = 0;
    while let Ok(n) = opened.try_write(&[7; 1000]) {
        written += n;
        tokio::task::yield_now().await;
    }
    let (mut reader, mut read) = (accepted, 0);
    while read < written {
        read += reader.read(&mut buffer).await.unwrap();
    }
    opened.writable().await.unwrap();
    drop(opened);
    reader.readable().await.unwrap();
    assert_eq!(reader.try_read(&mut buffer).unwrap(), 0, "the end");
}

#[tokio::test]
async fn a_proxy_connects_before_it_answers() {
    let (one, two) = pair(1500, 64);
    let client = Network::builder(ONE).start_on(one).unwrap();
    let proxy = Network::builder(TWO).forward(16).start_on(two).unwrap();
    let upstream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = upstream.local_addr().unwrap();
    let forwarder = TcpForwarder::new(&proxy);
    tokio::spawn(async move {
        while let Ok(request) = forwarder.next().await {
            if request.local_addr().port() != 443 {
                request.refuse();
                continue;
            }
            tokio::spawn(async move {
                assert_eq!(request.peer_addr().ip(), ONE);
                let mut server = tokio::net::TcpStream::connect(server).await.unwrap();
                let mut client = request.accept().await.unwrap();
                tokio::io::copy_bidirectional(&mut client, &mut server).await.unwrap();
            });
        }
    });
    let remote = |port| ([203, 0, 113, 9], port).into();
    let refused = TcpStream::connect(&client, remote(25)).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let (opened, accepted) = tokio::join!(TcpStream::connect(&client, remote(443)), upstream.accept());
    let (mut opened, (mut accepted, _)) = (opened.unwrap(), accepted.unwrap());
    let sending = async {
        opened.write_all(&data()).await.unwrap();
        opened.shutdown().await.unwrap();
        let mut answer = Vec::new();
        opened.read_to_end(&mut answer).await.unwrap();
        answer
    };
    let serving = async {
        let mut got = Vec::new();
        accepted.read_to_end(&mut got).await.unwrap();
        accepted.write_all(b"thanks").await.unwrap();
        accepted.shutdown().await.unwrap();
        got
    };
    let (answer, got) = tokio::join!(sending, serving);
    assert!(got == data() && answer == b"thanks");
}
