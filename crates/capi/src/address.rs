//! Addresses as text.

use std::ffi::c_char;
use std::net::SocketAddr;

use reknit_stack::Error;

use crate::call::{Failure, buffer, text};

/// An address from C.
pub(crate) fn address(pointer: *const c_char) -> Result<SocketAddr, Failure> {
    let text = text(pointer, "address")?;
    text.parse().map_err(|_| {
        Failure::invalid(format!("`{text}` is not an address with a port; write 10.0.0.2:80 or [fd00::2]:80"))
    })
}

/// Writes an address where C wants it.
pub(crate) fn put(address: Option<SocketAddr>, into: *mut c_char, size: usize) -> Result<(), Failure> {
    let text = address.ok_or(Error::NoSocket)?.to_string();
    let into = buffer(into.cast(), size)?;
    let Some((room, end)) = into.split_at_mut_checked(text.len()).filter(|(_, rest)| !rest.is_empty()) else {
        return Err(Failure::invalid(format!("size = {size}: the address needs {} bytes", text.len() + 1)));
    };
    room.copy_from_slice(text.as_bytes());
    end[0] = 0;
    Ok(())
}
