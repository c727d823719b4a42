//! ICMP messages, with the checks of RFC 5927, and paths that drop them.

use reknit_tcp::State;
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Icmp, IcmpKind};

use crate::flow::Flow;
use crate::options::{LEAST_MTU_V4, LEAST_MTU_V6, mss_for};
use crate::paths::LIFETIME;
use crate::size_search::{FIRST_WAIT, SizeSearch};
use crate::stack::Stack;

/// What every path should carry (`BASE_PLPMTU` of RFC 8899 §5.1.2), and what the rest carries.
const BASE_V4: [u16; 2] = [1200, LEAST_MTU_V4];
const BASE_V6: [u16; 1] = [LEAST_MTU_V6];
/// How often a segment is sent without an answer before its size is suspected,
const ATTEMPTS: u16 = 3;
/// and before it is although segments of this size have passed before.
const ATTEMPTS_AFTER_SUCCESS: u16 = 5;

impl Stack {
    /// Processes an ICMP message. It has an effect only if it quotes something that is outstanding on one of the
    /// connections (RFC 5927 §4.1).
    pub fn on_icmp(&mut self, now: Instant, icmp: &Icmp) {
        let flow = Flow { local: icmp.quoted.source, remote: icmp.quoted.destination };
        let accepted = match self.table.find(&flow) {
            Some(index) => self.take_icmp(now, index, icmp),
            None => false,
        };
        let counter = if accepted { &mut self.counters.icmp_accepted } else { &mut self.counters.icmp_ignored };
        *counter += 1;
    }

    fn take_icmp(&mut self, now: Instant, index: u32, icmp: &Icmp) -> bool {
        let Some(socket) = self.table.live(index) else { return false };
        if !socket.stream.connection().is_outstanding(icmp.seq) {
            return false;
        }
        match icmp.kind {
            IcmpKind::TooBig { mtu } => return self.on_too_big(now, index, mtu, icmp.len),
            // Before the connection is established there is nothing to lose; later it may be a passing failure, or
            // forged (RFC 1122 §4.2.3.9, RFC 5461 §4.1, RFC 5927 §6).
            IcmpKind::PortUnreachable | IcmpKind::HostUnreachable if socket.state() == State::SynSent => {
                socket.is_refused = true;
                socket.stream.abort(now);
            }
            _ => socket.is_unreachable = true,
        }
        self.wake(index);
        true
    }

    /// RFC 1191 §6, RFC 8201 §5.
    fn on_too_big(&mut self, now: Instant, index: u32, mtu: u16, quoted_len: usize) -> bool {
        let Some(socket) = self.table.live(index) else { return false };
        let is_v6 = socket.flow.remote.is_ipv6();
        let mtu = match mtu {
            // An old router does not say; then the next common size is tried (RFC 1191 §7).
            0 => BASE_V4.into_iter().find(|mtu| usize::from(*mtu) < quoted_len).unwrap_or(LEAST_MTU_V4),
            mtu if is_v6 && mtu < LEAST_MTU_V6 => return false,
            mtu => mtu.max(LEAST_MTU_V4),
        };
        let mss = mss_for(mtu, is_v6);
        let connection = socket.stream.connection();
        if quoted_len <= usize::from(mtu) || mss >= connection.segment_size() {
            return false;
        }
        // A segment of this size has arrived before, so the message may be forged. It is believed when segments do not
        // arrive any more (RFC 5927 §7.2).
        if connection.largest_acknowledged() > Bytes(u64::from(mss)) {
            socket.claimed_mtu = Some(mtu);
            return true;
        }
        self.use_mtu(now, index, mtu, LIFETIME)
    }

    /// True if this makes segments smaller. Larger ones are tried again after `wait`.
    fn use_mtu(&mut self, now: Instant, index: u32, mtu: u16, wait: Duration) -> bool {
        let Some(socket) = self.table.live(index) else { return false };
        socket.claimed_mtu = None;
        let remote = socket.flow.remote.ip();
        let is_smaller = socket.stream.connection_mut().limit_segment_size(now, mss_for(mtu, remote.is_ipv6()));
        if is_smaller {
            socket.size_search = Some(Box::new(SizeSearch::at(now + wait)));
            self.paths.set(now, remote, mtu);
            self.wake(index);
        }
        is_smaller
    }

    /// After a timeout: if full-sized segments are sent again and again without an answer, the path may carry only smaller
    /// ones, and drop the messages that say so (RFC 4821 §7.7, RFC 8899 §4.3).
    pub(crate) fn suspect_path(&mut self, now: Instant, index: u32) {
        let detect = self.options.detect_black_holes;
        let Some(socket) = self.table.live(index) else { return };
        let is_v6 = socket.flow.remote.is_ipv6();
        let connection = socket.stream.connection();
        let Some(record) = connection.oldest_outstanding() else { return };
        let size = Bytes(u64::from(record.len));
        if let Some(mtu) = socket.claimed_mtu.filter(|_| record.transmissions > 1) {
            self.use_mtu(now, index, mtu, LIFETIME);
            return;
        }
        let has_passed = connection.largest_acknowledged() >= size;
        // If such segments have passed before, the path may only have failed for a while.
        let (attempts, wait) =
            if has_passed { (ATTEMPTS_AFTER_SUCCESS, Duration::ZERO) } else { (ATTEMPTS, FIRST_WAIT) };
        let bases: &[u16] = if is_v6 { &BASE_V6 } else { &BASE_V4 };
        let smaller = bases.iter().copied().find(|mtu| Bytes(u64::from(mss_for(*mtu, is_v6))) < size);
        if let Some(mtu) = smaller.filter(|_| detect && record.transmissions >= attempts)
            && self.use_mtu(now, index, mtu, wait)
        {
            self.counters.black_holes += 1;
        }
    }
}
