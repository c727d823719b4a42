//! UDP sockets.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names")]

use std::ffi::c_char;

use reknit_stack::{Error, UdpId, UdpOptions};

use crate::address::{address, put};
use crate::call::{Host, buffer, bytes, on_host, run};

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_bind(stack: *mut Host, local: *const c_char) -> u64 {
    on_host(stack, |_| 0, |host| Ok(host.stack.bind_udp(address(local)?, &UdpOptions::default())?.to_bits()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_connect(stack: *mut Host, socket: u64, remote: *const c_char) -> i32 {
    run(stack, |host| Ok(host.stack.connect_udp(UdpId::from_bits(socket), address(remote)?)?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_local(stack: *mut Host, socket: u64, into: *mut c_char, size: usize) -> i32 {
    run(stack, |host| put(host.stack.udp_address(UdpId::from_bits(socket)), into, size))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_send(
    stack: *mut Host,
    socket: u64,
    remote: *const c_char,
    from: *const u8,
    len: usize,
) -> i32 {
    run(stack, |host| {
        let (id, payload) = (UdpId::from_bits(socket), bytes(from, len)?);
        if remote.is_null() {
            return Ok(host.stack.send_udp_to_peer(id, payload)?);
        }
        Ok(host.stack.send_udp(id, None, address(remote)?, payload)?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_receive(
    stack: *mut Host,
    socket: u64,
    into: *mut u8,
    len: usize,
    remote: *mut c_char,
    size: usize,
) -> isize {
    on_host(
        stack,
        |code| code as isize,
        |host| {
            let received = host.stack.receive_udp(UdpId::from_bits(socket), buffer(into, len)?)?;
            if !remote.is_null() {
                put(Some(received.remote), remote, size)?;
            }
            Ok(received.len.cast_signed())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_udp_close(stack: *mut Host, socket: u64) -> i32 {
    run(stack, |host| {
        let id = UdpId::from_bits(socket);
        host.stack.udp_address(id).ok_or(Error::NoSocket)?;
        host.stack.close_udp(id);
        Ok(())
    })
}
