//! Converts errors of the stack to those of the standard library.

use std::io;

use reknit_stack::Error;

/// As the standard library reports it.
pub(crate) fn to_io(error: Error) -> io::Error {
    use reknit_tcp::CloseReason;
    let kind = match &error {
        Error::WouldBlock => io::ErrorKind::WouldBlock,
        Error::Ended(CloseReason::Refused) | Error::Refused => io::ErrorKind::ConnectionRefused,
        Error::Ended(CloseReason::Reset) => io::ErrorKind::ConnectionReset,
        Error::Ended(CloseReason::TimedOut) => io::ErrorKind::TimedOut,
        Error::Ended(CloseReason::Aborted | CloseReason::OptimisticAck) => io::ErrorKind::ConnectionAborted,
        Error::Ended(CloseReason::Finished) | Error::ShutDown => io::ErrorKind::BrokenPipe,
        Error::Unreachable => io::ErrorKind::HostUnreachable,
        Error::NoSocket | Error::NotConnected => io::ErrorKind::NotConnected,
        Error::InUse(_) => io::ErrorKind::AddrInUse,
        Error::NotLocal(..) | Error::NoPort(_) | Error::NoFamily(_) => io::ErrorKind::AddrNotAvailable,
        Error::NoDestination(_)
        | Error::Own(_)
        | Error::Config(_)
        | Error::NoPorts(..)
        | Error::NotBound(_)
        | Error::NoSource
        | Error::TooLong(..) => io::ErrorKind::InvalidInput,
        Error::NoForwarding | Error::ManyPorts => io::ErrorKind::Unsupported,
        Error::Full(_) => io::ErrorKind::OutOfMemory,
    };
    io::Error::new(kind, error)
}
