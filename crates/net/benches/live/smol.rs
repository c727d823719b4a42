//! smoltcp as the subject.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant as Time;
use smoltcp::wire::{HardwareAddress, IpCidr};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::links::{PEER, SUBJECT};
use crate::peer::CHUNK;
use crate::rate;

/// Buffers of one flow, and of each of many.
const LARGE: usize = 4 << 20;
const SMALL: usize = 64 << 10;

struct Tun(SyncDevice);
struct Received(Vec<u8>);
struct Sending<'a>(&'a SyncDevice);

impl Device for Tun {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Time) -> Option<(Received, Sending<'_>)> {
        let mut packet = vec![0; 1500];
        let n = self.0.recv(&mut packet).ok()?;
        packet.truncate(n);
        Some((Received(packet), Sending(&self.0)))
    }

    fn transmit(&mut self, _: Time) -> Option<Sending<'_>> {
        Some(Sending(&self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, 1500);
        capabilities
    }
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, act: F) -> R {
        act(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, act: F) -> R {
        let mut packet = vec![0; len];
        let result = act(&mut packet);
        // What the kernel does not take is lost, as in any network.
        let _ = self.0.send(&packet);
        result
    }
}

struct Host {
    interface: Interface,
    device: Tun,
    sockets: SocketSet<'static>,
}

impl Host {
    fn new() -> io::Result<Host> {
        let device = DeviceBuilder::new().name("smol0").mtu(1500).ipv4(PEER, 24, None).build_sync()?;
        device.set_nonblocking(true)?;
        let mut device = Tun(device);
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Time::now());
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(SUBJECT.into(), 24));
        });
        Ok(Host { interface, device, sockets: SocketSet::new(Vec::new()) })
    }

    fn connect(&mut self, to: SocketAddr, port: u16, buffer: usize) -> io::Result<SocketHandle> {
        let SocketAddr::V4(to) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        let buffer = || SocketBuffer::new(vec![0; buffer]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        socket.set_congestion_control(CongestionControl::Cubic); // by default it has none
        socket.connect(self.interface.context(), to, port).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(self.sockets.add(socket))
    }

    fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Carries packets; waits for them if nothing happens.
    fn turn(&mut self) -> io::Result<()> {
        let now = Time::now();
        let before = self.interface.poll(now, &mut self.device, &mut self.sockets);
        if before == smoltcp::iface::PollResult::None {
            let delay = self.interface.poll_delay(now, &self.sockets).map_or(1000, |delay| delay.total_millis());
            let mut descriptor = [PollFd::new(self.device.0.as_fd(), PollFlags::POLLIN)];
            poll(&mut descriptor, PollTimeout::from(delay.min(1000) as u16))?;
        }
        Ok(())
    }

    /// Sends the end and waits until everything is acknowledged.
    fn end(&mut self, handle: SocketHandle) -> io::Result<()> {
        self.socket(handle).close();
        while self.socket(handle).is_active() && self.socket(handle).send_queue() > 0 {
            self.turn()?;
        }
        for _ in 0..3 {
            self.turn()?;
        }
        Ok(())
    }
}

pub(crate) fn send(to: SocketAddr, time: Duration) -> io::Result<()> {
    let mut host = Host::new()?;
    let socket = host.connect(to, 50_000, LARGE)?;
    let (chunk, began, mut written) = (vec![1; CHUNK], Instant::now(), 0);
    while began.elapsed() < time {
        while host.socket(socket).can_send() {
            written += host.socket(socket).send_slice(&chunk[written % CHUNK..]).unwrap_or(0);
        }
        host.turn()?;
    }
    host.end(socket)
}

pub(crate) fn receive(from: SocketAddr, time: Duration) -> io::Result<f64> {
    let mut host = Host::new()?;
    let socket = host.connect(from, 50_000, LARGE)?;
    let (mut buffer, mut total, began) = (vec![0; CHUNK], 0, Instant::now());
    while began.elapsed() < time {
        while let Ok(n @ 1..) = host.socket(socket).recv_slice(&mut buffer) {
            total += n;
        }
        host.turn()?;
    }
    let rate = rate(total, began.elapsed());
    host.socket(socket).abort();
    host.turn()?;
    Ok(rate)
}

pub(crate) fn many(to: SocketAddr, flows: usize, each: usize) -> io::Result<()> {
    let mut host = Host::new()?;
    let mut left = Vec::new();
    for flow in 0..flows {
        left.push((host.connect(to, 20_000 + flow as u16, SMALL)?, each));
    }
    let chunk = vec![1; SMALL];
    while !left.is_empty() {
        for (handle, bytes) in &mut left {
            let socket = host.sockets.get_mut::<Socket<'_>>(*handle);
            if *bytes > 0 && socket.can_send() {
                *bytes -= socket.send_slice(&chunk[..SMALL.min(*bytes)]).unwrap_or(0);
            }
            if *bytes == 0 {
                socket.close();
            }
        }
        left.retain(|(handle, bytes)| {
            let socket = host.sockets.get::<Socket<'_>>(*handle);
            *bytes > 0 || socket.is_active() && socket.send_queue() > 0
        });
        host.turn()?;
    }
    for _ in 0..10 {
        host.turn()?;
    }
    Ok(())
}

pub(crate) fn ping(to: SocketAddr, trips: usize) -> io::Result<Vec<Duration>> {
    let mut host = Host::new()?;
    let socket = host.connect(to, 50_000, SMALL)?;
    while !host.socket(socket).may_send() {
        host.turn()?;
    }
    let (mut byte, mut times) = ([1; 1], Vec::with_capacity(trips));
    for _ in 0..trips {
        let began = Instant::now();
        host.socket(socket).send_slice(&byte).map_err(|error| io::Error::other(error.to_string()))?;
        while host.socket(socket).recv_slice(&mut byte) != Ok(1) {
            host.turn()?;
        }
        times.push(began.elapsed());
    }
    host.end(socket)?;
    Ok(times)
}
