//! PPP (RFC 1661, RFC 1662), also with compressed address, control and protocol fields.

use super::Skipped;
use super::layer::{Layer, Next};
use super::rest::Cursor;

const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
const BRIDGED_ETHERNET: u8 = 1;
/// TCP whose headers are compressed (RFC 1144): to read it takes all packets since the last that is not.
pub(super) const COMPRESSED: Skipped = Skipped::Protocol("PPP with TCP header compression");

/// A PPP frame.
pub(super) fn read(frame: Cursor<'_>) -> Next<'_> {
    let frame = if frame.bytes.starts_with(&ADDRESS_AND_CONTROL) { frame.after(2)? } else { frame };
    // The last byte of a protocol number is odd, the others are even: a compressed one has only that byte.
    let first = frame.u8(0)?;
    let (protocol, rest) =
        if first & 1 == 1 { (u16::from(first), frame.after(1)?) } else { (frame.u16(0)?, frame.after(2)?) };
    match protocol {
        0x0021 | 0x0057 => Ok((Layer::Ip, rest)),
        0x0281 | 0x0283 => Ok((Layer::Mpls, rest)),
        0x003d => multilink(rest),
        0x0031 => {
            let kind = rest.u8(1)?;
            if kind != BRIDGED_ETHERNET {
                return Err(Skipped::Protocol("PPP bridging"));
            }
            Ok((Layer::Ethernet, rest.after(2)?))
        }
        0x00fd | 0x00fb => Err(Skipped::Protocol("PPP with compression")),
        0x0053 | 0x0055 => Err(Skipped::Protocol("PPP with encryption")),
        0x002d | 0x002f => Err(COMPRESSED),
        0x8000.. => Err(Skipped::Protocol("PPP control protocols")),
        _ => Err(Skipped::Protocol("PPP with another protocol")),
    }
}

/// A frame of several links (RFC 1990), if it is not a fragment.
fn multilink(rest: Cursor<'_>) -> Next<'_> {
    const WHOLE: u8 = 0xc0;
    if rest.u8(0)? & WHOLE != WHOLE {
        return Err(Skipped::Protocol("fragments of multilink PPP"));
    }
    Ok((Layer::Ppp, rest.after(4)?))
}
