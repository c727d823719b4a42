//! Packets from the device to the stack. The driver calls it with each batch that it has read.

use reknit_stack::{Stack, Transmit};
use reknit_tcp::Segment;
use reknit_units::Instant;
use reknit_wire::{Datagram, Decoded};

use crate::frame::{DATA_IS_VALID, GSO_UDP, NEEDS_CHECKSUM, VIRTIO};
use crate::run::Run;

/// After a batch with packets of several connections, they are taken to be busy for so many more: a flood may fill some.
const REMEMBERED: u32 = 64;

/// A segment, or another packet.
type Arrived<'a> = Result<Decoded<'a>, Other<'a>>;

/// A packet that is not a whole segment.
#[derive(Clone, Copy, Debug)]
struct Other<'a> {
    packet: &'a [u8],
    /// Its UDP checksum is verified, or was never computed.
    is_verified: bool,
    /// It has several datagrams, each with this much payload; the last may have less.
    datagram_len: Option<u16>,
}

/// Passes packets from the device to the stack. Consecutive segments are coalesced, as in the kernel (GRO): each costs less, and
/// there is one ACK for all of them.
///
/// If several connections are busy, and there are more packets in the device (not `drained`), they wait for the turns of their
/// connections, and the result is true: otherwise a connection that gets many packets would fill the device's queue, and those of
/// the others would wait behind them, or be lost.
pub(crate) fn receive<'a>(
    stack: &mut Stack,
    now: Instant,
    offload: bool,
    frames: impl Iterator<Item = &'a [u8]>,
    drained: bool,
    sharing: &mut Sharing,
) -> bool {
    let arrived: Vec<Arrived<'_>> = frames.filter_map(|frame| read(offload, frame)).collect();
    let delays = sharing.note(&arrived) && !drained;
    stack.delay_arrivals(delays);
    stack.prefetch(arrived.iter().flatten());
    let mut rest = arrived.as_slice();
    while let [packet, later @ ..] = rest {
        rest = later;
        match packet {
            Ok(first) => rest = &later[receive_run(stack, now, first, later)..],
            Err(other) => receive_other(stack, now, other),
        }
    }
    delays
}

/// Whether several connections are busy. A single one need not wait, which costs a copy of its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// For how many more batches several are taken to be busy.
    batches: u32,
}

impl Sharing {
    /// Packets have arrived. True if several connections are busy.
    fn note(&mut self, arrived: &[Arrived<'_>]) -> bool {
        let is_mixed = !arrived.windows(2).all(|two| is_same_connection(&two[0], &two[1]));
        let left = if arrived.is_empty() { self.batches } else { self.batches.saturating_sub(1) };
        self.batches = if is_mixed { REMEMBERED } else { left };
        self.batches > 0
    }
}

fn is_same_connection(one: &Arrived<'_>, other: &Arrived<'_>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one.endpoints == other.endpoints)
}

fn receive_other(stack: &mut Stack, now: Instant, other: &Other<'_>) {
    let datagram = if other.is_verified { Datagram::read_verified(other.packet) } else { None };
    match (datagram, other.datagram_len) {
        (Some(joined), Some(len)) if len > 0 => {
            for payload in joined.payload.chunks(usize::from(len)) {
                stack.on_datagram(now, &Datagram { payload, ..joined });
            }
        }
        (Some(datagram), _) => stack.on_datagram(now, &datagram),
        (None, _) => stack.on_other(now, other.packet),
    }
}

/// Passes `first` to the stack, coalesced with the segments of `later` that continue it; returns the number of these.
fn receive_run(stack: &mut Stack, now: Instant, first: &Decoded<'_>, later: &[Arrived<'_>]) -> usize {
    let Decoded { endpoints, hop_limit, segment, payload } = *first;
    let mut run = Run::new(Transmit { endpoints, hop_limit, segment });
    let following = later.iter().map_while(|packet| packet.as_ref().ok());
    let count = following.take_while(|next| run.join(&next.endpoints, next.hop_limit, &next.segment)).count();
    if count == 0 {
        stack.on_segment(now, first);
    } else {
        let segment = Segment { len: run.len as u16, ..run.first.segment };
        let payloads = later[..count].iter().flatten().map(|next| next.payload);
        stack.on_joined(now, &Decoded { segment, ..*first }, std::iter::once(payload).chain(payloads));
    }
    count
}

