//! What the RFCs specify for a TCP that does nothing about reordering, and what several families share.

pub mod aimd;
pub(crate) mod arrivals;
pub(crate) mod batches;
pub mod counted_pipe;
pub mod cubic;
pub mod delayed_ack;
pub(crate) mod delivery_clocked;
mod early_exit;
pub mod fixed_threshold;
#[cfg(test)]
pub(crate) mod given;
pub(crate) mod hystart;
mod hystart_plus;
pub(crate) mod lesson;
pub mod limited_transmit;
pub mod newreno;
pub mod no_timer;
pub mod progress;
pub mod prr;
pub mod reno;
pub(crate) mod reno_nt4;
pub mod respond_at_once;
pub mod rfc4015;
pub mod rfc6298;
pub mod sack;
pub(crate) mod silence;
pub mod spurious_response;
pub mod timeout;
pub mod undo_limit;

use std::sync::Arc;

use crate::composition::Composition;
use crate::part::Face;
use crate::rule::{Need, Rule};
use crate::seam::Seam;

impl Default for Composition {
    /// The base of every variant: RFC 6675 on top of RFC 5681, RFC 3042 and RFC 6298.
    fn default() -> Composition {
        Composition {
            loss_detector: Arc::new(sack::Config::default()),
            dup_thresh: Arc::new(fixed_threshold::Config::default()),
            postponements: Vec::new(),
            spurious_detectors: Vec::new(),
            undo_limit: Arc::new(undo_limit::Unlimited::default()),
            spurious_response: Arc::new(spurious_response::Config::None),
            loss_response: Arc::new(respond_at_once::Config::default()),
            fast_recovery: Arc::new(sack::PipeConfig::default()),
            timeout_recovery: Arc::new(timeout::Config::default()),
            rto_estimator: Arc::new(rfc6298::Config::default()),
            limited_transmit: Arc::new(limited_transmit::Config::Rfc3042),
            congestion_control: Arc::new(aimd::Config::default()),
            send_buffers: Vec::new(),
            ack_policy: Arc::new(delayed_ack::Config::default()),
            receive_buffers: Vec::new(),
            header_support: Vec::new(),
            sack: true,
            timestamps: None,
            without_sack: Some(newreno::without_sack),
            options: None,
        }
    }
}

impl Composition {
    /// Chooses again which parts replace those that need SACK; call it after parts were changed. A detector that works
    /// without SACK stays: it may have the only timer. If it is replaced, so is an estimator that leaves the timer to it.
    pub fn settle(&mut self) {
        let needs_sack =
            |face: Option<Face>| face.is_some_and(|face| face.kind.rules.iter().any(|rule| rule.needs(Need::Sack)));
        let depends_on = |rule: &Rule| matches!(rule, Rule::Only(Seam::LossDetector, _));
        let has_timer = !self.rto_estimator.face().is_some_and(|face| face.kind.rules.iter().any(depends_on));
        self.without_sack = match (needs_sack(self.loss_detector.face()), needs_sack(self.fast_recovery.face())) {
            (true, _) if !has_timer => Some(newreno::with_its_timer),
            (true, _) => self.without_sack.or(Some(newreno::without_sack)),
            (false, true) => Some(newreno::recovery_without_sack),
            (false, false) => None,
        };
    }
}
