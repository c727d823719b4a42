//! The window of the receiver: when it is closed or full, and which data lies beyond it. Called by [`super::direction`]: for an
//! ACK `follow`, then `on_ack` if that returns false, before the data sees it; for data `is_beyond` and `on_sent`, also before.
//! Owned by [`super::direction`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// After this many acknowledgments of new data with a window of zero, the field is ignored.
const MAX_CONTRADICTIONS: u8 = 3;

/// A time during which the window was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Closed {
    pub(super) since: Instant,
    /// The acknowledgment that closed it.
    pub(super) frame: u64,
    /// The edge of the window.
    edge: u64,
    /// Window probes that the sender has sent since.
    pub(super) probes: u32,
}

/// The window of one direction, by the acknowledgments that pass.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Window {
    /// The right edge of the window; none if the scale of the window is not known.
    edge: Option<u64>,
    /// The largest window so far.
    largest: u32,
    /// The window field of the last acknowledgment, and whether it differed from the one before.
    raw: u16,
    has_changed: bool,
    /// The field is ignored: data is accepted although it is zero.
    is_void: bool,
    contradictions: u8,
    /// How much of the edge may be due to rounding.
    rounding: u64,
    closed: Option<Closed>,
    full_since: Option<Instant>,
    /// Data has passed.
    has_sent: bool,
    /// Everything was acknowledged and the window was open, but the sender sent nothing.
    idle_since: Option<Instant>,
    limited_by_receiver: Duration,
    limited_by_sender: Duration,
}

/// The window fields of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowUpdate {
    pub(super) ack: u64,
    /// It acknowledges more than the one before.
    pub(super) is_new: bool,
    /// Bytes, if the scale is known.
    pub(super) window: Option<u32>,
    pub(super) is_zero: bool,
    /// As in the header.
    pub(super) raw: u16,
    /// The shift of the window (RFC 7323 §2.2).
    pub(super) scale: u8,
    pub(super) frame: u64,
}

impl Window {
    /// The SYN of the receiver has a window of zero: the field is ignored.
    pub(super) fn on_zero_in_syn(&mut self) {
        (self.is_void, self.edge, self.closed) = (true, None, None);
    }

    /// The fast path for an acknowledgment. True if it advances an open window, as nearly all do, and is processed; if false,
    /// nothing has changed and the caller calls `on_ack`.
    #[inline]
    pub(super) fn follow(&mut self, ack: u64, window: Option<u32>, raw: u16, highest: u64, now: Instant) -> bool {
        let edge = window.map(|window| ack + u64::from(window));
        if raw == 0 || self.is_void || self.closed.is_some() || self.full_since.is_some() || edge < self.edge {
            return false;
        }
        self.edge = edge;
        self.largest = self.largest.max(window.unwrap_or(0));
        (self.raw, self.has_changed) = (raw, raw != self.raw);
        self.idle_since = if ack >= highest { self.idle_since.or(Some(now)) } else { None };
        true
    }

    /// An acknowledgment that `follow` did not process; `highest`: the end of the data that was sent. Returns the closure of the
    /// window that it ends, and the edge of the window if it shrinks the window.
    pub(super) fn on_ack(&mut self, told: &WindowUpdate, highest: u64, now: Instant) -> (Option<Closed>, Option<u64>) {
        let mut edge = told.window.filter(|_| !self.is_void).map(|window| told.ack + u64::from(window));
        let mut withdrawn = None;
        if let (Some(old), Some(new)) = (self.edge, edge)
            && new < old
        {
            // An acknowledgment that was overtaken looks like one that shrinks the window.
            if told.is_zero {
                withdrawn = self.withdrawn_to(new, old, told.scale);
            } else if !told.is_new {
                edge = Some(old);
            }
        }
        self.edge = edge;
        self.largest = self.largest.max(told.window.unwrap_or(0));
        self.has_changed = told.raw != self.raw;
        self.raw = told.raw;
        self.idle_since = if told.ack >= highest && !told.is_zero { self.idle_since.or(Some(now)) } else { None };
        if (told.is_zero, self.closed.is_some()) == (false, false) && self.full_since.is_none() {
            return (None, withdrawn);
        }
        (self.change(told, highest, now), withdrawn)
    }

    #[cold]
    fn withdrawn_to(&mut self, new: u64, old: u64, scale: u8) -> Option<u64> {
        self.rounding = 1 << scale;
        (old - new > self.rounding).then_some(new + self.rounding)
    }

    #[cold]
    fn change(&mut self, told: &WindowUpdate, highest: u64, now: Instant) -> Option<Closed> {
        if self.is_void {
            return None;
        }
        if self.closed.is_none() && self.full_since.is_some() && self.edge.is_some_and(|edge| highest < edge) {
            let since = self.full_since.take()?;
            self.limited_by_receiver += now.since(since);
        }
        if told.is_zero {
            let new = Closed { since: now, frame: told.frame, edge: told.ack, probes: 0 };
            let closed = self.closed.get_or_insert(new);
            // A single byte may be a window probe that was sent before.
            if told.ack > closed.edge + 1 {
                closed.edge = told.ack;
                self.contradictions += 1;
                self.is_void = self.contradictions >= MAX_CONTRADICTIONS;
            }
            if self.is_void {
                self.closed = None;
            }
            return None;
        }
        self.open(now)
    }

