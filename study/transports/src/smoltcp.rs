//! smoltcp: TCP with CUBIC, for small systems. It sends SACK blocks, but retransmits after three duplicate ACKs as a sender without
//! SACK.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use reknit_sim::{Counters, Endpoint, Ends, Opening, Transmit, Transport};
use reknit_units::{Bytes, Instant};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant as Micros;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv4Packet, TcpPacket};

use crate::configured::transport;

/// The addresses of the sender and of the receiver.
const SENDER: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
const RECEIVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);
const PORT: u16 = 5001;
/// Bytes of an IP packet on Ethernet.
const MTU: usize = 1500;

/// smoltcp with CUBIC.
pub fn all() -> Vec<Arc<dyn Transport>> {
    let about = format!("smoltcp {}: TCP with CUBIC, room for 32 gaps in the receive buffer", env!("VERSION_SMOLTCP"));
    vec![transport("smoltcp", about, |opening| Ends {
        sender: Box::new(End::new(opening, true)),
        receiver: Box::new(End::new(opening, false)),
    })]
}

struct End {
    interface: Interface,
    queues: Queues,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    sends: bool,
    /// Bytes that the application has not written yet.
    unwritten: u64,
    received: u64,
    /// The first sequence number of data.
    first: Option<u32>,
    /// The end of what has been sent.
    sent_up_to: u64,
}

impl End {
    fn new(opening: &Opening, sends: bool) -> End {
        let mut queues = Queues::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = opening.seed ^ u64::from(sends);
        let mut interface = Interface::new(config, &mut queues, micros(opening.now));
        let (own, peer) = if sends { (SENDER, RECEIVER) } else { (RECEIVER, SENDER) };
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(own.into(), 24)); // there is room for one
        });
        let size = usize::try_from(opening.receive_buffer.0).unwrap_or(usize::MAX);
        let (receive, send) = if sends { (1 << 12, 2 * size) } else { (size, 1 << 12) };
        let mut socket = Socket::new(SocketBuffer::new(vec![0; receive]), SocketBuffer::new(vec![0; send]));
        socket.set_congestion_control(CongestionControl::Cubic);
        if sends {
            socket.connect(interface.context(), (peer, PORT), 40_000).expect("a new socket can connect");
        } else {
            socket.listen(PORT).expect("a new socket can listen");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        End { interface, queues, sockets, socket, sends, unwritten: 0, received: 0, first: None, sent_up_to: 0 }
    }

    /// Lets the stack process what has arrived and what is due, and the application read and write.
    fn drive(&mut self, now: Instant) {
        loop {
            let before = self.queues.outgoing.len();
            self.interface.poll(micros(now), &mut self.queues, &mut self.sockets);
            if !self.transfer() && self.queues.outgoing.len() == before {
                return;
            }
        }
    }

    /// The application reads and writes as much as it can. False if it could do neither.
    fn transfer(&mut self) -> bool {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let mut moved = 0;
        while socket.can_recv() {
            let Ok(read) = socket.recv(|data| (data.len(), data.len())) else { break };
            self.received += read as u64;
            moved += read;
        }
        while self.unwritten > 0 && socket.can_send() {
            let most = usize::try_from(self.unwritten).unwrap_or(usize::MAX);
            let Ok(written) = socket.send(|room| {
                let len = room.len().min(most);
                (len, len)
            }) else {
                break;
            };
            self.unwritten -= written as u64;
            moved += written;
            if self.unwritten == 0 {
                socket.close();
            }
        }
        moved > 0
    }

    /// The data that a packet of this end carries.
    fn data(&mut self, packet: &[u8]) -> Option<Range<u64>> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        let number = tcp.seq_number().0.cast_unsigned();
        if tcp.syn() {
            self.first = Some(number.wrapping_add(1));
            return None;
        }
        // Sequence numbers wrap: the position is the one nearest to the end of what has been sent.
        let ahead = number.wrapping_sub(self.first?).wrapping_sub(self.sent_up_to as u32).cast_signed();
        let start = self.sent_up_to.checked_add_signed(i64::from(ahead))?;
        let end = start + tcp.payload().len() as u64;
        self.sent_up_to = self.sent_up_to.max(end);
        (end > start).then_some(start..end)
    }
}

impl Endpoint for End {
    fn write(&mut self, now: Instant, len: u64) {
        self.unwritten += len;
        self.drive(now);
    }

    fn handle(&mut self, now: Instant, packet: &[u8]) {
        self.queues.incoming.push_back(packet.to_vec());
        self.drive(now);
    }

    fn on_deadline(&mut self, now: Instant) {
        self.drive(now);
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Transmit> {
        let packet = self.queues.outgoing.pop_front()?;
        let data = if self.sends { self.data(&packet).into_iter().collect() } else { Vec::new() };
        Some(Transmit { size: Bytes(packet.len() as u64), packet, data })
    }

    fn deadline(&mut self, now: Instant) -> Instant {
        let at = self.interface.poll_at(micros(now), &self.sockets);
        at.map_or(Instant::NEVER, |at| Instant::from_nanos(1000 * u64::try_from(at.total_micros()).unwrap_or(0)))
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn counters(&self) -> Counters {
        Counters { cuts: None, undos: Some(0), timeouts: None }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("received", &self.received).finish_non_exhaustive()
    }
}

fn micros(now: Instant) -> Micros {
    Micros::from_micros(i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX))
}

/// A device: the packets that have arrived and those to send.
#[derive(Debug, Default)]
struct Queues {
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
struct Incoming(Vec<u8>);

#[derive(Debug)]
struct Outgoing<'a>(&'a mut VecDeque<Vec<u8>>);

impl Device for Queues {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Micros) -> Option<(Incoming, Outgoing<'_>)> {
        let packet = self.incoming.pop_front()?;
        Some((Incoming(packet), Outgoing(&mut self.outgoing)))
    }

    fn transmit(&mut self, _: Micros) -> Option<Outgoing<'_>> {
        Some(Outgoing(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}
