//! smoltcp with CUBIC, on its own TUN device.

use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::{CHUNK, DEVICE, FILL, KERNEL, Meter, STACK, Task, listening};

/// Bytes of each of its buffers: those of reknit-net have as many.
const BUFFER: usize = 4 << 20;

pub(crate) fn run(task: Task) -> io::Result<()> {
    let mut device = TunTapInterface::new(DEVICE, Medium::Ip)?;
    ip(&format!("address add {KERNEL}/24 dev {DEVICE}"))?;
    ip(&format!("link set {DEVICE} up"))?;
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| {
        let _ = addresses.push(IpCidr::new((*STACK.ip()).into(), 24)); // there is room for one
    });
    // The peer may be in another network.
    interface.routes_mut().add_default_ipv4_route(KERNEL).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Cubic);
    socket.listen(STACK.port()).map_err(|error| io::Error::other(error.to_string()))?;
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    let _accepting = listening()?;
    let (mut meter, mut chunk, mut bytes) = (None, vec![FILL; CHUNK], 0);
    loop {
        let now = Instant::now();
        let happened = interface.poll(now, &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        if meter.is_none() && socket.may_send() {
            meter = Some(Meter::start()?);
        }
        let mut transfer = || match task.sends {
            true => socket.send_slice(&chunk).unwrap_or(0),
            false => socket.recv_slice(&mut chunk).unwrap_or(0),
        };
        while let n @ 1.. = transfer() {
            bytes += n;
        }
        if let Some(meter) = meter.as_ref().filter(|meter| meter.began.elapsed() >= task.time) {
            return meter.print(bytes);
        }
        if happened == PollResult::None {
            let most = Duration::from_millis(100);
            let delay = interface.poll_delay(now, &sockets).map_or(most, |delay| delay.min(most));
            wait(device.as_raw_fd(), Some(delay))?;
        }
    }
}

fn ip(command: &str) -> io::Result<()> {
    let status = Command::new("ip").args(command.split(' ')).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("ip {command}: {status}"))) }
}
