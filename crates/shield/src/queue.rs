//! A queue of the kernel (`nfnetlink_queue`): packets that wait for a verdict.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, MultiHeaders, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, recvmmsg, send,
    setsockopt, socket,
};

// Numbers of linux/netlink.h, linux/netfilter.h and linux/netfilter/nfnetlink_queue.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const CONFIG: u16 = SUBSYSTEM | 2;
const CFG_CMD: u16 = 1;
const CFG_PARAMS: u16 = 2;
const CFG_QUEUE_MAXLEN: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// If the queue is full, packets pass.
const FAIL_OPEN: u32 = 1;
/// Combined packets stay combined, and checksums may be missing: nothing is changed here.
const GSO: u32 = 4;
const PACKET_HDR: u16 = 1;
const IFINDEX_INDEV: u16 = 5;
const VERDICT_HDR: u16 = 2;
const PAYLOAD: u16 = 10;
const CAP_LEN: u16 = 13;
const ACCEPT: u32 = 1;

const HEADER: usize = 16;
/// The header of nfnetlink after that of netlink.
const NF_HEADER: usize = 4;
/// Bytes of each packet that are read: IPv4 or IPv6, and the TCP header with its options.
const COPIED: u32 = 192;
/// Packets that wait in the kernel, held ones included.
const LONGEST: u32 = 4096;
/// The kernel's buffer for messages to this process.
const BUFFER: usize = 8 << 20;

/// No message about a packet is longer.
const MESSAGE: usize = 1024;
/// Messages that are read before verdicts are sent, with one call of the kernel.
const BATCH: usize = 64;

/// What [`Queue::receive`] reads into.
#[derive(Debug)]
pub(crate) struct Buffers {
    headers: MultiHeaders<()>,
    bytes: Vec<[u8; MESSAGE]>,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers { headers: MultiHeaders::preallocate(BATCH, None), bytes: vec![[0; MESSAGE]; BATCH] }
    }
}

/// A packet in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queued<'a> {
    pub(crate) id: u32,
    /// The index of the interface on which it arrived; 0 if the kernel does not say.
    pub(crate) interface: u32,
    /// Its first bytes, from the IP header on.
    pub(crate) bytes: &'a [u8],
    /// All bytes.
    pub(crate) len: usize,
}

/// A queue that this process reads.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: OwnedFd,
    number: u16,
    /// Verdicts that have not been sent.
    verdicts: Vec<u8>,
}

impl Queue {
    /// Begins to read queue `number`.
    pub(crate) fn open(number: u16) -> Result<Queue, String> {
        let refuse = |error: io::Error| match error.raw_os_error().map(nix::Error::from_raw) {
            // The kernel does not say which.
            Some(nix::Error::EPERM) => format!(
                "queue {number}: needs root, or the capability CAP_NET_ADMIN; or another program reads it: give another --queue"
            ),
            Some(nix::Error::EPROTONOSUPPORT | nix::Error::EINVAL) => {
                "NFQUEUE: this kernel does not have it; `modprobe nfnetlink_queue`".to_owned()
            }
            _ => format!("queue {number}: {}", reknit_config::file_error(&error)),
        };
        let kind = (SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkNetFilter);
        let socket = socket(AddressFamily::Netlink, kind.0, kind.1, kind.2).map_err(|error| refuse(error.into()))?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0)).map_err(|error| refuse(error.into()))?;
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER); // with a smaller buffer, packets pass earlier
        let queue = Queue { socket, number, verdicts: Vec::new() };
        let params = [&COPIED.to_be_bytes()[..], &[COPY_PACKET]].concat();
        let flags = (FAIL_OPEN | GSO).to_be_bytes();
        for attributes in [
            attribute(CFG_CMD, &[BIND, 0, 0, 0]),
            attribute(CFG_PARAMS, &params),
            attribute(CFG_QUEUE_MAXLEN, &LONGEST.to_be_bytes()),
            [attribute(CFG_FLAGS, &flags), attribute(CFG_MASK, &flags)].concat(),
        ] {
            queue.configure(&attributes).map_err(refuse)?;
        }
        Ok(queue)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn configure(&self, attributes: &[u8]) -> io::Result<()> {
        let mut text = Vec::new();
        message(&mut text, CONFIG, NLM_F_REQUEST | NLM_F_ACK, self.number, attributes);
        send(self.socket.as_raw_fd(), &text, MsgFlags::empty())?;
        let mut answer = [0; 4096];
        loop {
            // Packets may come before the answer. They pass when the queue is closed, and nothing is steered here yet.
            let n = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
            if let Some(code) = messages(&answer[..n]).find_map(|(kind, body)| error_code(kind, body)) {
                return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
        }
    }

    /// Reads the packets that have arrived, at most as many as there are buffers.
    pub(crate) fn receive<'a>(&self, buffers: &'a mut Buffers) -> io::Result<impl Iterator<Item = Queued<'a>>> {
        let Buffers { headers, bytes } = buffers;
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = bytes.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
        let lens = match recvmmsg(self.socket.as_raw_fd(), headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
            Ok(received) => received.map(|message| message.bytes).collect(),
            // Messages were lost, and the kernel has let their packets pass.
            Err(nix::Error::EAGAIN | nix::Error::EINTR | nix::Error::ENOBUFS) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(bytes.iter().zip(lens).flat_map(|(bytes, len)| packets(&bytes[..len])))
    }

    /// The packet goes on, after those before it.
    pub(crate) fn accept(&mut self, id: u32) {
        let header = [ACCEPT.to_be_bytes(), id.to_be_bytes()].concat();
        message(&mut self.verdicts, VERDICT, NLM_F_REQUEST, self.number, &attribute(VERDICT_HDR, &header));
    }

    /// Sends all verdicts at once.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.verdicts.is_empty() {
            send(self.socket.as_raw_fd(), &self.verdicts, MsgFlags::empty())?;
            self.verdicts.clear();
        }
        Ok(())
    }
}

