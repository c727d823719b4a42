//! # Linux
//!
//! Linux 6.18 with its default congestion control, as a sender and as a receiver. The fq packet scheduler is not used,
//! so nothing is paced. Documentation: `ip-sysctl`; RFC 8985, RFC 9937, RFC 9438, RFC 5682, RFC 3522, RFC 2883, RFC
//! 6298.
//!
//! **What it changes.** Everything that the other variants change one at a time: loss detection by time
//! (`linux/rack.rs`), a learned degree of reordering (`linux/reordering.rs`), undo by DSACK, timestamps and F-RTO
//! (`linux/undo.rs`, `linux/frto.rs`), proportional rate reduction (`linux/prr.rs`), CUBIC with HyStart
//! (`linux/cubic.rs`), a timeout of SRTT plus at least 200 ms (`linux/rto.rs`), transmission limited by the data in
//! flight (`linux/transmit.rs`), a send buffer that grows with the window (`linux/send_buffer.rs`), quick ACKs and compressed SACKs (`linux/acks.rs`), a receive window that grows with what
//! the application reads (`linux/receive_buffer.rs`).
//!
//! **Rules.** Each file lists its own, with the section of the RFC or with what was observed of the kernel.
//!
//! **Departures.** Each file lists its own.
//!
//! **Reproduces.** `kernel:cubic` of the testbed, on random paths.
//!
//! **Status.** Partial: the kernel changes from version to version, and this is a model of one, compared with its
//! traces.

use std::sync::Arc;

use reknit_tcp::Config as Tcp;
use reknit_tcp::config::Paws;
use reknit_units::Duration;

use super::{acks, cubic, frto, prr, rack, receive_buffer, reduction, reordering, rto, send_buffer, transmit, undo};
use crate::composition::Composition;
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "linux",
    aliases: &["linux-cubic"],
    summary: "Linux 6.18: RACK, learned reordering, undo by DSACK, timestamps and F-RTO, PRR, CUBIC",
    source: "Linux 6.18; RFC 8985, RFC 9937, RFC 9438, RFC 5682, RFC 3522",
    side: Side::Both,
    peer_needs: "SACK, DSACK, timestamps",
    status: Status::Partial,
    compose: || Composition {
        loss_detector: Arc::new(rack::Config::default()),
        dup_thresh: Arc::new(reordering::Config::default()),
        spurious_detectors: vec![Arc::new(undo::Config::default())],
        spurious_response: Arc::new(undo::ResponseConfig::default()),
        loss_response: Arc::new(reduction::Config::default()),
        fast_recovery: Arc::new(prr::Config::default()),
        timeout_recovery: Arc::new(frto::Config::default()),
        rto_estimator: Arc::new(rto::Config::default()),
        limited_transmit: Arc::new(transmit::Config::default()),
        congestion_control: Arc::new(cubic::Config::default()),
        send_buffers: vec![Arc::new(send_buffer::Config::default())],
        ack_policy: Arc::new(acks::Config::default()),
        receive_buffers: vec![Arc::new(receive_buffer::Config::default())],
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
