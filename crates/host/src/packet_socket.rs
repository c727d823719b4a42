//! The packets of an interface as they pass, headers only (packet(7)).

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol, SockType, recvmmsg,
    setsockopt, socket,
};
use nix::sys::time::TimeSpec;

/// The name for all interfaces.
pub const ANY: &str = "any";
/// Bytes of each packet that are read: IPv4 or IPv6 with options, and the TCP header with its options.
const SNAPLEN: usize = 192;
/// Packets that are read at once.
const BATCH: usize = 64;
/// The kernel's buffer: packets wait here with their data, so it is large.
const BUFFER: usize = 32 << 20;
/// How often a stop is noticed, ms.
const POLL_MS: u16 = 100;

/// None if there is an interface of this name, or it is [`ANY`]; else the names that there are, with commas.
pub fn instead_of(interface: &str) -> Option<String> {
    // Not by its addresses: a TUN device, WireGuard or PPP may have none.
    if interface == ANY || if_nametoindex(interface).is_ok() {
        return None;
    }
    let names: BTreeSet<String> = getifaddrs().into_iter().flatten().map(|one| one.interface_name).collect();
    Some(names.into_iter().collect::<Vec<_>>().join(", "))
}

/// A packet from its IP header on.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When it passed, nanoseconds since 1970.
    pub at: Option<u64>,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// All bytes. More than the largest segment if the host combines segments.
    pub original_len: usize,
}

/// The time of a packet, and its length.
type Received = (Option<u64>, usize);

/// A socket that sees the TCP packets of an interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    /// The interface's number; none for all of them.
    interface: Option<usize>,
    /// Interfaces on which each packet passes twice, out and in.
    loopbacks: BTreeSet<usize>,
}

impl PacketSocket {
    /// Begins to listen on `interface`, or on all with [`ANY`].
    ///
    /// # Errors
    /// One line that says what is wrong: no such interface, or no permission.
    pub fn open(interface: &str) -> Result<PacketSocket, String> {
        PacketSocket::open_filtered(interface, &mut filter())
    }

    /// As [`PacketSocket::open`], for the packets that a classic BPF program over the IP packet lets pass.
    ///
    /// # Errors
    /// As [`PacketSocket::open`], and if the kernel refuses the program.
    pub fn open_filtered(interface: &str, program: &mut [libc::sock_filter]) -> Result<PacketSocket, String> {
        let refuse = |error: nix::Error| match error {
            nix::Error::EPERM | nix::Error::EACCES => format!("{interface}: needs root, or the capability CAP_NET_RAW"),
            error => format!("{interface}: {}", error.desc()),
        };
        let mut loopbacks = BTreeSet::new();
        for one in getifaddrs().map_err(refuse)? {
            if one.flags.contains(InterfaceFlags::IFF_LOOPBACK)
                && let Ok(index) = if_nametoindex(&*one.interface_name)
            {
                loopbacks.insert(index as usize);
            }
        }
        if let Some(names) = instead_of(interface) {
            return Err(format!("{interface}: neither a file nor an interface; interfaces: {names}, or {ANY}"));
        }
        let found = if_nametoindex(interface).ok().map(|index| index as usize);
        let kind = (AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
        let socket = socket(kind.0, kind.1, kind.2, kind.3).map_err(refuse)?;
        attach_filter(&socket, program).map_err(|error| format!("{interface}: {error}"))?;
        setsockopt(&socket, ReceiveTimestampns, &true).map_err(refuse)?;
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER); // without the permission, the buffer is small
        if let Some(index) = found {
            bind(&socket, index).map_err(|error| format!("{interface}: {error}"))?;
        }
        Ok(PacketSocket { socket, interface: found, loopbacks })
    }

