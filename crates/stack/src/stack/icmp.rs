//! ICMP messages about connections, with the checks of RFC 5927. Called by `on_other` for each ICMP message but echo requests.

use reknit_units::Instant;
use reknit_wire::{Icmp, IcmpKind};

use super::Stack;
use crate::flow::FourTuple;
use crate::segment_size::Report;

impl Stack {
    /// Processes an ICMP message. It has an effect only if it quotes something that is outstanding on one of the
    /// connections (RFC 5927 §4.1).
    pub fn on_icmp(&mut self, now: Instant, icmp: &Icmp) {
        let flow = FourTuple { local: icmp.quoted.source, remote: icmp.quoted.destination };
        let accepted = match self.sockets.find(&flow) {
            Some(index) => self.take_icmp(now, index, icmp),
            None => false,
        };
        let counter = if accepted { &mut self.counters.icmp_accepted } else { &mut self.counters.icmp_ignored };
        *counter += 1;
    }

    /// True if the message has an effect.
    fn take_icmp(&mut self, now: Instant, index: u32, icmp: &Icmp) -> bool {
        let Some(socket) = self.sockets.live(index) else { return false };
        if !socket.connection().is_outstanding(icmp.seq) {
            return false;
        }
        if let IcmpKind::TooBig { mtu } = icmp.kind {
            let report = socket.on_too_big(now, mtu, icmp.seq, icmp.len);
            if let Report::Believed(learned) = report {
                self.remember(now, icmp.quoted.destination.ip(), learned);
                self.sockets.wake(index);
            }
            return report != Report::Ignored;
        }
        socket.on_unreachable(
            now,
            icmp.seq,
            matches!(icmp.kind, IcmpKind::PortUnreachable | IcmpKind::HostUnreachable),
        );
        self.sockets.wake(index);
        true
    }
}