/// The packets in messages of the kernel.
fn packets(bytes: &[u8]) -> impl Iterator<Item = Queued<'_>> {
    messages(bytes).filter(|(kind, _)| *kind == PACKET).filter_map(|(_, body)| packet(body.get(NF_HEADER..)?))
}

fn packet(attributes: &[u8]) -> Option<Queued<'_>> {
    let (mut id, mut interface, mut bytes, mut len) = (None, 0, &[][..], None);
    let number = |value: &[u8]| value.first_chunk().map(|number| u32::from_be_bytes(*number));
    for (kind, value) in each(attributes, 4, |head| (u16_of(head, 2), usize::from(u16_of(head, 0)))) {
        match kind {
            PACKET_HDR => id = number(value),
            IFINDEX_INDEV => interface = number(value).unwrap_or(0),
            PAYLOAD => bytes = value,
            CAP_LEN => len = number(value).map(|len| len as usize),
            _ => {}
        }
    }
    Some(Queued { id: id?, interface, bytes, len: len.unwrap_or(bytes.len()) })
}

/// The messages of netlink: kind and body.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    each(bytes, HEADER, |head| {
        let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        (u16_of(head, 4), len as usize)
    })
}

/// Items with a header that says kind and length; each begins at a multiple of four.
fn each<'a>(
    mut bytes: &'a [u8],
    header: usize,
    read: impl Fn(&[u8]) -> (u16, usize) + 'a,
) -> impl Iterator<Item = (u16, &'a [u8])> + 'a {
    std::iter::from_fn(move || {
        let (kind, len) = read(bytes.get(..header)?);
        let value = bytes.get(header..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn u16_of(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn error_code(kind: u16, body: &[u8]) -> Option<i32> {
    if kind == NLMSG_ERROR { body.first_chunk().map(|code| i32::from_ne_bytes(*code)) } else { None }
}

fn message(out: &mut Vec<u8>, kind: u16, flags: u16, queue: u16, attributes: &[u8]) {
    out.extend(((HEADER + NF_HEADER + attributes.len()) as u32).to_ne_bytes());
    out.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    out.extend([0; 8]); // sequence number and sender
    out.extend([0, 0]); // family and version
    out.extend(queue.to_be_bytes());
    out.extend(attributes);
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [((4 + value.len()) as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kernel(id: u32, bytes: &[u8], len: Option<u32>) -> Vec<u8> {
        let mut attributes = attribute(PACKET_HDR, &[&id.to_be_bytes()[..], &[8, 0, 1]].concat());
        attributes.extend(attribute(IFINDEX_INDEV, &(id + 40).to_be_bytes()));
        attributes.extend(attribute(PAYLOAD, bytes));
        attributes.extend(len.map(|len| attribute(CAP_LEN, &len.to_be_bytes())).unwrap_or_default());
        let mut text = Vec::new();
        message(&mut text, PACKET, 0, 7, &attributes);
        text
    }

    #[test]
    fn packets_are_read_and_broken_messages_are_not() {
        let text = [of_kernel(5, &[1, 2, 3], None), of_kernel(6, &[4], Some(1500))].concat();
        let found: Vec<Queued<'_>> = packets(&text).collect();
        let [a, b] = [(5, &[1, 2, 3][..], 3), (6, &[4][..], 1500)].map(|(id, bytes, len)| Queued {
            id,
            interface: id + 40,
            bytes,
            len,
        });
        assert_eq!(found, [a, b]);
        for end in 0..text.len() {
            assert!(packets(&text[..end]).count() < 2);
        }
        let mut zero = text.clone();
        zero[..4].fill(0);
        assert_eq!(packets(&zero).count(), 0);
    }

    #[test]
    fn messages_are_as_long_as_they_say() {
        let mut text = Vec::new();
        message(&mut text, VERDICT, NLM_F_REQUEST, 258, &attribute(VERDICT_HDR, &[0; 8]));
        assert_eq!((text.len(), u32::from_ne_bytes(text[..4].try_into().unwrap())), (32, 32));
        assert_eq!(text[18..20], [1, 2]);
        assert_eq!(attribute(CFG_PARAMS, &[0; 5]).len(), 12);
    }
}
