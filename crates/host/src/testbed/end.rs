//! The two kinds of live ends.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use reknit_units::Instant;
use reknit_wire::Decoded;

use super::emulator::Endpoint;
use super::engine_end::EngineEnd;
use super::kernel_end::KernelEnd;
use crate::namespace::MTU;

/// One end of the path.
pub(crate) enum TestHost {
    /// A kernel, behind its TUN device.
    Kernel(KernelEnd),
    /// The engine.
    Engine(Box<EngineEnd>),
}

impl Endpoint for TestHost {
    fn take(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool> {
        match self {
            TestHost::Kernel(kernel) => {
                packet.resize(usize::from(MTU) + 64, 0);
                let taken = kernel.take(packet)?;
                packet.truncate(taken.unwrap_or(0));
                Ok(taken.is_some())
            }
            TestHost::Engine(end) => end.poll(now, packet),
        }
    }

    fn put(&mut self, now: Instant, bytes: &[u8], decoded: Option<&Decoded<'_>>) -> io::Result<()> {
        match (self, decoded) {
            (TestHost::Kernel(kernel), _) => kernel.deliver(bytes)?,
            (TestHost::Engine(end), Some(decoded)) => end.on_packet(now, decoded),
            (TestHost::Engine(_), None) => {} // corrupted: treated as lost
        }
        Ok(())
    }

    fn put_icmp(&mut self, now: Instant, message: &[u8]) -> io::Result<()> {
        match self {
            TestHost::Kernel(kernel) => kernel.deliver(message)?,
            TestHost::Engine(end) => end.on_icmp(now, message),
        }
        Ok(())
    }

    fn deadline(&self) -> Instant {
        match self {
            TestHost::Kernel(_) => Instant::NEVER,
            TestHost::Engine(end) => end.deadline(),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            TestHost::Kernel(kernel) => {
                #[expect(unsafe_code, reason = "the device owns its descriptor")]
                // SAFETY: the descriptor is open for as long as the device, which the result borrows.
                let descriptor = unsafe { BorrowedFd::borrow_raw(kernel.device.as_raw_fd()) };
                Some(descriptor)
            }
            TestHost::Engine(_) => None,
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            TestHost::Kernel(end) => end.is_finished(),
            TestHost::Engine(end) => end.is_finished(),
        }
    }

    fn has_failed(&self) -> bool {
        match self {
            TestHost::Kernel(end) => end.has_failed(),
            TestHost::Engine(end) => end.failure().is_some(),
        }
    }
}
