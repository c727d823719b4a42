//! The state that the driver and all sockets of a network share, behind a lock. Every operation of a socket goes through
//! `Shared::with`, which wakes the driver if there is something to send; the driver wakes tasks for the stack's events.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use reknit_stack::{Event, ListenerId, SocketId, SocketOptions, Stack, UdpId};
use reknit_units::{Duration, Instant};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::drain::Drain;

/// Tasks that wait for a socket.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) read: Option<Waker>,
    pub(crate) write: Option<Waker>,
    pub(crate) delivered: Option<Waker>,
}

/// Tasks that wait for a UDP socket: several may.
#[derive(Debug, Default)]
pub(crate) struct UdpWaiting {
    pub(crate) read: Vec<Waker>,
    pub(crate) write: Vec<Waker>,
}

/// The state behind the lock.
pub(crate) struct State {
    pub(crate) stack: Stack,
    /// By index of the socket.
    pub(crate) waiting: Vec<Waiting>,
    /// Several tasks may wait for connections of one listener.
    pub(crate) accepting: BTreeMap<ListenerId, Vec<Waker>>,
    /// Tasks that wait for a request.
    requesting: Vec<Waker>,
    pub(crate) udp: BTreeMap<UdpId, UdpWaiting>,
    pub(crate) drain: Drain,
    /// Why the device can no longer be used.
    pub(crate) failure: Option<String>,
}

impl State {
    pub(crate) fn new(stack: Stack) -> State {
        State {
            stack,
            waiting: Vec::new(),
            accepting: BTreeMap::new(),
            requesting: Vec::new(),
            udp: BTreeMap::new(),
            drain: Drain::default(),
            failure: None,
        }
    }

    /// The error of calls that would wait for a device that has failed.
    pub(crate) fn check_device(&self) -> io::Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(io::Error::other(failure.clone())))
    }

    /// Wakes all tasks, which then find why the network has ended.
    pub(crate) fn fail(&mut self, reason: String) {
        self.failure = Some(reason);
        let accepting = std::mem::take(&mut self.accepting).into_values().flatten();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let waiting = waiting.flat_map(|waiting| [waiting.read, waiting.write, waiting.delivered]).flatten();
        let udp =
            std::mem::take(&mut self.udp).into_values().flat_map(|waiting| [waiting.read, waiting.write]).flatten();
        waiting.chain(accepting).chain(self.requesting.drain(..)).chain(udp).for_each(Waker::wake);
    }

    pub(crate) fn waiting(&mut self, id: SocketId) -> &mut Waiting {
        let index = id.index();
        if index >= self.waiting.len() {
            self.waiting.resize_with(index + 1, Waiting::default);
        }
        &mut self.waiting[index]
    }

    /// The task is woken when the listener has a connection.
    pub(crate) fn wait_to_accept(&mut self, id: ListenerId, waker: &Waker) {
        add(self.accepting.entry(id).or_default(), waker);
    }

    /// The task is woken when a peer asks for a connection.
    pub(crate) fn wait_for_request(&mut self, waker: &Waker) {
        add(&mut self.requesting, waker);
    }

    /// The task is woken when there is a datagram.
    pub(crate) fn wait_for_datagram(&mut self, id: UdpId, waker: &Waker) {
        add(&mut self.udp.entry(id).or_default().read, waker);
    }

    /// The task is woken when the send buffer has space for a datagram.
    pub(crate) fn wait_to_send_datagram(&mut self, id: UdpId, waker: &Waker) {
        add(&mut self.udp.entry(id).or_default().write, waker);
    }

    /// Wakes the tasks that wait for the stack's events. Called by the driver after each batch.
    pub(crate) fn dispatch(&mut self) {
        while let Some(event) = self.stack.next_event() {
            let wakers = match event {
                Event::Acceptable(id) => {
                    self.accepting.remove(&id).into_iter().flatten().for_each(Waker::wake);
                    continue;
                }
                Event::Requested => {
                    self.requesting.drain(..).for_each(Waker::wake);
                    continue;
                }
                Event::UdpReadable(id) => {
                    self.udp.entry(id).or_default().read.drain(..).for_each(Waker::wake);
                    continue;
                }
                Event::UdpWritable(id) => {
                    self.udp.entry(id).or_default().write.drain(..).for_each(Waker::wake);
                    continue;
                }
                Event::Readable(id) => [self.waiting(id).read.take(), None],
                Event::Connected(id) | Event::Writable(id) => [None, self.waiting(id).write.take()],
                Event::Closed(id) => {
                    let waiting = self.waiting(id);
                    [waiting.read.take(), waiting.write.take()]
                }
                Event::Delivered(id) => [self.waiting(id).delivered.take(), None],
            };
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}

/// Adds a task, unless it waits already.
fn add(waiting: &mut Vec<Waker>, waker: &Waker) {
    if !waiting.iter().any(|other| other.will_wake(waker)) {
        waiting.push(waker.clone());
    }
}

/// The state that the driver and all sockets share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Notifies [`crate::Network::shutdown`] that it has a result.
    pub(crate) drained: Notify,
    /// Notifies the driver that the stack may have something to send.
    pub(crate) work: Notify,
    pub(crate) clock: Clock,
    pub(crate) options: SocketOptions,
    /// How long a network that is dropped may take to deliver what was written.
    pub(crate) drain_limit: Duration,
}

impl Shared {
    pub(crate) fn new(state: State, clock: Clock, options: SocketOptions, drain_limit: Duration) -> Shared {
        Shared { state: Mutex::new(state), drained: Notify::new(), work: Notify::new(), clock, options, drain_limit }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Runs `act` on the stack, then wakes the driver if there is something to send.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let had_work = state.stack.deadline() == Instant::ZERO;
        let result = act(&mut state, self.now());
        // For work that was pending before, the driver has already been woken.
        if !had_work && state.stack.deadline() == Instant::ZERO {
            self.work.notify_one();
        }
        result
    }
}
