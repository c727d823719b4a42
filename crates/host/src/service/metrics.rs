//! Metrics in the text format of Prometheus, over HTTP: a small server, and what reads from it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// The longest request, and how long one may take.
const MAX_REQUEST: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers requests for `/metrics` with what `text` returns, one after the other, in a thread.
pub fn serve(listener: TcpListener, text: impl Fn() -> String + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => drop(answer(stream, &text)), // the client asks again
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    });
}

fn answer(mut stream: TcpStream, text: &impl Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            n => request.extend_from_slice(&part[..n]),
        }
    }
    let is_metrics = request.starts_with(b"GET /metrics ");
    let (status, body) = if is_metrics { ("200 OK", text()) } else { ("404 Not Found", "see /metrics\n".to_owned()) };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The metrics that a service serves at `address`.
///
/// # Errors
/// If nothing answers there, or not with metrics.
pub fn fetch(address: SocketAddr) -> Result<String, String> {
    let refuse = |error: io::Error| format!("{address}: {}", reknit_config::file_error(&error));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(refuse)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(refuse)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").map_err(refuse)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(refuse)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(format!("{address}: no metrics there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_can_be_fetched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, || "reknit 1\n".to_owned());
        assert_eq!(fetch(address).unwrap(), "reknit 1\n");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}
