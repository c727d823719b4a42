//! Connections to any address and port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use reknit_stack::{IcmpError, Request, SocketOptions};

use crate::errors::to_io;
use crate::network::{Handle, Network};
use crate::stream::TcpStream;

/// Gets the connections that peers ask for to any address and port without a listener, on a [`Network`] that forwards
/// ([`Builder::forward`](crate::Builder::forward)).
///
/// ```no_run
/// # async fn example(network: reknit_net::Network) -> std::io::Result<()> {
/// use reknit_net::TcpForwarder;
///
/// let forwarder = TcpForwarder::new(&network);
/// loop {
///     let request = forwarder.next().await?;
///     tokio::spawn(async move {
///         // The peer waits for an answer until it is known whether the server has one.
///         let Ok(mut server) = tokio::net::TcpStream::connect(request.local_addr()).await else {
///             return request.refuse();
///         };
///         if let Ok(mut client) = request.accept().await {
///             let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
///         }
///     });
/// }
/// # }
/// ```
pub struct TcpForwarder {
    shared: Arc<Handle>,
}

impl TcpForwarder {
    /// The forwarder of this network.
    pub fn new(network: &Network) -> TcpForwarder {
        TcpForwarder { shared: network.shared.clone() }
    }

    /// The next connection that a peer asks for. Several tasks may wait.
    ///
    /// # Errors
    /// If the device failed.
    pub async fn next(&self) -> io::Result<TcpRequest> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`TcpForwarder::next`].
    ///
    /// # Errors
    /// If the device failed.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<TcpRequest>> {
        let mut state = self.shared.lock();
        if let Some(request) = state.stack.next_request() {
            return Poll::Ready(Ok(TcpRequest { shared: self.shared.clone(), request, is_decided: false }));
        }
        state.check_device()?;
        state.wait_for_request(cx.waker());
        Poll::Pending
    }
}

/// A connection that a peer asks for. It has not been answered yet. Dropping it refuses it.
pub struct TcpRequest {
    shared: Arc<Handle>,
    request: Request,
    is_decided: bool,
}

impl TcpRequest {
    /// The peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.request.remote
    }

    /// The address that the peer wants to reach: that of this end, if the request is accepted.
    pub fn local_addr(&self) -> SocketAddr {
        self.request.local
    }

    /// The segment size and options in its SYN, and whether it has answered a cookie.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Answers, and returns when the connection is established.
    ///
    /// # Errors
    /// If the peer has given up, or does so now.
    pub async fn accept(self) -> io::Result<TcpStream> {
        let options = self.shared.options.clone();
        self.accept_with(&options).await
    }

    /// Answers with these options.
    ///
    /// # Errors
    /// As [`TcpRequest::accept`], and if an option is not valid.
    pub async fn accept_with(mut self, options: &SocketOptions) -> io::Result<TcpStream> {
        let id = self.request.id;
        let accepted = self.shared.with(|state, now| state.stack.accept_request(now, id, options)).map_err(to_io)?;
        self.is_decided = true;
        TcpStream::established(self.shared.clone(), accepted).await
    }

    /// Answers with a SYN cookie (RFC 4987 §3.6), and forgets the request. If the peer's address is not forged, it makes another
    /// one, whose [`Request::answers_cookie`] is true. For programs that do work before they accept, such as connecting to a
    /// server, when more requests than usual wait for it. `options` must be those with which the other one is accepted.
    ///
    /// # Errors
    /// If the peer has given up, or an option is not valid.
    pub fn answer_with_cookie(mut self, options: &SocketOptions) -> io::Result<()> {
        let id = self.request.id;
        self.shared.with(|state, now| state.stack.answer_request_with_cookie(now, id, options)).map_err(to_io)?;
        self.is_decided = true;
        Ok(())
    }

    /// Refuses: the peer gets a RST.
    pub fn refuse(self) {}

    /// Refuses with an ICMP message: the peer learns that the destination cannot be reached, and why. Programs see "no route to
    /// host" or "network is unreachable". If it has answered a cookie, it gets a RST. At most [`Options::icmp_per_second`](reknit_stack::Options) such messages are sent.
    pub fn refuse_by_icmp(mut self, error: IcmpError) {
        self.is_decided = true;
        self.shared.with(|state, now| state.stack.refuse_request_by_icmp(now, self.request.id, error));
    }

    /// Does not answer, like a host that does not exist.
    pub fn ignore(mut self) {
        self.is_decided = true;
        self.shared.lock().stack.ignore_request(self.request.id);
    }
}

impl Drop for TcpRequest {
    fn drop(&mut self) {
        if !self.is_decided {
            self.shared.with(|state, _| state.stack.refuse_request(self.request.id));
        }
    }
}
