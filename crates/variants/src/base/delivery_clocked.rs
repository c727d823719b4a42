//! A sender driven by deliveries, which SACK blocks report as soon as they happen: its window grows by delivered
//! bytes and limits the pipe, and there is no retransmission timer. `reknit` and the oracles differ only in how
//! they detect losses, so that the oracles show what `reknit` can reach.

use super::progress::Progress;
use super::respond_at_once::{self, DecreaseOf};
use super::{aimd, cubic, limited_transmit, no_timer, prr, undo_limit};
use crate::algorithms::{CongestionControl, LossDetector};
use crate::composition::Composition;

/// With the growth of CUBIC. In order, it grows as fast as that of Linux, so that neither has less of a shared queue.
pub(crate) fn with_cubic(loss_detector: LossDetector) -> Composition {
    let growth = cubic::CubicConfig {
        early_exit: true,
        alpha_one: false,
        friendly_at_once: false,
        min_growth: 0.05,
        progress: Progress::Delivered,
        ..cubic::CubicConfig::default()
    };
    with(loss_detector, growth.into())
}

/// With the growth of Reno.
pub(crate) fn with_reno(loss_detector: LossDetector) -> Composition {
    with(loss_detector, aimd::RenoConfig { progress: Progress::Delivered }.into())
}

/// With another congestion control.
pub(crate) fn with(loss_detector: LossDetector, congestion_control: CongestionControl) -> Composition {
    Composition {
        loss_detector,
        undo_limit: undo_limit::BoundedConfig::default().into(),
        loss_response: respond_at_once::AtOnceConfig {
            of: DecreaseOf::Cwnd,
            ..respond_at_once::AtOnceConfig::default()
        }
        .into(),
        fast_recovery: prr::PrrConfig::default().into(),
        rto_estimator: no_timer::NoTimerConfig {}.into(),
        limited_transmit: limited_transmit::PairsConfig { spreads_bursts: true }.into(),
        congestion_control,
        ..Composition::default()
    }
}
