//! # Sharing reordering state between connections
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §6 (proposed there
//! without details).
//!
//! **What it changes.** A connection begins with the reordering lengths and the FA ratio that the last connection to
//! the same peer had when it closed, so short connections need not learn them again. Windows and round-trip times are
//! not shared, so no connection becomes more aggressive.
//!
//! **State.** The reordering events and the ratio for each peer.
//!
//! **Rules.** When a connection closes, it keeps its state for the next one (`share` of `rr-tcp`). When one
//! opens, events older than their `life` are ignored; if none is left, the connection starts without shared state.
//!
//! **Departures.** The rules are our choice. The connection that closes last replaces the kept state.
//!
//! **Status.** Partial: the paper says what short connections in series might share (the histogram, the FA ratio, or both),
//! and why it is safe. How long it is kept, between which peers and which connection wins is our choice, and determines how
//! a connection starts.

use crate::composition::Composition;
use crate::pages;
use crate::threshold::rr::{dup_thresh, variants};
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "rr-share",
    aliases: &[],
    summary: "rr-taes whose reordering state is shared by successive connections to a peer",
    source: "RR-TCP, ICSI TR-02-006, section 6",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    page: &pages::THRESHOLD_RR_SHARE,
    compose: || Composition {
        dup_thresh: dup_thresh::RrTcpConfig { share: true, ..dup_thresh::RrTcpConfig::default() }.into(),
        ..variants::taes()
    },
};
