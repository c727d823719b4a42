//! How the receive window grows: adjusted as the application reads. A part of each socket.

use reknit_units::{Bytes, Duration, Instant};

/// How the receive window grows with the application (dynamic right-sizing): it is one and a half times what
/// was read in two round trips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowTuning {
    window: Bytes,
    round_began: Instant,
    read: Bytes,
}

impl WindowTuning {
    pub(crate) fn new(now: Instant, window: Bytes) -> WindowTuning {
        WindowTuning { window, round_began: now, read: Bytes::ZERO }
    }

    /// The window now.
    pub(crate) fn window(&self) -> Bytes {
        self.window
    }

    /// The application has read `n` bytes. The new window, if it grows.
    pub(crate) fn on_read(&mut self, now: Instant, n: Bytes, rtt: Duration, most: Bytes) -> Option<Bytes> {
        self.read += n;
        // A reader that comes once per round trip makes the sender wait for up to another one.
        if now.since(self.round_began) < rtt * 2 {
            return None;
        }
        let wanted = Bytes(self.read.0 * 3 / 2).min(most);
        (self.round_began, self.read) = (now, Bytes::ZERO);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        Some(wanted)
    }
}
