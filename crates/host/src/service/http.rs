//! Serves metrics over HTTP. Each client has its own thread, so a slow or silent one does not block the others; the number of
//! clients, and the size and time of requests, are limited.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The longest request, in how many pieces it may come, and how long each may take.
const MAX_BYTES: usize = 8 << 10;
const MAX_READS: usize = 64;
const IO_TIMEOUT: Duration = Duration::from_secs(2);
/// Clients at a time. Beyond, the oldest is cut off.
const MAX_CLIENTS: usize = 64;
/// How long to wait if no client can be served.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes the address at which a service serves its metrics.
///
/// # Errors
/// One line: the address, why it cannot be used, and what to do.
pub fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let advice = if error.kind() == io::ErrorKind::AddrInUse { "; choose another with --metrics" } else { "" };
        format!("metrics {address}: {}{advice}", reknit_config::without_numbers(&error.to_string()))
    })
}

/// Answers requests for `/metrics` with what `text` returns, in the text format of Prometheus, until the program ends.
pub fn serve(listener: TcpListener, text: impl Fn() -> String + Send + Sync + 'static) {
    let (text, clients) = (Arc::new(text), Clients::default());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(PAUSE); // no more file descriptors, for example
                continue;
            };
            let Ok(other) = stream.try_clone() else { continue };
            let client = Client::enter(&clients, other);
            let text = text.clone();
            let answered = thread::Builder::new().spawn(move || {
                let _ = answer(&stream, &*text); // a client that goes away is no error
                drop(client);
            });
            if answered.is_err() {
                thread::sleep(PAUSE);
            }
        }
    });
}

/// The connections of all clients, the oldest first.
type Clients = Arc<Mutex<VecDeque<Arc<TcpStream>>>>;

/// A client that is being served. It leaves when it is dropped.
struct Client {
    clients: Clients,
    stream: Arc<TcpStream>,
}

impl Client {
    /// A new client. If there are too many, the oldest one has to go: it has had the most time.
    fn enter(clients: &Clients, stream: TcpStream) -> Client {
        let stream = Arc::new(stream);
        let mut all = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MAX_CLIENTS
            && let Some(oldest) = all.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both); // perhaps it has just gone
        }
        all.push_back(stream.clone());
        Client { clients: clients.clone(), stream }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut all = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|stream| !Arc::ptr_eq(stream, &self.stream));
    }
}

fn answer(mut stream: &TcpStream, text: &impl Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    let mut request = Vec::new();
    let mut bytes = [0; 1024];
    let mut reads = 0;
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut bytes)?;
        reads += 1;
        if read == 0 || request.len() + read > MAX_BYTES || reads == MAX_READS {
            return Ok(());
        }
        request.extend(&bytes[..read]);
    }
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let is_metrics = request.starts_with(b"GET /metrics ");
    let (status, body) =
        if is_metrics { ("200 OK", text()) } else { ("404 Not Found", "the metrics are at /metrics\n".to_owned()) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: std::net::SocketAddr, line: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{line}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = taken.local_addr().unwrap();
        let says = format!("metrics {address}: Address already in use; choose another with --metrics");
        assert_eq!(bind(address).unwrap_err(), says);
    }

    #[test]
    fn silent_clients_do_not_keep_others_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, || "reknit 1\n".to_owned());
        let silent: Vec<TcpStream> = (0..2 * MAX_CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let answer = ask(address, "GET /metrics HTTP/1.1");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nreknit 1\n"), "{answer}");
        assert!(ask(address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
        drop(silent);
    }
}
