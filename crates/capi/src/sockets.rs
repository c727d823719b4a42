//! Sockets and listeners.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names")]

use std::ffi::c_char;
use std::net::SocketAddr;

use reknit_stack::{Error, Linger, ListenerId, Shutdown, SocketId};
use reknit_units::{Bytes, Duration, Instant};

use crate::address::{address, put};
use crate::call::{Failure, Host, buffer, bytes, on_host, run, store};

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
    snd_una: u64,
    snd_nxt: u64,
    rttvar: u64,
    reordered: u64,
    busy: u64,
    by_peer_window: u64,
    by_send_buffer: u64,
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
    connect(stack, now, || Ok(None), remote)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_connect_from(stack: *mut Host, now: u64, local: *const c_char, remote: *const c_char) -> u64 {
    connect(stack, now, || address(local).map(Some), remote)
}

fn connect(
    stack: *mut Host,
    now: u64,
    local: impl FnOnce() -> Result<Option<SocketAddr>, Failure>,
    remote: *const c_char,
) -> u64 {
    on_host(
        stack,
        |_| 0,
        |host| {
            let id = host.stack.connect(Instant::from_nanos(now), local()?, address(remote)?, &host.options)?;
            Ok(id.to_bits())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_listening_on(stack: *mut Host, listener: u64, into: *mut c_char, size: usize) -> i32 {
    run(stack, |host| put(host.stack.listening_on(ListenerId::from_bits(listener)), into, size))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_local(stack: *mut Host, socket: u64, into: *mut c_char, size: usize) -> i32 {
    run(stack, |host| put(host.stack.addresses(SocketId::from_bits(socket)).map(|(local, _)| local), into, size))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_remote(stack: *mut Host, socket: u64, into: *mut c_char, size: usize) -> i32 {
    run(stack, |host| put(host.stack.addresses(SocketId::from_bits(socket)).map(|(_, remote)| remote), into, size))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_set_linger(stack: *mut Host, socket: u64, time: u64) -> i32 {
    let linger = if time == u64::MAX { Linger::Send } else { Linger::AtMost(Duration::from_nanos(time)) };
    run(stack, |host| Ok(host.stack.set_linger(SocketId::from_bits(socket), linger)?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_set_send_buffer(stack: *mut Host, socket: u64, most: usize) -> i32 {
    run(stack, |host| Ok(host.stack.set_send_buffer(SocketId::from_bits(socket), Bytes(most as u64))?))
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
pub extern "C" fn reknit_delivered(stack: *mut Host, socket: u64) -> i32 {
    run(stack, |host| Ok(host.stack.delivered(SocketId::from_bits(socket))?))
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
                rto: nanos(found.tcp.rto),
                segments_sent: found.sent.sent.total(),
                retransmissions: found.sent.sent.retransmissions(),
                spurious_retransmissions: found.sent.spurious_retransmissions,
                timeouts: found.sent.timeouts,
                sacked: found.tcp.sacked.0,
                lost: found.tcp.lost.0,
                backoff: found.tcp.backoff,
                segment_size: u32::from(found.segment_size),
                snd_una: found.tcp.snd_una,
                snd_nxt: found.tcp.snd_nxt,
                rttvar: nanos(found.tcp.rttvar),
                reordered: found.sent.reordering.iter().sum(),
                busy: found.times.busy.as_nanos(),
                by_peer_window: found.times.by_peer_window.as_nanos(),
                by_send_buffer: found.times.by_send_buffer.as_nanos(),
            },
        )?;
        Ok(())
    })
}
