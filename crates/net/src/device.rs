//! The TUN device.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use rustix::io::{Errno, retry_on_intr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device to the kernel. It is removed when it is dropped.
pub struct Device {
    fd: AsyncFd<SyncDevice>,
    /// Packets have a virtio header, and may be up to 64 KiB long.
    pub(crate) offload: bool,
    pub(crate) mtu: u16,
}

impl Device {
    /// Creates a device in the network namespace of the calling thread. `kernel` is the kernel's address on it. With
    /// `offload`, the kernel takes and gives several segments as one packet, and computes no checksums.
    ///
    /// # Errors
    /// If the device cannot be created: without TUN, without the right to, or if the name is in use. It must be called in
    /// a tokio runtime.
    pub fn create(name: &str, kernel: IpAddr, prefix: u8, mtu: u16, offload: bool) -> io::Result<Device> {
        let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(offload);
        let builder = match kernel {
            IpAddr::V4(kernel) => builder.ipv4(kernel, prefix, None),
            IpAddr::V6(kernel) => builder.ipv6(kernel, prefix),
        };
        let device = builder.build_sync().map_err(|error| explain(name, &error))?;
        Device::adopt(device, mtu, offload)
    }

    /// Uses a device that exists. `offload` must be as it was created.
    ///
    /// # Errors
    /// If there is no tokio runtime, or the device cannot be polled.
    pub fn adopt(device: SyncDevice, mtu: u16, offload: bool) -> io::Result<Device> {
        device.set_nonblocking(true)?;
        // A device that was removed is not readable: it reports an error.
        Ok(Device { fd: register(device, Interest::READABLE | Interest::ERROR)?, offload, mtu })
    }

    /// The device itself, to add addresses or routes.
    pub fn tun(&self) -> &SyncDevice {
        self.fd.get_ref()
    }

    /// Reads a packet. None if there is none now.
    pub(crate) fn take(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match retry_on_intr(|| rustix::io::read(self.fd.get_ref(), &mut *into)) {
            Ok(n) => Ok(Some(n)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet. One that the kernel does not take is lost, as in any network; it is an error only if the device is
    /// gone.
    pub(crate) fn put(&self, packet: &[u8]) -> io::Result<()> {
        match retry_on_intr(|| rustix::io::write(self.fd.get_ref(), packet)) {
            Err(Errno::BADFD) => Err(Errno::BADFD.into()),
            _ => Ok(()),
        }
    }

    /// Returns when there may be a packet, or the device is gone.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.fd.ready(Interest::READABLE | Interest::ERROR).await?.clear_ready();
        Ok(())
    }
}

/// Lets the runtime wait for what owns a descriptor: a device, or a timer.
pub(crate) fn register<T: AsRawFd>(owner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(unsafe_code, reason = "tokio cannot check who owns a descriptor")]
    // SAFETY: `owner` owns its descriptor, keeps the same one, and is only dropped with the registration.
    Ok(unsafe { AsyncFd::register_with_interest(owner, interest) }?)
}

/// Why a device can no longer be used.
pub(crate) fn lost(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::BADFD) => "the TUN device was removed; start the network again".to_owned(),
        _ => format!("TUN device: {error}"),
    }
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
    io::Error::new(error.kind(), format!("TUN device {name}: {error}{advice}"))
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
                text.starts_with("TUN device tun7: ") && text.contains(advice) && text.lines().count() == 1,
                "{text}"
            );
        }
    }
}
