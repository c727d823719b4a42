//! The TUN device.

use std::io;
use std::net::IpAddr;
use std::process::Command;

use rustix::io::Errno;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::{FdIo, PacketIo};

/// The kernel's way to TUN devices.
const NODE: &str = "/dev/net/tun";

/// A TUN device to the kernel. It is removed when it is dropped.
pub struct Device(FdIo<SyncDevice>);

impl Device {
    /// Creates a device in the network namespace of the calling thread. `kernel` is the kernel's address on it. With
    /// `offload`, packets to and from the kernel may be several segments in one (TSO, GRO), without checksums.
    ///
    /// # Errors
    /// If the device cannot be created: without TUN, without permission, or if the name is in use. Must be called in a tokio
    /// runtime.
    pub fn create(name: &str, kernel: IpAddr, prefix: u8, mtu: u16, offload: bool) -> io::Result<Device> {
        crate::builder::check_runtime()?;
        if !std::fs::exists(NODE)? {
            return Err(explain(name, &Errno::NOENT.into())); // tun-rs would make the node
        }
        let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(offload);
        let builder = match kernel {
            IpAddr::V4(kernel) => builder.ipv4(kernel, prefix, None),
            IpAddr::V6(kernel) => builder.ipv6(kernel, prefix),
        };
        let device = builder.build_sync().map_err(|error| explain(name, &error))?;
        Device::adopt(device, mtu, offload)
    }

    /// Gives the kernel a further address on the device. One of IPv4 is added by the program `ip`.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn add_address(&self, kernel: IpAddr, prefix: u8) -> io::Result<()> {
        let added = match kernel {
            IpAddr::V4(_) => self.add_with_ip(&format!("{kernel}/{prefix}")),
            IpAddr::V6(kernel) => self.tun().add_address_v6(kernel, prefix),
        };
        added.map_err(|error| {
            io::Error::new(error.kind(), format!("TUN device: address {kernel}/{prefix}: {}", text(&error)))
        })
    }

    fn add_with_ip(&self, address: &str) -> io::Result<()> {
        let name = self.tun().name()?;
        let output = Command::new("ip").args(["address", "add", address, "dev", &name]).output();
        let output = output.map_err(|error| io::Error::new(error.kind(), format!("`ip` cannot be run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(io::Error::other(text.trim().to_owned())) }
    }

    /// Uses a device that exists. `offload` must be as it was created.
    ///
    /// # Errors
    /// If there is no tokio runtime, or the device cannot be polled.
    pub fn adopt(device: SyncDevice, mtu: u16, offload: bool) -> io::Result<Device> {
        device.set_nonblocking(true)?;
        Ok(Device(FdIo::new(device, mtu, offload)?))
    }

    /// The device itself, to add addresses or routes.
    pub fn tun(&self) -> &SyncDevice {
        self.0.get_ref()
    }
}

impl PacketIo for Device {
    fn mtu(&self) -> u16 {
        self.0.mtu()
    }

    fn has_offload(&self) -> bool {
        self.0.has_offload()
    }

    fn has_descriptor(&self) -> bool {
        true
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.0.recv(into).map_err(|error| lost(&error))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map_err(|error| lost(&error))
    }

    async fn readable(&mut self) -> io::Result<()> {
        self.0.readable().await.map_err(|error| lost(&error))
    }

    fn wait(&mut self, time: std::time::Duration) {
        self.0.wait(time);
    }
}

/// Why a device can no longer be used.
fn lost(error: &io::Error) -> io::Error {
    let text = match Errno::from_io_error(error) {
        Some(Errno::BADFD) => "the TUN device was removed; start the network again".to_owned(),
        _ => format!("TUN device: {}", text(error)),
    };
    io::Error::new(error.kind(), text)
}

/// What to do about a device that cannot be created.
fn explain(name: &str, error: &io::Error) -> io::Error {
    let advice = match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => "; it needs root, or the capability CAP_NET_ADMIN",
        Some(Errno::BUSY) => "; another program uses the name: choose another one",
        Some(Errno::INVAL) => "; another device may have this name, or it has more than 15 bytes: choose another one",
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV) => {
            "; the kernel has no /dev/net/tun: load its module with `modprobe tun`"
        }
        _ => "",
    };
    io::Error::new(error.kind(), format!("TUN device {name}: {}{advice}", text(error)))
}

/// The error without its number, which tells users nothing.
fn text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_what_to_do() {
        for (error, advice) in [
            (Errno::PERM, "needs root"),
            (Errno::BUSY, "choose another"),
            (Errno::NODEV, "modprobe tun"),
            (Errno::INVAL, "15 bytes"),
        ] {
            let text = explain("tun7", &error.into()).to_string();
            assert!(
                text.starts_with("TUN device tun7: ") && text.contains(advice) && !text.contains("os error"),
                "{text}"
            );
        }
    }
}
