//! hyper on our sockets, with clients of the kernel: 10,000 requests over 1,000 connections.

mod namespace;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use namespace::{OURS, in_namespace, network};
use reknit_net::TcpListener;
use reknit_testkit::machine;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// Connections that are open at once: a process may have 1024 files.
const AT_ONCE: usize = 500;
const CONNECTIONS: usize = 1000;
const REQUESTS: usize = 10;
/// From this number on, documents have about as many bytes.
const LARGE: usize = 1_000_000;

/// What the server answers to `/N`: a length and content that depend on it.
fn body(number: usize) -> Vec<u8> {
    (0..200 + if number < LARGE { number % 5000 } else { number }).map(|i| (i * 31 + number * 7) as u8).collect()
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let answer = service_fn(|request: Request<Incoming>| async move {
            let number = request.uri().path()[1..].parse().unwrap_or(0);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body(number)))))
        });
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// Asks for `REQUESTS` documents on one connection, and compares what it gets.
async fn ask(server: SocketAddr, client: usize) -> io::Result<()> {
    let mut stream = BufReader::new(tokio::net::TcpStream::connect(server).await?);
    for number in (0..REQUESTS).map(|request| client * REQUESTS + request) {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: reknit\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let (mut len, mut line) = (0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            match line.trim_end().to_ascii_lowercase().split_once(": ") {
                Some(("content-length", value)) => len = value.parse().map_err(io::Error::other)?,
                None if line == "\r\n" => break,
                None if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
        let mut got = vec![0; len];
        stream.read_exact(&mut got).await?;
        assert!(got == body(number), "request {number}");
    }
    Ok(())
}

#[test]
fn curl_downloads_a_file() {
    if !machine::has(&["curl"]) {
        return;
    }
    in_namespace(|| async {
        let network = network(true)?;
        tokio::spawn(serve(TcpListener::bind(&network, (OURS, 80).into())?));
        let curl = || Command::new("curl").args(["-sS", "--noproxy", "*", "http://10.77.0.2/1234567"]).output();
        let output = tokio::task::spawn_blocking(curl).await??;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == body(1_234_567), "{} bytes", output.stdout.len());
        Ok(())
    });
}

#[test]
fn ten_thousand_requests_over_a_thousand_connections() {
    in_namespace(|| async {
        let network = network(true)?;
        let server = (OURS, 80).into();
        tokio::spawn(serve(TcpListener::bind(&network, server)?));
        for first in (0..CONNECTIONS).step_by(AT_ONCE) {
            let clients = (first..first + AT_ONCE).map(|client| tokio::spawn(ask(server, client)));
            for client in clients.collect::<Vec<_>>() {
                client.await.map_err(io::Error::other)??;
            }
        }
        assert_eq!(network.counters().queue_overflows, 0);
        Ok(())
    });
}
