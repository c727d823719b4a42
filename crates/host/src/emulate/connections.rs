//! TCP connections that the relay accepts at the outer end and connects outside.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};

/// How long a connection outside may take to open.
const CONNECT: Duration = Duration::from_secs(30);
/// A connection that was accepted at the outer end, and its original destination.
pub(super) type Accepted = (TcpStream, SocketAddr);

/// Accepts connections to `port` of any address, in the calling thread's namespace. It is no error if a server does
/// already.
pub(super) fn accept(port: u16, accepted: &Sender<Accepted>) {
    let Ok(listener) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) else { return };
    let accepted = accepted.clone();
    // If no thread can be started, the connections are refused.
    let _ = thread::Builder::new().name("relay".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(destination) = stream.local_addr() else { continue };
            if accepted.send((stream, destination)).is_err() {
                return;
            }
        }
    });
}

/// Connections outside for which more data, or the end, may come from inside.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenConnections(Arc<Mutex<Vec<Arc<TcpStream>>>>);

impl OpenConnections {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<TcpStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, outside: &Arc<TcpStream>) {
        self.all().retain(|other| !Arc::ptr_eq(other, outside));
    }

    /// Resets them when this process ends. Otherwise they would then end as if they were complete.
    pub(super) fn reset_at_exit(&self) {
        self.all().iter().for_each(|outside| reset_when_closed(outside));
    }
}

fn reset_when_closed(stream: &TcpStream) {
    let _ = setsockopt(stream, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
}

/// Connects each accepted connection to its target outside, in the calling thread's namespace.
pub(super) fn connect_all(
    accepted: Receiver<Accepted>,
    open: OpenConnections,
    target: impl Fn(SocketAddr) -> SocketAddr + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("relay".to_owned()).spawn(move || {
        for (stream, destination) in accepted {
            let (beyond, open) = (target(destination), open.clone());
            let _ = thread::Builder::new().name("relay".to_owned()).spawn(move || connect(&stream, beyond, &open));
        }
    })?;
    Ok(())
}

fn connect(inside: &TcpStream, beyond: SocketAddr, open: &OpenConnections) {
    let Ok(outside) = TcpStream::connect_timeout(&beyond, CONNECT).map(Arc::new) else {
        reset_when_closed(inside); // the program inside sees it
        return;
    };
    for stream in [inside, &*outside] {
        let _ = stream.set_nodelay(true);
    }
    open.all().push(outside.clone());
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(inside, &outside);
            open.remove(&outside);
        });
        copy(&outside, inside);
    });
}

/// Copies until `from` ends, then shuts down the writing direction of `to`.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_err() {
        let _ = from.shutdown(Shutdown::Read);
    }
    let _ = to.shutdown(Shutdown::Write);
}
