//! A connection that gets many packets does not keep out the others.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use reknit_net::{Network, PacketIo, TcpListener};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Options, Segment};
use reknit_wire::{Decoded, Endpoints, encode};
use tokio::io::AsyncWriteExt;

/// Segments of the flood that are in the device's queue before the one of the other client.
const FLOOD: u32 = 400;

fn server() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

fn flooding() -> SocketAddr {
    "10.0.0.3:1000".parse().unwrap()
}

fn other() -> SocketAddr {
    "10.0.0.4:1000".parse().unwrap()
}

/// A device with packets from two clients. Once the flood is in its queue, it notes to whom packets go.
struct Device {
    queue: VecDeque<Vec<u8>>,
    sent: Arc<Mutex<Vec<SocketAddr>>>,
    flood_has_begun: bool,
    server_isns: [Option<SeqNum>; 2],
}

impl Device {
    fn push(&mut self, from: SocketAddr, segment: &Segment) {
        let mut packet = Vec::new();
        let endpoints = Endpoints { source: from, destination: server() };
        encode(endpoints, segment, &vec![1; segment.len.into()], &mut packet);
        self.queue.push_back(packet);
    }

    /// The flood, each segment of which allows the server to send one more byte, and then data from the other client.
    fn begin(&mut self, [flooding_isn, other_isn]: [SeqNum; 2]) {
        let segment = |ack, window| Segment { seq: SeqNum(5001), ack, window, flags: Flags::ACK, ..Segment::default() };
        for n in 1..=FLOOD {
            self.push(flooding(), &segment(flooding_isn.plus(n), 1));
        }
        self.push(other(), &Segment { len: 1000, ..segment(other_isn.plus(1), 1000) });
        self.flood_has_begun = true;
    }
}

impl PacketIo for Device {
    fn mtu(&self) -> u16 {
        1500
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(packet) = self.queue.pop_front() else { return Ok(None) };
        into[..packet.len()].copy_from_slice(&packet);
        Ok(Some(packet.len()))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let Decoded { endpoints, segment, .. } = Decoded::read(packet).unwrap();
        if segment.flags.has(Flags::SYN) {
            self.server_isns[usize::from(endpoints.destination == other())] = Some(segment.seq);
        } else if self.flood_has_begun {
            self.sent.lock().unwrap().push(endpoints.destination);
        }
        Ok(())
    }

    async fn readable(&mut self) -> io::Result<()> {
        tokio::task::yield_now().await;
        match self.server_isns {
            [Some(flooding), Some(other)] if !self.flood_has_begun => self.begin([flooding, other]),
            _ if self.sent.lock().unwrap().contains(&other()) => return Err(io::Error::other("the end of the test")),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn packets_behind_a_flood_do_not_wait_for_its_replies() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let queue = VecDeque::new();
    let mut device = Device { queue, sent: sent.clone(), flood_has_begun: false, server_isns: [None; 2] };
    for client in [flooding(), other()] {
        let options = Options { mss: Some(1460), ..Options::default() };
        let syn = Segment { seq: SeqNum(5000), window: 1, flags: Flags::SYN, options, ..Segment::default() };
        device.push(client, &syn);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let builder = Network::builder(server().ip()).drain_limit(std::time::Duration::ZERO);
        let (network, driver) = builder.build(device).unwrap();
        let listener = TcpListener::bind(&network, server()).unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move { stream.write_all(&[7; 10_000]).await });
            }
        });
        driver.run().await;
        serving.abort();
    });
    let sent = sent.lock().unwrap();
    let before = sent.iter().position(|to| *to == other()).unwrap();
    assert!(before < 80, "{before} packets to the flooding client came first, of {FLOOD}");
}
