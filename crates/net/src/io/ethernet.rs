//! An Ethernet interface, by a packet socket (packet(7)).
#![expect(unsafe_code, reason = "rustix has neither addresses nor options of packet sockets, nor ioctls of interfaces")]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::{Errno, readv, retry_on_intr, writev};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::arp::{Arp, BROADCAST, LinkAddress};
use super::fd::wait;
use super::{PacketIo, register};
use crate::frame::VIRTIO;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// The values of the virtio header that are measured from the beginning of the frame: the length of all headers, and where
/// the checksum begins.
const POSITIONS: [usize; 2] = [2, 6];

/// Packets of an Ethernet interface for addresses that the kernel does not have. All packets go to one router; both
/// find each other by ARP. With offload, as [`PacketIo::has_offload`].
///
/// The kernel sees the packets too. It ignores them, because they are for an address that it does not have, unless it forwards
/// (`net.ipv4.ip_forward`): then `iptables -t raw -I PREROUTING -d ADDRESS -j DROP` keeps them from it.
///
/// IPv6 packets go to the same router. There is no neighbour discovery, so the router needs a static entry for IPv6 addresses of the
/// network.
#[derive(Debug)]
pub struct EthernetIo {
    fd: AsyncFd<OwnedFd>,
    mtu: u16,
    link: LinkAddress,
    arp: Arp,
}

impl EthernetIo {
    /// Opens an interface, by its name in the network namespace of the calling thread, for a network with the address `own`.
    ///
    /// # Errors
    /// If there is no such interface, it is not Ethernet, or without root and the capability `CAP_NET_RAW`. Must be called in a
    /// tokio runtime.
    pub fn open(interface: &str, own: Ipv4Addr, router: Ipv4Addr) -> io::Result<EthernetIo> {
        EthernetIo::try_open(interface, own, router).map_err(|error| {
            let text = match Errno::from_io_error(&error) {
                Some(Errno::PERM | Errno::ACCESS) => "it needs root, or the capability CAP_NET_RAW".to_owned(),
                Some(Errno::NODEV) => "there is no such interface".to_owned(),
                Some(Errno::AFNOSUPPORT) => "it is not an Ethernet interface; use `FdIo` or `Device`".to_owned(),
                _ => error.to_string(),
            };
            io::Error::new(error.kind(), format!("interface {interface}: {text}"))
        })
    }

    fn try_open(interface: &str, own: Ipv4Addr, router: Ipv4Addr) -> io::Result<EthernetIo> {
        // Without a protocol it receives nothing until it is bound to the interface.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = request(&fd, interface, libc::SIOCGIFINDEX)?;
        let mtu = request(&fd, interface, libc::SIOCGIFMTU)?;
        let hardware = request(&fd, interface, libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has filled in the member for which it was asked; all members are plain data.
        let (index, mtu, hardware) =
            unsafe { (index.ifr_ifru.ifru_ifindex, mtu.ifr_ifru.ifru_mtu, hardware.ifr_ifru.ifru_hwaddr) };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            return Err(Errno::AFNOSUPPORT.into());
        }
        let link: LinkAddress = std::array::from_fn(|i| hardware.sa_data[i].cast_unsigned());
        enable(&fd, libc::PACKET_VNET_HDR)?;
        enable(&fd, libc::PACKET_IGNORE_OUTGOING)?;
        bind(&fd, index)?;
        let fd = register(fd, Interest::READABLE | Interest::ERROR)?;
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let io = EthernetIo { fd, mtu, link, arp: Arp::new((link, own), router) };
        io.ask()?;
        Ok(io)
    }

    /// Asks who the router is.
    fn ask(&self) -> io::Result<()> {
        self.write(&[0; VIRTIO], BROADCAST, TYPE_ARP, &self.arp.request())
    }

    fn write(&self, virtio: &[u8; VIRTIO], to: LinkAddress, kind: [u8; 2], packet: &[u8]) -> io::Result<()> {
        let mut header = [0; ETHERNET];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.link);
        header[12..].copy_from_slice(&kind);
        let parts = [IoSlice::new(virtio), IoSlice::new(&header), IoSlice::new(packet)];
        match retry_on_intr(|| writev(self.fd.get_ref(), &parts)) {
            Err(error @ (Errno::NODEV | Errno::NXIO)) => Err(removed(error)),
            _ => Ok(()), // a full queue, or an interface that is down: the packet is lost
        }
    }
}

impl PacketIo for EthernetIo {
    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn has_offload(&self) -> bool {
        true
    }

    fn has_descriptor(&self) -> bool {
        true
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let mut header = [0; ETHERNET];
            let (virtio, packet) = into.split_at_mut(VIRTIO);
            let mut parts = [IoSliceMut::new(virtio), IoSliceMut::new(&mut header), IoSliceMut::new(packet)];
            let len = match retry_on_intr(|| readv(self.fd.get_ref(), &mut parts)) {
                Ok(len) => len.saturating_sub(VIRTIO + ETHERNET),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::NETDOWN) => continue, // until it is up again
                Err(error) => return Err(removed(error)),
            };
            match [header[12], header[13]] {
                TYPE_IPV4 | TYPE_IPV6 if header.starts_with(&self.link) => {
                    shift(virtio, |position| position.saturating_sub(ETHERNET as u16));
                    return Ok(Some(VIRTIO + len));
                }
                TYPE_ARP => {
                    if let Some((to, answer)) = self.arp.on_message(&packet[..len]) {
                        self.write(&[0; VIRTIO], to, TYPE_ARP, &answer)?;
                    }
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let Some((virtio, packet)) = packet.split_first_chunk::<VIRTIO>() else { return Ok(()) };
        let Some(router) = self.arp.router() else {
            return self.ask(); // the packet is lost, as that of a router that has to ask
        };
        let kind = if packet.first().is_some_and(|first| first >> 4 == 6) { TYPE_IPV6 } else { TYPE_IPV4 };
        let mut virtio = *virtio;
        shift(&mut virtio, |position| position + ETHERNET as u16);
        self.write(&virtio, router, kind, packet)
    }

    async fn readable(&mut self) -> io::Result<()> {
        self.fd.ready(Interest::READABLE | Interest::ERROR).await?.clear_ready();
        Ok(())
    }

    fn wait(&mut self, time: std::time::Duration) {
        wait(self.fd.get_ref(), time);
    }
}

/// Changes the positions in a virtio header, if it has any.
fn shift(virtio: &mut [u8], change: impl Fn(u16) -> u16) {
    for at in POSITIONS {
        let position = u16::from_ne_bytes([virtio[at], virtio[at + 1]]);
        if position > 0 {
            virtio[at..at + 2].copy_from_slice(&change(position).to_ne_bytes());
        }
    }
}

fn removed(error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("the Ethernet interface can no longer be used: {error}"))
}

/// Asks the kernel about an interface.
fn request(fd: &OwnedFd, interface: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    let name = interface.as_bytes();
    // SAFETY: zeros are a valid value of this structure of plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Errno::NODEV.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    // SAFETY: these requests read and write an `ifreq`, which lives until the call returns.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut request) };
    if done == 0 { Ok(request) } else { Err(io::Error::last_os_error()) }
}

/// Switches on an option of a packet socket.
fn enable(fd: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (value, len) = ((&raw const on).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes, the size of the number, which lives until the call returns.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, value, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Binds the socket to an interface, for all protocols.
fn bind(fd: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let (from, len) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes, the size of the structure, which lives until the call returns.
    let done = unsafe { libc::bind(fd.as_raw_fd(), from, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
