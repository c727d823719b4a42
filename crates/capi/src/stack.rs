//! The stack: packets, time and events.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names")]

use std::ffi::c_char;
use std::net::IpAddr;

use reknit_stack::{Event, Options, SocketOptions, Stack};
use reknit_units::Instant;

use crate::call::{Failure, Host, buffer, bytes, free, guarded, list, on_host, run, store, text};

/// `reknit_event` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CEvent {
    kind: i32,
    id: u64,
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_stack_new(addresses: *const *const c_char, count: usize, mtu: u16, now: u64) -> *mut Host {
    guarded(
        |_| std::ptr::null_mut(),
        || {
            if addresses.is_null() || count == 0 {
                return Err(Failure::invalid("a stack needs at least one address"));
            }
            if !(576..=65_535).contains(&mtu) {
                return Err(Failure::invalid(format!("mtu = {mtu}: must be from 576 to 65535 bytes")));
            }
            let addresses = list(addresses, count)?;
            let parse = |pointer: &*const c_char| {
                let text = text(*pointer, "address")?;
                text.parse::<IpAddr>()
                    .map_err(|_| Failure::invalid(format!("`{text}` is not an IP address; write 10.0.0.2 or fd00::2")))
            };
            let addresses = addresses.iter().map(parse).collect::<Result<_, _>>()?;
            let mut secret = [0; 32];
            let random = std::fs::File::open("/dev/urandom");
            random
                .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut secret))
                .map_err(|error| Failure::invalid(format!("/dev/urandom: {error}")))?;
            let options = Options { addresses, mtu, ..Options::default() };
            let stack = Stack::new(Instant::from_nanos(now), options, secret);
            let host = Host { stack, options: SocketOptions::default(), packet: Vec::new(), is_broken: false };
            Ok(Box::into_raw(Box::new(host)))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_stack_free(stack: *mut Host) {
    guarded(
        |_| (),
        || {
            if !stack.is_null() {
                free(stack);
            }
            Ok(())
        },
    );
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_input(stack: *mut Host, now: u64, packet: *const u8, len: usize) -> i32 {
    run(stack, |host| {
        host.stack.on_packet(Instant::from_nanos(now), bytes(packet, len)?);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_output(stack: *mut Host, now: u64, packet: *mut u8, size: usize) -> isize {
    on_host(
        stack,
        |code| code as isize,
        |host| {
            let into = buffer(packet, size)?;
            while host.stack.poll_packet(Instant::from_nanos(now), &mut host.packet) {
                if let Some(into) = into.get_mut(..host.packet.len()) {
                    into.copy_from_slice(&host.packet);
                    return Ok(host.packet.len().cast_signed());
                }
            }
            Ok(0)
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_deadline(stack: *mut Host) -> u64 {
    on_host(stack, |_| u64::MAX, |host| Ok(host.stack.deadline().as_nanos()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_timer(stack: *mut Host, now: u64) -> i32 {
    run(stack, |host| {
        host.stack.on_timer(Instant::from_nanos(now));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_next_event(stack: *mut Host, event: *mut CEvent) -> i32 {
    on_host(
        stack,
        |code| code,
        |host| {
            let Some(next) = host.stack.next_event() else { return Ok(0) };
            let (kind, id) = match next {
                Event::Requested => unreachable!("C has no forwarding"),
                Event::Acceptable(id) => (1, id.to_bits()),
                Event::Connected(id) => (2, id.to_bits()),
                Event::Readable(id) => (3, id.to_bits()),
                Event::Writable(id) => (4, id.to_bits()),
                Event::Closed(id) => (5, id.to_bits()),
                Event::Delivered(id) => (6, id.to_bits()),
                Event::UdpReadable(id) => (7, id.to_bits()),
                Event::UdpWritable(id) => (8, id.to_bits()),
            };
            store(event, CEvent { kind, id })?;
            Ok(1)
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_finish_all(stack: *mut Host, now: u64) -> i32 {
    run(stack, |host| {
        host.stack.finish_all(Instant::from_nanos(now));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_is_delivering(stack: *mut Host) -> i32 {
    on_host(stack, |code| code, |host| Ok(i32::from(host.stack.is_delivering())))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_undelivered(stack: *mut Host, connections: *mut u64, bytes: *mut u64) -> i32 {
    run(stack, |host| {
        let undelivered = host.stack.undelivered().and(&host.stack.counters().undelivered);
        store(connections, undelivered.connections)?;
        store(bytes, undelivered.bytes)
    })
}
