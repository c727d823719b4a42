//! Segments to send, and what a socket's state means for its owner.

use reknit_tcp::{Output, State};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::encode_with;

use crate::socket::Owner;
use crate::stack::{Event, Stack, Transmit};
use crate::table::{Slot, Waiting};

/// The most segments that a socket sends before it is another one's turn: as many as a device joins to 64 KiB.
const BURST: u32 = 48;
/// A connection on which nothing has happened for this long releases memory that it has not given back,
const IDLE: Duration = Duration::from_secs(2);
/// and the rest, which late DSACKs may need, after this.
pub(crate) const LAST_GHOSTS: Duration = Duration::from_secs(70);

impl Stack {
    /// The next segment to send; its payload is appended to `payload`. None if there is nothing to send now.
    pub fn poll(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            self.counters.segments_out += 1;
            return Some(answer);
        }
        while let Some(index) = self.sending.front().copied() {
            self.read_senders();
            if self.burst >= BURST {
                self.burst = 0;
                self.sending.rotate_left(1);
                continue;
            }
            let Some(socket) = self.table.live(index) else {
                self.end_turn();
                continue;
            };
            if let Output::Send(segment) = socket.stream.poll(now, payload) {
                let transmit = Transmit { endpoints: socket.flow.endpoints(), hop_limit: socket.hop_limit, segment };
                self.burst += 1;
                self.counters.segments_out += 1;
                return Some(transmit);
            }
            socket.is_sending = false;
            self.end_turn();
            self.settle(now, index);
        }
        None
    }

    fn end_turn(&mut self) {
        self.sending.pop_front();
        self.burst = 0;
        self.read_ahead = self.read_ahead.saturating_sub(1);
    }

    /// The next packet to send, in `packet`. False if there is nothing to send now.
    pub fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        let transmit = self.poll(now, &mut payload);
        if let Some(Transmit { endpoints, hop_limit, segment }) = &transmit {
            encode_with(*endpoints, *hop_limit, segment, &payload, packet);
        }
        self.payload = payload;
        transmit.is_some()
    }

    /// A socket has sent everything for now: tells its owner what is new, and sets its timer.
    fn settle(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        if socket.replace_plugins(now) {
            return self.wake(index); // new data was held back
        }
        socket.note_limit(now);
        match socket.state() {
            // A half-open connection was refused or not completed in time.
            State::Listen => return self.remove_half_open(index),
            State::SynSent | State::SynReceived => {}
            State::Closed => return self.on_closed(index),
            State::TimeWait if matches!(socket.owner, Owner::Nobody { .. }) => return self.enter_time_wait(index),
            _ if !socket.told_connected => {
                socket.told_connected = true;
                self.on_established(now, index);
            }
            _ => {}
        }
        self.notify(now, index);
        self.arm(now, index);
    }

    fn arm(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        let mut deadline = socket.stream.connection().deadline();
        if let Owner::Nobody { until } = socket.owner {
            deadline = deadline.min(until);
        }
        socket.stream.give_back(&mut self.buffers);
        if !socket.stream.holds_memory() {
            socket.shrink_at = Instant::NEVER;
        } else if !socket.shrink_at.is_set() || socket.shrink_at < now + IDLE {
            socket.shrink_at = now + IDLE;
        }
        self.wheel.set(index, deadline.min(socket.shrink_at));
    }

    /// The handshake is complete.
    fn on_established(&mut self, now: Instant, index: u32) {
        let id = self.table.id(index);
        let Some(socket) = self.table.live(index) else { return };
        match socket.owner {
            Owner::HalfOpen(listener) => {
                if let Some(listener) = self.listeners.get_mut(&listener) {
                    socket.owner = Owner::Queued(listener.id);
                    listener.half_open = listener.half_open.saturating_sub(1);
                    listener.queue.push_back(id);
                    if std::mem::take(&mut listener.wants_accept) {
                        self.events.push_back(Event::Acceptable(listener.id));
                    }
                } else {
                    socket.stream.abort(now);
                    socket.owner = Owner::Nobody { until: Instant::NEVER };
                    self.wake(index);
                }
            }
            Owner::Application => self.events.push_back(Event::Connected(id)),
            Owner::Queued(_) | Owner::Nobody { .. } => {}
        }
    }

    /// Tells the application what it waits for.
    fn notify(&mut self, now: Instant, index: u32) {
        let id = self.table.id(index);
        let Some(socket) = self.table.live(index) else { return };
        if socket.owner != Owner::Application {
            return;
        }
        if socket.read_shut && socket.stream.connection().readable() > Bytes::ZERO {
            self.discard(now, index);
            return self.wake(index); // the window has opened
        }
        if socket.wants_read && socket.is_readable() {
            socket.wants_read = false;
            self.events.push_back(Event::Readable(id));
        }
        if socket.wants_write {
            socket.tune_send_buffer();
            if socket.is_writable() {
                socket.wants_write = false;
                self.events.push_back(Event::Writable(id));
            }
        }
    }

    /// The connection has ended. Its application, if it has one, still reads what has arrived, and the reason.
    pub(crate) fn on_closed(&mut self, index: u32) {
        let id = self.table.id(index);
        let Some(socket) = self.table.live(index) else { return };
        let owner = socket.owner;
        match owner {
            Owner::HalfOpen(_) => return self.remove_half_open(index),
            Owner::Nobody { .. } => return self.remove(index),
            Owner::Application | Owner::Queued(_) => {}
        }
        self.table.forget_flow(index);
        self.wheel.clear(index);
        let Some(socket) = self.table.live(index) else { return };
        if owner != Owner::Application || std::mem::replace(&mut socket.told_closed, true) {
            return;
        }
        for (wants, event) in [
            (std::mem::take(&mut socket.wants_read), Event::Readable(id)),
            (std::mem::take(&mut socket.wants_write), Event::Writable(id)),
            (true, Event::Closed(id)),
        ] {
            if wants {
                self.events.push_back(event);
            }
        }
    }

    fn remove_half_open(&mut self, index: u32) {
        if let Some(socket) = self.table.live(index)
            && let Owner::HalfOpen(listener) = socket.owner
            && let Some(listener) = self.listeners.get_mut(&listener)
        {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
        self.remove(index);
    }

    pub(crate) fn remove(&mut self, index: u32) {
        self.wheel.clear(index);
        self.table.remove(index);
    }

    /// Keeps only what TIME-WAIT needs.
    fn enter_time_wait(&mut self, index: u32) {
        let Slot::Live(socket) = self.table.slot(index) else { return };
        let Some(state) = socket.stream.connection().time_wait() else { return };
        let waiting = Waiting { flow: socket.flow, hop_limit: socket.hop_limit, state };
        self.wheel.clear(index);
        self.table.wait(index, waiting);
        self.wheel.set(index, state.expires);
    }
}
