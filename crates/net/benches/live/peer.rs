//! The kernel's end.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use tokio::io::AsyncReadExt;

use crate::rate;

/// Bytes of one call.
pub(crate) const CHUNK: usize = 1 << 18;

/// Reads to the end; the rate.
pub(crate) fn sink(listener: &TcpListener) -> io::Result<f64> {
    let (mut stream, _) = listener.accept()?;
    let (mut buffer, mut total, began) = (vec![0; CHUNK], 0, Instant::now());
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(rate(total, began.elapsed())),
            n => total += n,
        }
    }
}

/// Writes until the other end goes away.
pub(crate) fn source(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let chunk = vec![1; CHUNK];
    while stream.write_all(&chunk).is_ok() {}
    Ok(())
}

/// Returns each byte.
pub(crate) fn echo(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut byte = [0; 1];
    while stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

/// Reads `flows` connections to their ends; the rate of all together, from the first connection on.
pub(crate) fn many(listener: TcpListener, flows: usize) -> io::Result<f64> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (mut tasks, mut began) = (Vec::new(), None);
        for _ in 0..flows {
            let (mut stream, _) = listener.accept().await?;
            began.get_or_insert_with(Instant::now);
            tasks.push(tokio::spawn(async move {
                let (mut buffer, mut total) = (vec![0; 1 << 16], 0);
                loop {
                    match stream.read(&mut buffer).await? {
                        0 => return io::Result::Ok(total),
                        n => total += n,
                    }
                }
            }));
        }
        let mut total = 0;
        for task in tasks {
            total += task.await.map_err(io::Error::other)??;
        }
        Ok(rate(total, began.unwrap_or_else(Instant::now).elapsed()))
    })
}