    /// Another connection begins; the times that were lost so far still count.
    pub(super) fn begin_again(&mut self) {
        let Window { largest, limited_by_receiver, limited_by_sender, .. } = *self;
        *self = Window { largest, limited_by_receiver, limited_by_sender, ..Window::default() };
    }

    /// The window opens or the capture ends.
    pub(super) fn open(&mut self, now: Instant) -> Option<Closed> {
        let closed = self.closed.take()?;
        let since = self.full_since.take().map_or(closed.since, |full| full.min(closed.since));
        self.limited_by_receiver += now.since(since);
        Some(closed)
    }

    /// Data up to `end` passes, in segments of up to `largest` bytes; `near`: the round trip to the sender.
    #[inline]
    pub(super) fn on_sent(&mut self, end: u64, largest: u32, near: Duration, now: Instant) {
        let is_first = !std::mem::replace(&mut self.has_sent, true);
        if let Some(since) = self.idle_since.take().filter(|_| !is_first) {
            self.limited_by_sender += now.since(since).saturating_sub(near);
        }
        if self.edge.is_some_and(|edge| end + u64::from(largest) > edge) {
            self.full_since.get_or_insert(now);
        }
    }

    /// True if the receiver refuses data that begins at `start`.
    #[inline]
    pub(super) fn is_beyond(&self, start: u64) -> bool {
        let edge = self.edge.or(self.closed.map(|closed| closed.edge));
        edge.is_some_and(|edge| start >= edge + self.rounding)
    }

    /// True if the window field of the last acknowledgment differed from the one before.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The sender sends a window probe, unless the packet was sent before it could know that the window is closed. `near`: the round
    /// trip to the sender.
    pub(super) fn on_probe(&mut self, near: Duration, now: Instant) {
        if let Some(closed) = self.closed.as_mut().filter(|closed| now.since(closed.since) >= near) {
            closed.probes = closed.probes.saturating_add(1);
        }
    }

    /// The largest window that was offered, bytes. None if no scale is known.
    pub(crate) fn largest(&self) -> Option<u32> {
        (self.largest > 0 && !self.is_void).then_some(self.largest)
    }

    /// How long the window was closed or full.
    pub(crate) fn limited_by_receiver(&self) -> Duration {
        self.limited_by_receiver
    }

    /// How long nothing was outstanding, although the window was open.
    pub(crate) fn limited_by_sender(&self) -> Duration {
        self.limited_by_sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn told(ack: u64, window: u32) -> WindowUpdate {
        WindowUpdate {
            ack,
            is_new: true,
            window: Some(window),
            is_zero: window == 0,
            raw: window as u16,
            scale: 0,
            frame: ack,
        }
    }

    #[test]
    fn a_window_closes_is_probed_and_opens() {
        let mut window = Window::default();
        assert_eq!(window.on_ack(&told(1000, 1000), 1000, at(0)), (None, None));
        window.on_sent(2000, 1000, Duration::ZERO, at(10));
        assert_eq!(window.on_ack(&told(2000, 0), 2000, at(20)), (None, None));
        assert!(window.is_closed() && window.is_beyond(2000) && !window.is_beyond(1999));
        window.on_probe(Duration::from_millis(40), at(59));
        window.on_probe(Duration::from_millis(40), at(60));
        let (closed, _) = window.on_ack(&told(2000, 5000), 2000, at(120));
        assert_eq!(closed.map(|closed| (closed.since, closed.probes, closed.frame)), Some((at(20), 1, 2000)));
        assert_eq!(window.limited_by_receiver(), Duration::from_millis(110));
    }

    #[test]
    fn only_an_open_window_is_followed() {
        let mut window = Window::default();
        assert!(window.follow(1000, Some(1000), 1000, 1000, at(0)));
        assert!(window.follow(2000, Some(3000), 3000, 2000, at(1)) && window.has_changed());
        assert!(window.follow(3000, Some(3000), 3000, 4000, at(2)) && !window.has_changed());
        assert!(window.is_beyond(6000) && !window.is_beyond(5999));
        assert_eq!(window.largest(), Some(3000));
        assert!(!window.follow(3000, Some(2000), 2000, 4000, at(3)), "a part is taken back");
        assert!(!window.follow(6000, Some(0), 0, 6000, at(3)), "it closes");
        window.on_ack(&told(6000, 0), 6000, at(3));
        assert!(!window.follow(6000, Some(3000), 3000, 6000, at(4)), "it opens");
    }

    #[test]
    fn a_withdrawn_window_says_from_where_on() {
        let mut window = Window::default();
        window.on_ack(&told(0, 9000), 0, at(0));
        assert_eq!(window.on_ack(&told(1000, 2000), 9000, at(1)).1, None);
        assert_eq!(window.on_ack(&told(2000, 0), 9000, at(2)).1, Some(2001));
    }

    #[test]
    fn a_sender_without_data_limits_the_transfer() {
        let mut window = Window::default();
        window.on_ack(&told(0, 9000), 0, at(0));
        window.on_sent(1000, 1000, Duration::ZERO, at(900)); // what comes before the first data does not count
        window.on_ack(&told(1000, 9000), 1000, at(1000));
        window.on_sent(2000, 1000, Duration::from_millis(20), at(1520));
        assert_eq!(window.limited_by_sender(), Duration::from_millis(500));
    }
}
