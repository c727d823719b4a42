//! # BBR, version 1
//!
//! Cardwell, Cheng, Hassas Yeganeh, Jacobson: BBR Congestion Control. draft-cardwell-iccrg-bbr-congestion-control-00,
//! 2017; and what Linux 6.18 adds to it, as observed in traces.
//!
//! **What it changes.** Losses do not reduce the window. The sender estimates the bottleneck bandwidth (`BtlBw`, the
//! maximum delivery rate of ten rounds) and the propagation delay (`RTprop`, the minimum RTT of ten seconds). It paces
//! at a multiple of the bandwidth, and limits the data in flight to a multiple of the bandwidth-delay product.
//!
//! **State.** There are four modes. Startup doubles the rate each round until the estimated bandwidth has not grown for
//! three rounds. Drain empties the queue that Startup has built. ProbeBW is a cycle of eight phases of about a round
//! trip: one at 5/4 of the bandwidth, one at 3/4, and six at the bandwidth. ProbeRTT reduces the data in flight to four
//! segments for 200 ms, once the minimum RTT is ten seconds old.
//!
//! **Rules.** Those of the draft: bandwidth (§4.1.1), Startup and Drain (§4.3.2, §4.3.3), ProbeBW (§4.3.4), ProbeRTT
//! (§4.1.2, §4.3.5), pacing and window (§4.2); and, as in Linux, an allowance for aggregated ACKs, and a policer's rate.
//! Quantities are in segments, as in Linux. As there, duplicates that a DSACK reports count as delivered: the path has
//! carried them. Each retransmission is paced on its own (observed).
//!
//! **Departures.** The phase in which ProbeBW begins is computed from a seed and the bytes delivered. An expired
//! minimum RTT is replaced even by a sample that a delayed ACK may have lengthened; Linux skips such samples. The other
//! parts are those of `linux`, with a send buffer for three windows: loss detection, undo, F-RTO, timers and ACKs.
//!
//! **Status.** Faithful.

use super::Bbr1Config;
use crate::composition::Composition;
use crate::linux::{self, send_buffer};
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "bbr1",
    aliases: &["bbr-v1"],
    summary: "BBR version 1 as in Linux: follows estimates of bandwidth and delay, not losses",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00, Linux 6.18",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, timestamps",
    status: Status::Faithful,
    page: &pages::BBR_V1_VARIANT,
    compose: || Composition {
        congestion_control: Bbr1Config::default().into(),
        send_buffers: vec![
            send_buffer::LinuxSendBufferConfig { windows: 3, ..send_buffer::LinuxSendBufferConfig::default() }.into(),
        ],
        ..(linux::variant::VARIANT.compose)()
    },
};
