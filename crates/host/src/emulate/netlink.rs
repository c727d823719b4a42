//! Sets up devices and routes of a namespace (rtnetlink(7)), without external programs.

use std::io;
use std::os::fd::AsRawFd;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

// Numbers of linux/netlink.h, linux/rtnetlink.h and linux/if.h.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWROUTE: u16 = 24;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 2;
const HEADER_LEN: usize = 16;
const IFLA_TXQLEN: u16 = 13;
const IFF_UP: u32 = 1;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_HOST: u8 = 254;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;
const RTA_OIF: u16 = 4;

/// Brings up the loopback device of the calling thread's namespace.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    let index = if_nametoindex("lo")?;
    request(RTM_NEWLINK, 0, &link(index, IFF_UP))
}

/// Sets the length of the queue of `device` towards its driver, in packets. The older SIOCSIFTXQLEN is refused in a
/// user namespace.
pub(super) fn set_queue(device: &str, packets: u32) -> io::Result<()> {
    let mut body = link(if_nametoindex(device)?, 0);
    attribute(&mut body, IFLA_TXQLEN, packets);
    request(RTM_NEWLINK, 0, &body)
}

/// The body of a request that sets `flags` of a device.
fn link(index: u32, flags: u32) -> Vec<u8> {
    let mut body = vec![AddressFamily::Unspec as u8, 0, 0, 0];
    body.extend(index.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend(flags.to_ne_bytes()); // which flags change
    body
}

fn attribute(body: &mut Vec<u8>, kind: u16, value: u32) {
    body.extend(8_u16.to_ne_bytes()); // its length
    body.extend(kind.to_ne_bytes());
    body.extend(value.to_ne_bytes());
}

/// Routes everything that has no other route through `device`.
pub(super) fn default_through(device: &str, family: AddressFamily) -> io::Result<()> {
    default_route(device, family, RT_SCOPE_LINK, RTN_UNICAST)
}

/// Treats every address that has no other route as an address of this namespace.
pub(super) fn default_is_local(family: AddressFamily) -> io::Result<()> {
    default_route("lo", family, RT_SCOPE_HOST, RTN_LOCAL)
}

fn default_route(device: &str, family: AddressFamily, scope: u8, kind: u8) -> io::Result<()> {
    let index = if_nametoindex(device)?;
    // Destination and source of length 0, no type of service.
    let mut body = vec![family as u8, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, kind];
    body.extend(0_u32.to_ne_bytes());
    attribute(&mut body, RTA_OIF, index);
    request(RTM_NEWROUTE, NLM_F_CREATE, &body)
}

/// Sends one request and waits for the kernel's answer.
fn request(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut message = ((HEADER_LEN + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend([0; 8]); // sequence number and sender
    message.extend(body);
    send(netlink.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = [0; 1024];
    let n = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    match answer[..n] {
        [_, _, _, _, a, b, ..] if u16::from_ne_bytes([a, b]) == NLMSG_ERROR && n >= HEADER_LEN + 4 => {
            let code = answer[HEADER_LEN..HEADER_LEN + 4].try_into().map_or(0, i32::from_ne_bytes);
            if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
        }
        _ => Err(io::Error::other("the kernel did not answer a routing request")),
    }
}
