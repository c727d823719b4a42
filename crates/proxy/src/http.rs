//! A small HTTP server for metrics.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The longest request, how long one may take, and how many are answered at a time.
const MAX_REQUEST: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_CLIENTS: usize = 16;

/// Answers requests for `/metrics` with what `text` returns.
pub(crate) async fn serve(listener: TcpListener, text: impl Fn() -> String + Send + Sync + 'static) {
    let (text, free) = (Arc::new(text), Arc::new(Semaphore::new(MAX_CLIENTS)));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let text = text.clone();
        tokio::spawn(async move {
            let _ = timeout(PATIENCE, answer(stream, &*text)).await; // the client asks again
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream, text: &impl Fn() -> String) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let is_metrics = request.starts_with(b"GET /metrics ");
    let (status, body) = if is_metrics { ("200 OK", text()) } else { ("404 Not Found", "see /metrics\n".to_owned()) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
