//! # gVisor
//!
//! The network stack of gVisor (netstack), which Tailscale and other tunnels use, with its defaults, as a sender: its source,
//! `pkg/tcpip/transport/tcp`, of August 2026 (`3c5eee1`). Cheng et al.: draft-ietf-tcpm-rack-08, 2020. For `gvisor+undo`: its
//! pull request 14458, which was open in September 2026; RFC 3522, RFC 4015.
//!
//! **What it changes.** Losses are detected by RACK as in the draft of RFC 8985, with a tail loss probe. Around it is less than
//! in `rack`: no reduction is undone, and no new data is sent while a gap is open, until a loss is detected. `gvisor+undo`
//! undoes a reduction that timestamps show to be spurious.
//!
//! **State.** That of `rack`.
//!
//! **Rules.** Those of `rack`, with the function that each difference is from.
//! - The minimum RTT is taken over the whole connection (here: over a day; `rackControl.update`).
//! - A reordering window that DSACKs have widened falls back after 16 ACKs for new data, not after 16 recoveries
//!   (`handleRcvdSegment` calls `exitRecovery` on each). So it is rarely wider than a quarter of the minimum RTT.
//! - The peer may delay an ACK by 200 ms: a probe for a single segment waits that much longer (`schedulePTO`).
//! - ssthresh is half of FlightSize (`reduceSlowStartThreshold`), and cwnd is ssthresh during recovery and after it
//!   (`enterRecovery`, `leaveRecovery`). The window grows as in Reno.
//! - Outside recovery, SACKed segments count as outstanding (`SetPipe`): no limited transmit.
//! - The timeout is at least 200 ms, at most 120 s. Bursts are not limited. Timestamps are used.
//! - `gvisor+undo`: Eifel detection, which `detectSpuriousRecovery` already has for its statistics, and the response of RFC
//!   4015.
//!
//! **Departures.** Outside recovery, gVisor subtracts a segment that was SACKed from what is outstanding only when everything has
//! been acknowledged; until then it sends less and less. That is not modelled, so on a path where most packets are reordered
//! by little (`leo`) the variant is about ten times as fast. In recovery, cwnd is three segments larger there. After a timeout, everything
//! that is not SACKed anew is sent again there; here only what RACK considers lost. RTT samples are weighted as in RFC 7323
//! appendix G there, as in RFC 6298 here. The pull request sets ssthresh to the old cwnd when recovery ends; here it becomes the
//! larger of the old FlightSize and ssthresh as soon as the ACK arrives that shows it.
//!
//! **Status.** Partial: written from the source, and compared with gVisor live: its goodput on eight of nine paths is half to all
//! of that of gVisor.

use reknit_tcp::Config as Tcp;
use reknit_units::Duration;

use super::rack::{PersistCounts, RackConfig};
use crate::algorithms::{LimitedTransmit, SpuriousResponse};
use crate::composition::Composition;
use crate::pages;
use crate::undo::eifel;
use crate::variant::{ChangedEnd, Status, Variant};

pub(crate) const GVISOR: Variant = Variant {
    name: "gvisor",
    aliases: &["netstack"],
    summary: "gVisor's stack: RACK without undo and without new data while a gap is open",
    source: "gVisor 2026-08; draft-ietf-tcpm-rack-08",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK to adapt",
    status: Status::Partial,
    page: &pages::TIME_GVISOR,
    compose: composition,
};

pub(crate) const GVISOR_UNDO: Variant = Variant {
    name: "gvisor+undo",
    aliases: &[],
    summary: "gvisor with the response of RFC 4015 to reductions that timestamps show to be spurious",
    source: "gVisor pull request 14458; RFC 3522, RFC 4015",
    peer_needs: "SACK, timestamps, DSACK to adapt",
    compose: || Composition {
        spurious_detectors: vec![eifel::EifelConfig::default().into()],
        spurious_response: SpuriousResponse::Rfc4015 {},
        ..composition()
    },
    ..GVISOR
};

fn composition() -> Composition {
    Composition {
        loss_detector: RackConfig {
            max_ack_delay: Duration::from_millis(200),
            persist_counts: PersistCounts::Acks,
            min_rtt_window: Duration::from_secs(86_400),
            ..RackConfig::default()
        }
        .into(),
        limited_transmit: LimitedTransmit::Off {},
        timestamps: Some(true),
        options: Some(options),
        ..Composition::default()
    }
}

fn options(tcp: &mut Tcp) {
    tcp.min_rto = Duration::from_millis(200);
    tcp.max_rto = Duration::from_secs(120);
    tcp.max_burst = None;
}
