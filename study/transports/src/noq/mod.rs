//! noq (`noq-proto`), a fork of quinn: QUIC with CUBIC that undoes spurious reductions.

mod calls;
mod cipher;
#[expect(clippy::duplicate_mod, reason = "quinn and its fork have the same functions with different types")]
#[path = "../quic/end.rs"]
mod end;

use std::sync::Arc;

use noq_proto as proto;
use noq_proto::TransportConfig;
use reknit_sim::Transport;

use crate::configured::transport;

/// noq as it comes.
pub fn all() -> Vec<Arc<dyn Transport>> {
    let about = format!("noq-proto {}: CUBIC, default loss detection", env!("VERSION_NOQ_PROTO"));
    vec![transport("noq", about, |opening| end::open(opening, TransportConfig::default()))]
}