    /// Calls `each` with the packets of each batch, until it returns false. It is called at least every 100 ms, also with an
    /// empty batch.
    ///
    /// # Errors
    /// Errors of the socket, such as an interface that goes away.
    pub fn run(&self, each: &mut dyn FnMut(&[Seen<'_>]) -> bool) -> io::Result<()> {
        let mut bytes = vec![[0; SNAPLEN]; BATCH];
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(BATCH, Some(nix::cmsg_space!(TimeSpec)));
        loop {
            let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            let count = match poll(&mut ready, PollTimeout::from(POLL_MS)) {
                Ok(0) | Err(nix::Error::EINTR) => 0,
                Ok(_) => BATCH,
                Err(error) => return Err(error.into()),
            };
            let lens = if count > 0 { self.receive(&mut headers, &mut bytes)? } else { Vec::new() };
            let seen: Vec<Seen<'_>> = lens
                .iter()
                .zip(&bytes)
                .filter_map(|(received, bytes)| {
                    let (at, original_len) = (*received)?;
                    Some(Seen { at, bytes: &bytes[..original_len.min(SNAPLEN)], original_len })
                })
                .collect();
            if !each(&seen) {
                return Ok(());
            }
        }
    }

    /// Receives a batch: the time and length of each packet, or none for a packet that does not count.
    fn receive(
        &self,
        headers: &mut MultiHeaders<LinkAddr>,
        bytes: &mut [[u8; SNAPLEN]],
    ) -> io::Result<Vec<Option<Received>>> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = bytes.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let received = match recvmmsg(self.socket.as_raw_fd(), headers, slices.iter_mut(), flags, None) {
            Ok(received) => received,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        Ok(received
            .map(|message| {
                let counts = message.address.is_none_or(|from| self.counts(&from));
                let at = message.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|one| match one {
                        ControlMessageOwned::ScmTimestampns(time) => nanoseconds(time),
                        _ => None,
                    })
                });
                counts.then_some((at, message.bytes))
            })
            .collect())
    }

    /// False for packets of other interfaces, which may come before the socket is bound, and for the way out of packets that
    /// come in again.
    fn counts(&self, from: &LinkAddr) -> bool {
        let is_ours = self.interface.is_none_or(|interface| interface == from.ifindex());
        is_ours && !(from.pkttype() == libc::PACKET_OUTGOING && self.loopbacks.contains(&from.ifindex()))
    }

    /// Packets that the kernel dropped since the last call because this program was too slow.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn drops(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let to = (&raw mut statistics).cast();
        let socket = self.socket.as_raw_fd();
        #[expect(unsafe_code, reason = "nix has no PACKET_STATISTICS")]
        // SAFETY: the kernel writes at most `len` bytes, the size of the structure, which lives until the call returns.
        let done = unsafe { libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut len) };
        if done == 0 { Ok(statistics.tp_drops.into()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Binds the socket to an interface.
fn bind(socket: &OwnedFd, interface: usize) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: i32::try_from(interface).unwrap_or(i32::MAX),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let from = (&raw const address).cast();
    #[expect(unsafe_code, reason = "nix makes no address of an interface without a link-layer address")]
    // SAFETY: the kernel reads `len` bytes, the size of the structure, which lives until the call returns.
    let done = unsafe { libc::bind(socket.as_raw_fd(), from, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let (seconds, nanos) = (u64::try_from(time.tv_sec()).ok()?, u64::try_from(time.tv_nsec()).ok()?);
    Some(seconds * 1_000_000_000 + nanos)
}

/// Lets only those packets pass for which `program` returns a length. So others cost nothing.
fn attach_filter(socket: &OwnedFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let len = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let from = (&raw const program).cast();
    #[expect(unsafe_code, reason = "nix has no SO_ATTACH_FILTER")]
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, from, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A classic BPF program over the IP packet. Lets only TCP pass, also in tunnels that are opened: IP in IP, GRE, and over UDP and
/// IPv4 those of the usual ports.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const LOAD_HALF_AT_X: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
    const LOAD_HEADER_LEN: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // VXLAN, GENEVE, GTP-U, CAPWAP, L2TP, MPLS and GRE over UDP.
    const TUNNELS: [u32; 9] = [4789, 8472, 4790, 6081, 2152, 5247, 1701, 6635, 4754];
    // Protocols of IPv4 that pass: TCP, GRE, IPv4 and IPv6; next headers of IPv6: the same, and its extension headers.
    const IN_IPV4: [u32; 4] = [6, 47, 4, 41];
    const IN_IPV6: [u32; 10] = [6, 47, 4, 41, 0, 43, 44, 51, 60, 135];
    const UDP: u32 = 17;
    let plain = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let branch = |k, jt: usize, jf: usize| libc::sock_filter { code: IF_EQUAL, jt: jt as u8, jf: jf as u8, k };
    // After the first three instructions, IPv4 takes 1 + 4 + 1 + 2 + 9, and IPv6 1 + 1 + 10; then come pass and drop.
    let v4 = 1 + IN_IPV4.len() + 3 + TUNNELS.len();
    let v6 = 2 + IN_IPV6.len();
    let mut program = vec![plain(LOAD_BYTE, 0), plain(AND, 0xf0), branch(0x40, 0, v4)];
    program.push(plain(LOAD_BYTE, 9));
    let pass = 3 + v4 + v6;
    for protocol in IN_IPV4 {
        program.push(branch(protocol, pass - program.len() - 1, 0));
    }
    program.push(branch(UDP, 0, pass + 1 - program.len() - 1));
    program.push(plain(LOAD_HEADER_LEN, 0));
    program.push(plain(LOAD_HALF_AT_X, 2));
    for port in TUNNELS {
        let to = pass - program.len() - 1;
        let is_last = port == TUNNELS[TUNNELS.len() - 1];
        program.push(branch(port, to, if is_last { to + 1 } else { 0 }));
    }
    program.push(branch(0x60, 0, pass + 1 - program.len() - 1));
    program.push(plain(LOAD_BYTE, 6));
    for next in IN_IPV6 {
        let to = pass - program.len() - 1;
        program.push(branch(next, to, usize::from(to == 0))); // after the last one, drop
    }
    program.push(plain(RETURN, u32::MAX));
    program.push(plain(RETURN, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel's interpreter returns for `packet`.
    fn run(packet: &[u8]) -> u32 {
        let program = filter();
        let (mut at, mut a, mut x) = (0, 0_u32, 0_u32);
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                0x30 => a = packet[step.k as usize].into(),
                0x48 => {
                    let from = (x + step.k) as usize;
                    a = u16::from_be_bytes([packet[from], packet[from + 1]]).into();
                }
                0xb1 => x = u32::from(packet[step.k as usize] & 15) * 4,
                0x54 => a &= step.k,
                0x15 => at += usize::from(if a == step.k { step.jt } else { step.jf }),
                0x06 => return step.k,
                code => panic!("{code:#x} at {at}"),
            }
        }
    }

    fn packet(version: u8, protocol: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0; 60];
        packet[0] = version << 4 | 5;
        packet[if version == 4 { 9 } else { 6 }] = protocol;
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet
    }

    #[test]
    fn only_tcp_and_tunnels_pass() {
        for protocol in [6, 47, 4, 41] {
            assert_eq!(
                (run(&packet(4, protocol, 0)), run(&packet(6, protocol, 0))),
                (u32::MAX, u32::MAX),
                "{protocol}"
            );
        }
        for header in [0, 43, 44, 51, 60, 135] {
            assert_eq!((run(&packet(4, header, 0)), run(&packet(6, header, 0))), (0, u32::MAX), "{header}");
        }
        for port in [4789, 6081, 2152, 4754] {
            assert_eq!((run(&packet(4, 17, port)), run(&packet(6, 17, port))), (u32::MAX, 0), "{port}");
        }
        assert_eq!(run(&packet(4, 17, 53)), 0);
        assert_eq!((run(&packet(4, 1, 0)), run(&packet(6, 58, 0)), run(&packet(5, 6, 0))), (0, 0, 0));
    }

    #[test]
    fn an_unknown_interface_is_refused_with_those_there_are() {
        let error = PacketSocket::open("nowhere0").unwrap_err();
        assert!(error.starts_with("nowhere0: neither a file nor an interface; interfaces: ") && error.contains("lo"));
    }
}
