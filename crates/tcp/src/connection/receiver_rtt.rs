//! The round-trip time as a receiver of data measures it: in the handshake, then by the timestamps that the peer echoes.

use reknit_units::Duration;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct ReceiverRtt {
    rtt: Option<Duration>,
    /// The last echo from which it was measured.
    echo: Option<u32>,
}

impl ReceiverRtt {
    /// The round-trip time so far.
    pub(super) fn get(&self) -> Option<Duration> {
        self.rtt
    }

    /// The handshake took this long; none if its round trip is ambiguous.
    pub(super) fn establish(&mut self, rtt: Option<Duration>) {
        self.rtt = rtt;
    }

    /// True for the first segment of data with this echo; others measure nothing.
    pub(super) fn is_new(&mut self, echo: u32) -> bool {
        self.echo.replace(echo) != Some(echo)
    }

    /// Takes a lower sample at once; a higher one moves the average by an eighth, as in RFC 6298.
    pub(super) fn measure(&mut self, rtt: Duration) {
        let before = self.rtt.unwrap_or(rtt);
        self.rtt = Some(if rtt < before { rtt } else { (before * 7 + rtt) / 8 });
    }
}
