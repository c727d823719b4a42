//! A link with a smaller MTU than the ends': larger packets are dropped. The router sends an ICMP error (RFC 1191, RFC 8201),
//! or a firewall drops that error: a black hole. Packets are never fragmented.

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Instant};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::StreamId;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mtu {
    /// The largest packet that passes, IP header included.
    pub size: Bytes,
    /// The sender is told by ICMP.
    #[serde(default = "yes")]
    pub icmp: bool,
}

fn yes() -> bool {
    true
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = if self.icmp { "and their sender is told" } else { "without a message to their sender" };
        write!(f, "packets of more than {} are dropped, {told}", self.size)
    }
}

impl Parameters for Mtu {
    type Running = Limited;

    /// The smallest MTU of IPv4 is 68 (RFC 791).
    fn checked(self) -> Result<Mtu, KeyError> {
        match self.size.0 {
            68..=65_535 => Ok(self),
            _ => Err(KeyError::new("size", "must be from 68 B to 65535 B")),
        }
    }

    fn build(&self, _id: StreamId) -> Limited {
        Limited { mtu: u16::try_from(self.size.0).unwrap_or(u16::MAX), icmp: self.icmp }
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Mtu(self.clone()))
    }
}

#[derive(Debug)]
pub(crate) struct Limited {
    mtu: u16,
    icmp: bool,
}

impl Stage for Limited {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        if item.size > Bytes(u64::from(self.mtu)) {
            return StageOutcome::Drop(DropReason::TooBig { told: self.icmp.then_some(self.mtu) });
        }
        StageOutcome::Departure(at)
    }
}
