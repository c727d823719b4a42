//! Sockets and listeners.
#![expect(unsafe_code, reason = "functions for C have names of their own")]

use std::ffi::c_char;
use std::net::SocketAddr;

use reknit_stack::{Error, ListenerId, Shutdown, SocketId};
use reknit_units::{Duration, Instant};

use crate::call::{Failure, Host, buffer, bytes, on_host, run, store, text};

/// `reknit_info` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CInfo {
    acknowledged: u64,
    unacknowledged: u64,
    readable: u64,
    cwnd: u64,
    ssthresh: u64,
    flight_size: u64,
    snd_wnd: u64,
    srtt: u64,
    min_rtt: u64,
    rto: u64,
    segments_sent: u64,
    retransmissions: u64,
    spurious_retransmissions: u64,
    timeouts: u64,
    sacked: u32,
    lost: u32,
    backoff: u32,
    segment_size: u32,
}

fn address(pointer: *const c_char) -> Result<SocketAddr, Failure> {
    let text = text(pointer, "address")?;
    text.parse().map_err(|_| {
        Failure::invalid(format!("`{text}` is not an address with a port; write 10.0.0.2:80 or [fd00::2]:80"))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_listen(stack: *mut Host, local: *const c_char, backlog: usize) -> u64 {
    on_host(
        stack,
        |_| 0,
        |host| {
            let options = host.listen_options(backlog);
            Ok(host.stack.listen(address(local)?, &options)?.to_bits())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_unlisten(stack: *mut Host, now: u64, listener: u64) -> i32 {
    run(stack, |host| {
        host.stack.unlisten(Instant::from_nanos(now), ListenerId::from_bits(listener));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_accept(stack: *mut Host, listener: u64) -> u64 {
    on_host(
        stack,
        |_| 0,
        |host| {
            let id = host.stack.accept(ListenerId::from_bits(listener)).ok_or(Error::WouldBlock)?;
            Ok(id.to_bits())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_connect(stack: *mut Host, now: u64, remote: *const c_char) -> u64 {
    on_host(
        stack,
        |_| 0,
        |host| {
            let id = host.stack.connect(Instant::from_nanos(now), None, address(remote)?, &host.options)?;
            Ok(id.to_bits())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_read(stack: *mut Host, now: u64, socket: u64, into: *mut u8, len: usize) -> isize {
    on_host(
        stack,
        |code| code as isize,
        |host| {
            let n = host.stack.read(Instant::from_nanos(now), SocketId::from_bits(socket), buffer(into, len)?)?;
            Ok(n.cast_signed())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_write(stack: *mut Host, socket: u64, from: *const u8, len: usize) -> isize {
    on_host(
        stack,
        |code| code as isize,
        |host| {
            let n = host.stack.write(SocketId::from_bits(socket), bytes(from, len)?)?;
            Ok(n.cast_signed())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_finish(stack: *mut Host, now: u64, socket: u64) -> i32 {
    run(stack, |host| {
        host.stack.shutdown(Instant::from_nanos(now), SocketId::from_bits(socket), Shutdown::Write)?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_close(stack: *mut Host, now: u64, socket: u64) -> i32 {
    run(stack, |host| {
        host.stack.close(Instant::from_nanos(now), SocketId::from_bits(socket));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_abort(stack: *mut Host, now: u64, socket: u64) -> i32 {
    run(stack, |host| {
        host.stack.abort(Instant::from_nanos(now), SocketId::from_bits(socket));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_get_info(stack: *mut Host, now: u64, socket: u64, into: *mut CInfo) -> i32 {
    run(stack, |host| {
        let now = Instant::from_nanos(now);
        let found = host.stack.info(now, SocketId::from_bits(socket)).ok_or(Error::NoSocket)?;
        let nanos = |time: Option<Duration>| time.map_or(0, Duration::as_nanos);
        store(
            into,
            CInfo {
                acknowledged: found.tcp.acknowledged,
                unacknowledged: found.unacknowledged.0,
                readable: found.readable.0,
                cwnd: found.tcp.cwnd.0,
                ssthresh: found.tcp.ssthresh.map_or(u64::MAX, |ssthresh| ssthresh.0),
                flight_size: found.tcp.flight_size.0,
                snd_wnd: found.tcp.snd_wnd.0,
                srtt: nanos(found.tcp.srtt),
                min_rtt: nanos(found.tcp.min_rtt),
                rto: found.tcp.rto.as_nanos(),
                segments_sent: found.sent.sent.total(),
                retransmissions: found.sent.sent.retransmissions(),
                spurious_retransmissions: found.sent.spurious_retransmissions,
                timeouts: found.sent.timeouts,
                sacked: found.tcp.sacked.0,
                lost: found.tcp.lost.0,
                backoff: found.tcp.backoff,
                segment_size: u32::from(found.segment_size),
            },
        )?;
        Ok(())
    })
}
