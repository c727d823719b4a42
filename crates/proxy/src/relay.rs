//! Data in both directions. An end of the stream is passed on, and so is a reset. What a connection holds here, besides the
//! buffers of both TCPs, is what one TCP did not take of a read of at most 64 KiB; an idle connection holds nothing.

use std::cell::RefCell;
use std::io;

use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::AsRawFd;

use reknit_net::Linger;
use reknit_units::Duration;

/// The most that is read at once.
const CHUNK: usize = 64 << 10;

thread_local! {
    /// Read into by each connection of the thread in turn.
    static CHUNKS: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// A connection on either side.
pub(crate) trait Leg {
    /// Returns when [`Leg::try_read`] finds something.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;
    /// Returns when [`Leg::try_write`] takes something.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize>;
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Sends the end of the stream.
    fn finish(&self) -> io::Result<()>;
    /// Lets a drop reset the connection.
    fn reset_on_drop(&self);
}

impl Leg for reknit_net::TcpStream {
    async fn readable(&self) -> io::Result<()> {
        reknit_net::TcpStream::readable(self).await
    }

    async fn writable(&self) -> io::Result<()> {
        reknit_net::TcpStream::writable(self).await
    }

    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        reknit_net::TcpStream::try_read(self, into)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        reknit_net::TcpStream::try_write(self, bytes)
    }

    fn finish(&self) -> io::Result<()> {
        reknit_net::TcpStream::finish(self);
        Ok(())
    }

    fn reset_on_drop(&self) {
        self.set_linger(Linger::AtMost(Duration::ZERO));
    }
}

impl Leg for tokio::net::TcpStream {
    async fn readable(&self) -> io::Result<()> {
        tokio::net::TcpStream::readable(self).await
    }

    async fn writable(&self) -> io::Result<()> {
        tokio::net::TcpStream::writable(self).await
    }

    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        tokio::net::TcpStream::try_read(self, into)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        tokio::net::TcpStream::try_write(self, bytes)
    }

    fn finish(&self) -> io::Result<()> {
        Ok(shutdown(self.as_raw_fd(), Shutdown::Write)?)
    }

    fn reset_on_drop(&self) {
        let _ = self.set_zero_linger(); // a FIN instead of a RST then
    }
}

/// Bytes that were passed on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Relayed {
    pub(crate) to_server: u64,
    pub(crate) to_client: u64,
}

/// Passes on what both sides send until both have ended, and counts it. After an error, a drop of either side resets it.
pub(crate) async fn relay(client: &impl Leg, server: &impl Leg, relayed: &mut Relayed) -> io::Result<()> {
    let Relayed { to_server, to_client } = relayed;
    let ended = tokio::try_join!(pump(client, server, to_server), pump(server, client, to_client));
    if ended.is_err() {
        client.reset_on_drop();
        server.reset_on_drop();
    }
    ended.map(|_| ())
}

/// Passes on one direction, and its end. Reads only when the last read was taken: so a slow reader stops a fast writer.
async fn pump(from: &impl Leg, to: &impl Leg, bytes: &mut u64) -> io::Result<()> {
    let mut left = Vec::new();
    loop {
        from.readable().await?;
        let read = CHUNKS.with_borrow_mut(|chunk| {
            let n = from.try_read(chunk)?;
            if n > 0 {
                let taken = write(to, &chunk[..n])?;
                left.extend_from_slice(&chunk[taken..n]);
            }
            Ok(n)
        });
        match read {
            Ok(0) => return to.finish(),
            Ok(n) => *bytes += n as u64,
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(error),
        }
        let mut taken = 0;
        while taken < left.len() {
            to.writable().await?;
            taken += write(to, &left[taken..])?;
        }
        left = Vec::new();
    }
}

/// Writes what is taken now.
fn write(to: &impl Leg, bytes: &[u8]) -> io::Result<usize> {
    match to.try_write(bytes) {
        Err(error) if would_block(&error) => Ok(0),
        result => result,
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Two connected kernel sockets.
    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (near, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (near.unwrap(), accepted.unwrap().0)
    }

    /// A client and a server with a relay between them.
    async fn relayed() -> (TcpStream, TcpStream, tokio::task::JoinHandle<(io::Result<()>, Relayed)>) {
        let ((client, near_client), (server, near_server)) = (connected().await, connected().await);
        let relay = tokio::spawn(async move {
            let mut relayed = Relayed::default();
            let ended = relay(&near_client, &near_server, &mut relayed).await;
            (ended, relayed)
        });
        (client, server, relay)
    }

    #[tokio::test]
    async fn each_direction_ends_on_its_own() {
        let (mut client, mut server, relay) = relayed().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        let answer = vec![7; 3 << 20];
        let (to_send, mut received) = (answer.clone(), Vec::new());
        let send = async {
            server.write_all(&to_send).await.unwrap();
            drop(server);
        };
        let ((), read) = tokio::join!(send, client.read_to_end(&mut received));
        read.unwrap();
        assert_eq!(received, answer);
        let (ended, relayed) = relay.await.unwrap();
        ended.unwrap();
        assert_eq!(relayed, Relayed { to_server: 8, to_client: 3 << 20 });
    }

    #[tokio::test]
    async fn a_reset_is_passed_on() {
        let (mut client, server, relay) = relayed().await;
        server.set_zero_linger().unwrap();
        drop(server);
        assert!(relay.await.unwrap().0.is_err());
        let error = client.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_slow_reader_stops_the_writer() {
        let (client, mut server, _relay) = relayed().await;
        let mut written = 0;
        let limit = std::time::Duration::from_millis(500);
        let block = vec![0; 65_536];
        while let Ok(n) = tokio::time::timeout(limit, server.write(&block)).await {
            written += n.unwrap();
            assert!(written < 64 << 20, "nothing stops it");
        }
        drop(client);
    }
}
