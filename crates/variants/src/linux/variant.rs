//! # Linux
//!
//! Linux 6.18 with its default congestion control, as a sender and as a receiver. The fq packet scheduler is not used,
//! so nothing is paced. Documentation: `ip-sysctl`; RFC 8985, RFC 9937, RFC 9438, RFC 5682, RFC 3522, RFC 2883, RFC
//! 6298.
//!
//! **What it changes.** Everything that the other variants change one at a time: loss detection by time
//! (`linux-rack`), a learned degree of reordering (`linux-reordering`), undo by DSACK, timestamps and F-RTO
//! (`linux-undo`, `linux-frto`), proportional rate reduction (`linux-prr`), CUBIC with HyStart (`linux-cubic`), a
//! timeout of SRTT plus at least 200 ms (`linux-rto`), transmission limited by the data in flight (`linux-in-flight`),
//! a send buffer that grows with the window (`linux-send-buffer`), quick ACKs and compressed SACKs (`linux-acks`), a
//! receive window that grows with what the application reads (`linux-receive-buffer`).
//!
//! **Rules.** Each algorithm has its own, with the section of the RFC or with what was observed of the kernel.
//!
//! **Departures.** Those of its algorithms.
//!
//! **Status.** Partial: the kernel changes from version to version, and this is a model of one, compared with its
//! traces.

use reknit_tcp::Config as Tcp;
use reknit_tcp::config::Paws;
use reknit_units::Duration;

use super::{acks, cubic, frto, prr, rack, receive_buffer, reduction, reordering, rto, send_buffer, transmit, undo};
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "linux",
    aliases: &["linux-cubic", "cubic"],
    summary: "Linux 6.18: RACK, learned reordering, undo by DSACK, timestamps and F-RTO, PRR, CUBIC",
    source: "Linux 6.18; RFC 8985, RFC 9937, RFC 9438, RFC 5682, RFC 3522",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, timestamps",
    status: Status::Partial,
    page: &pages::LINUX_VARIANT,
    compose: || Composition {
        loss_detector: rack::LinuxRackConfig::default().into(),
        dup_thresh: reordering::LinuxReorderingConfig::default().into(),
        spurious_detectors: vec![undo::LinuxUndoConfig::default().into()],
        spurious_response: undo::LinuxUndoResponseConfig::default().into(),
        loss_response: reduction::LinuxReductionConfig::default().into(),
        fast_recovery: prr::LinuxPrrConfig::default().into(),
        timeout_recovery: frto::LinuxFrtoConfig::default().into(),
        rto_estimator: rto::LinuxRtoConfig::default().into(),
        limited_transmit: transmit::LinuxInFlightConfig::default().into(),
        congestion_control: cubic::LinuxCubicConfig::default().into(),
        send_buffers: vec![send_buffer::LinuxSendBufferConfig::default().into()],
        ack_policy: acks::LinuxAcksConfig::default().into(),
        receive_buffers: vec![receive_buffer::LinuxReceiveBufferConfig::default().into()],
        options: Some(options),
        ..Composition::default()
    },
};

/// The bounds of the timer are those of the estimator (`TCP_RTO_MAX`), and bursts are not limited.
fn options(tcp: &mut Tcp) {
    tcp.min_rto = Duration::from_millis(200);
    tcp.max_rto = Duration::from_secs(120);
    tcp.max_burst = None;
    tcp.paws = Paws::Linux;
    tcp.limit_dsacks = true;
}
