//! A sender driven by deliveries, which SACK blocks report as soon as they happen: its window grows by delivered
//! bytes and limits the pipe, and there is no retransmission timer. `reknit` and the oracles differ only in how
//! they detect losses, so that the oracles bound what `reknit` can reach.

use std::sync::Arc;

use reknit_tcp::seams::{CongestionControl, LossDetector};

use super::progress::Progress;
use super::respond_at_once::{self, DecreaseOf};
use super::{aimd, cubic, limited_transmit, no_timer, prr, undo_limit};
use crate::composition::Composition;
use crate::part::Shared;

/// With the growth of CUBIC. In order, it grows as fast as that of Linux, so that neither has less of a shared queue.
pub(crate) fn with_cubic(loss_detector: Shared<dyn LossDetector>) -> Composition {
    let growth = cubic::Config {
        early_exit: true,
        alpha_one: false,
        friendly_at_once: false,
        min_growth: 0.05,
        progress: Progress::Delivered,
        ..cubic::Config::default()
    };
    with(loss_detector, Arc::new(growth))
}

/// With the growth of Reno.
pub(crate) fn with_reno(loss_detector: Shared<dyn LossDetector>) -> Composition {
    with(loss_detector, Arc::new(aimd::Config { progress: Progress::Delivered }))
}

/// With another congestion control.
pub(crate) fn with(
    loss_detector: Shared<dyn LossDetector>,
    congestion_control: Shared<dyn CongestionControl>,
) -> Composition {
    Composition {
        loss_detector,
        undo_limit: Arc::new(undo_limit::Bounded::default()),
        loss_response: Arc::new(respond_at_once::Config { of: DecreaseOf::Cwnd, ..respond_at_once::Config::default() }),
        fast_recovery: Arc::new(prr::Config::default()),
        rto_estimator: Arc::new(no_timer::Config {}),
        limited_transmit: Arc::new(limited_transmit::Config::Pairs { spreads_bursts: true }),
        congestion_control,
        ..Composition::default()
    }
}