/// The segment in a frame, or the packet if it has none.
fn read(offload: bool, frame: &[u8]) -> Option<Arrived<'_>> {
    if !offload {
        let other = Other { packet: frame, is_verified: false, datagram_len: None };
        return Some(Decoded::read(frame).map_err(|_| other));
    }
    let (header, packet) = frame.split_at_checked(VIRTIO)?;
    let verified = header[0] & (NEEDS_CHECKSUM | DATA_IS_VALID) != 0;
    let decoded = if verified { Decoded::read_verified(packet) } else { Decoded::read(packet) };
    let datagram_len = (header[1] == GSO_UDP).then(|| u16::from_ne_bytes([header[4], header[5]]));
    Some(decoded.map_err(|_| Other { packet, is_verified: verified, datagram_len }))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use reknit_stack::{ListenOptions, Options, SocketId, SocketOptions};
    use reknit_tcp::segment::Flags;

    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000_000);

    /// A connection on which packets arrive in batches.
    struct Pair {
        client: Stack,
        server: Stack,
        sending: SocketId,
        receiving: SocketId,
    }

    /// The packets that the stack sends now.
    fn packets(stack: &mut Stack) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut packet = Vec::new();
        while stack.poll_packet(NOW, &mut packet) {
            packets.push(packet.clone());
        }
        packets
    }

    fn receive(stack: &mut Stack, packets: &[Vec<u8>]) {
        super::receive(stack, NOW, false, packets.iter().map(Vec::as_slice), true, &mut Sharing::default());
    }

    impl Pair {
        fn new(port: u16) -> Pair {
            let address = |n: u8| IpAddr::from([10, 0, 0, n]);
            let stack = |n| Stack::new(NOW, Options { addresses: vec![address(n)], ..Options::default() }, [n; 32]);
            let (mut client, mut server) = (stack(1), stack(2));
            let listener = server.listen((address(2), 80).into(), &ListenOptions::default()).unwrap();
            let sending = client
                .connect(NOW, Some((address(1), port).into()), (address(2), 80).into(), &SocketOptions::default())
                .unwrap();
            for _ in 0..2 {
                receive(&mut server, &packets(&mut client));
                receive(&mut client, &packets(&mut server));
            }
            let receiving = server.accept(listener).unwrap();
            Pair { client, server, sending, receiving }
        }

        /// The first window, as packets.
        fn window(&mut self) -> (Vec<u8>, Vec<Vec<u8>>) {
            let data: Vec<u8> = (0..10 * 1448u32).map(|n| (n % 251) as u8).collect();
            assert_eq!(self.client.write(self.sending, &data), Ok(data.len()));
            let packets = packets(&mut self.client);
            assert_eq!(packets.len(), 10);
            (data, packets)
        }

        fn read(&mut self) -> Vec<u8> {
            let mut bytes = vec![0; 65_536];
            let n = self.server.read(NOW, self.receiving, &mut bytes).unwrap();
            bytes.truncate(n);
            bytes
        }
    }

    #[test]
    fn segments_that_follow_each_other_get_one_ack() {
        let mut pair = Pair::new(5000);
        let (data, packets_of_window) = pair.window();
        receive(&mut pair.server, &packets_of_window);
        assert_eq!(packets(&mut pair.server).len(), 1);
        assert_eq!(pair.read(), data);
    }

    #[test]
    fn a_gap_ends_a_run() {
        let mut pair = Pair::new(5000);
        let (data, mut window) = pair.window();
        let late = window.remove(3);
        receive(&mut pair.server, &window);
        let answers = packets(&mut pair.server);
        assert_eq!(pair.read(), data[..3 * 1448]);
        let last = Decoded::read(answers.last().unwrap()).unwrap();
        assert_eq!(last.segment.options.sack.as_slice().len(), 1);
        receive(&mut pair.server, &[late]);
        assert_eq!(pair.read(), data[3 * 1448..]);
    }

    #[test]
    fn segments_that_follow_each_other_but_belong_to_nothing_are_refused() {
        let (_, window) = Pair::new(5000).window();
        let mut other = Pair::new(5001);
        receive(&mut other.server, &window);
        let answers = packets(&mut other.server);
        let rst = Decoded::read(&answers[0]).unwrap().segment;
        assert!(answers.len() == 1 && rst.flags.has(Flags::RST));
    }

    #[test]
    fn segments_of_different_connections_are_not_joined() {
        let mut pair = Pair::new(5000);
        let (data, mut window) = pair.window();
        let mut other = Pair::new(5001);
        let (_, others) = other.window();
        window.insert(5, others[0].clone());
        receive(&mut pair.server, &window);
        assert_eq!(pair.read(), data);
    }
}
