//! A user-space host, and its end.

use std::net::IpAddr;
use std::sync::Arc;

use reknit_stack::{Counters, Options, SocketOptions, Undelivered};

use crate::builder::Builder;
use crate::clock::from_std;
use crate::state::Shared;

/// When the last of these is dropped, the driver ends.
pub(crate) struct Handle(pub(crate) Arc<Shared>);

impl std::ops::Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let now = self.0.now();
        self.0.lock().drain.abandon(now, self.0.drain_limit);
        self.0.work.notify_one();
    }
}

/// A host in user space, with its own TCP and addresses. Clones refer to the same host.
///
/// When all clones and all of its sockets are dropped, the driver still delivers what was written, for at most
/// [`Builder::drain_limit`], and then ends. It does the same, blocking the thread, if its runtime ends before, for example when
/// `main` returns or panics. Data that cannot be delivered by then is lost, and only [`Network::shutdown`] reports it. If the
/// process ends without destructors (`std::process::exit`, a signal such as Ctrl-C, `abort`), peers get neither the remaining
/// data nor a FIN or RST: call [`Network::shutdown`] before.
#[derive(Clone)]
pub struct Network {
    pub(crate) shared: Arc<Handle>,
}

impl Network {
    /// A host with this address. The kernel's address on the device must be another one of the same network.
    pub fn builder(address: IpAddr) -> Builder {
        Builder::new(Options { addresses: vec![address], ..Options::default() })
    }

    /// The counters of the stack.
    pub fn counters(&self) -> Counters {
        *self.shared.lock().stack.counters()
    }

    /// The number of sockets of all kinds, with those in TIME-WAIT.
    pub fn sockets(&self) -> usize {
        self.shared.lock().stack.sockets()
    }

    /// The options of sockets for which no others are given.
    pub fn socket_options(&self) -> &SocketOptions {
        &self.shared.options
    }

    /// Data that was written and is not acknowledged yet, on all connections. Visits all of them.
    pub fn undelivered(&self) -> Undelivered {
        self.shared.lock().stack.undelivered()
    }

    /// Ends the network gracefully: no new connections are accepted, every connection sends its remaining data and the end of
    /// the stream, and this returns when their peers have acknowledged all of it, or after `limit`. Connections with undelivered
    /// data are then reset. It does not wait for peers to close (FIN-WAIT-2), nor for TIME-WAIT.
    ///
    /// # Errors
    /// The data that was not acknowledged, because peers were too slow, or because connections have failed since the call. Data
    /// of connections that failed before is in [`Counters::undelivered`].
    pub async fn shutdown(&self, limit: std::time::Duration) -> Result<(), Undelivered> {
        {
            let mut state = self.shared.lock();
            let now = self.shared.now();
            state.stack.finish_all(now);
            let before = state.stack.counters().undelivered;
            state.drain.begin(now, from_std(limit), before);
        }
        self.shared.work.notify_one();
        loop {
            let mut drained = std::pin::pin!(self.shared.drained.notified());
            drained.as_mut().enable();
            if let Some(undelivered) = self.shared.lock().drain.result() {
                return if undelivered.is_empty() { Ok(()) } else { Err(undelivered) };
            }
            drained.await;
        }
    }
}
