//! The variables that plug-ins read, and the only functions that write them. Owned by [`super::Sender`].
//!
//! Every file of the sender may read a [`SendState`]. Every write goes through a function below. The functions are grouped
//! by what they write; each group names the files that call it, and the steps of [`super::ack`] in which they do.

use std::ops::Deref;

use reknit_units::{Bytes, Duration, Instant, Segments};

use super::Negotiated;
use crate::config::Config;
use crate::facts::{Phase, SendState, Snapshot, Window};
use crate::seq::Offset;

/// What sets cwnd and ssthresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowControl {
    /// The loss response, fast recovery, the undo and the congestion control.
    LossBased,
    /// Only the congestion control (`CongestionControlTraits::steers_by_model`).
    ModelBased,
}

/// A [`SendState`] that can only be written here.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SendVariables {
    snd: SendState,
    control: WindowControl,
    /// False if the estimator disables the retransmission timer (`RtoEstimator::has_timer`).
    has_rto_timer: bool,
    /// An ACK has come since the handshake.
    has_acked: bool,
}

impl Deref for SendVariables {
    type Target = SendState;

    fn deref(&self) -> &SendState {
        &self.snd
    }
}

/// A connection is established (`mod.rs`), or its options change (`live.rs`).
impl SendVariables {
    pub(super) fn new(config: &Config, control: WindowControl) -> SendVariables {
        SendVariables { snd: SendState::new(config), control, has_rto_timer: true, has_acked: false }
    }

    pub(super) fn establish(&mut self, config: &Config, agreed: &Negotiated) {
        let snd = &mut self.snd;
        snd.snd_una = Offset::DATA;
        snd.snd_nxt = Offset::DATA;
        snd.smss = agreed.smss;
        snd.sack = agreed.sack;
        snd.timestamps = agreed.timestamps;
        snd.ecn = agreed.ecn;
        snd.features = agreed.features;
        snd.snd_wnd = agreed.wnd;
        snd.max_snd_wnd = agreed.wnd;
        snd.recover = Offset::SYN;
        snd.handshake_rtt = agreed.rtt;
        snd.cwnd = cap(config, agreed.smss, config.initial_window.of(agreed.smss));
    }

    pub(super) fn note_ack(&mut self) {
        self.has_acked = true;
    }

    pub(super) fn has_acked(&self) -> bool {
        self.has_acked
    }

    /// The SYN was lost: the initial window is one segment (RFC 5681 §3.1).
    pub(super) fn start_from_one_segment(&mut self) {
        self.snd.cwnd = self.snd.smss;
    }

    pub(super) fn set_smss(&mut self, smss: Bytes) {
        self.snd.smss = smss;
    }

    /// The options have changed: the limit of the window may be lower.
    pub(super) fn reconfigure(&mut self, config: &Config) {
        self.snd.cwnd = self.cap(config, self.snd.cwnd);
    }

    /// The plug-ins are replaced while nothing is outstanding. What the old ones decided ends; the window stays.
    pub(super) fn forget_decisions(&mut self, config: &Config, control: WindowControl) {
        self.control = control;
        self.snd.phase = Phase::Open;
        self.snd.snapshot = None;
        self.snd.frozen_until = Instant::ZERO;
        self.snd.rto = config.initial_rto;
        self.has_rto_timer = true;
    }
}

/// The sequence space and the peer's window: steps 2 and 3 (`ack.rs`, `room.rs`), sending (`transmit.rs`), and the end of a
/// window probe (`timeout.rs`).
impl SendVariables {
    /// SND.UNA advances, and the count of duplicates restarts.
    pub(super) fn advance_una(&mut self, to: Offset) {
        self.snd.snd_una = to;
        self.snd.dup_acks = Segments::ZERO;
    }

    /// `len` more of sequence space was sent for the first time.
    pub(super) fn advance_nxt(&mut self, len: Bytes) {
        self.snd.snd_nxt += len;
    }

    pub(super) fn set_peer_window(&mut self, wnd: Bytes) {
        self.snd.snd_wnd = wnd;
        self.snd.max_snd_wnd = self.snd.max_snd_wnd.max(wnd);
    }

    pub(super) fn set_can_send_new(&mut self, can_send_new: bool) {
        self.snd.can_send_new = can_send_new;
    }

    /// Limited transmit has sent `len` bytes.
    pub(super) fn add_limited_transmit(&mut self, len: Bytes) {
        self.snd.limited_transmit += len;
    }
}

/// The congestion window: F-RTO in step 4 and timeouts (`timeout.rs`), the undo in step 7 and reductions in step 8
/// (`undo.rs`), loss detection in step 8 (`detect.rs`, `recovery.rs`), growth in step 9 (`ack.rs`), an idle restart in step 10
/// (`transmit.rs`).
impl SendVariables {
    /// A model of the path sets the window, and losses do not.
    pub(super) fn is_model_based(&self) -> bool {
        self.control == WindowControl::ModelBased
    }

    /// `window`, but at most the configured limit.
    pub(super) fn cap(&self, config: &Config, window: Bytes) -> Bytes {
        cap(config, self.snd.smss, window)
    }

    /// Sets cwnd, to at least one segment and at most the limit. Has no effect if a model of the path sets the window.
    pub(super) fn set_cwnd(&mut self, config: &Config, cwnd: Bytes) {
        if !self.is_model_based() {
            self.set_cwnd_of_model(config, cwnd);
        }
    }

    /// Sets cwnd, to at least one segment and at most the limit, whether or not a model of the path controls it.
    pub(super) fn set_cwnd_of_model(&mut self, config: &Config, cwnd: Bytes) {
        self.snd.cwnd = self.cap(config, cwnd.max(self.snd.smss));
    }

    /// Sets cwnd like [`SendVariables::set_cwnd`], and ssthresh to at least two segments.
    pub(super) fn set_window(&mut self, config: &Config, window: Window) {
        if !self.is_model_based() {
            self.set_cwnd(config, window.cwnd);
            self.snd.ssthresh = window.ssthresh.max(self.snd.smss * 2);
        }
    }

    /// Replaces cwnd during one call of a plug-in and returns the previous value. Called by `undo_earlier` before and after it.
    pub(super) fn replace_cwnd(&mut self, cwnd: Bytes) -> Bytes {
        std::mem::replace(&mut self.snd.cwnd, cwnd)
    }

    /// After an idle RTO, cwnd is at most the restart window (RFC 5681 §4.1).
    pub(super) fn restart_window(&mut self, restart_window: Bytes) {
        self.snd.cwnd = self.snd.cwnd.min(restart_window);
    }

    /// The window; in fast recovery the one that it ends with, because cwnd follows the pipe until then. Called by `undo.rs`
    /// before a reduction or an undo.
    pub(super) fn window_after_recovery(&self) -> Window {
        let snd = &self.snd;
        let cwnd = if snd.phase == Phase::Recovery { snd.recovery_window } else { snd.cwnd };
        Window { cwnd, ssthresh: snd.ssthresh }
    }

    /// Sets the window; in fast recovery the one that it ends with, which is not clamped. Called when a reduction is found
    /// spurious that need not be the last: by `undo_earlier` (step 7) and `withdraw` (step 8).
    pub(super) fn set_window_after_recovery(&mut self, config: &Config, window: Window) {
        if self.snd.phase == Phase::Recovery {
            self.snd.recovery_window = window.cwnd;
            self.snd.ssthresh = window.ssthresh;
        } else {
            self.set_window(config, window);
        }
    }

    /// Recovery ends with the present cwnd. Called when it begins, and when an undo lets it continue.
    pub(super) fn recover_to_cwnd(&mut self) {
        self.snd.recovery_window = self.snd.cwnd;
    }
}

/// Reductions and their undo: step 4, step 7 and each reduction (`undo.rs`), the undo limit before step 7 (`ack.rs`), and
/// retransmissions (`transmit.rs`).
impl SendVariables {
    pub(super) fn set_snapshot(&mut self, snapshot: Option<Snapshot>) {
        self.snd.snapshot = snapshot;
    }

    /// The reduction of the snapshot would now restore `window`.
    pub(super) fn restate_snapshot(&mut self, window: Window) {
        if let Some(snapshot) = &mut self.snd.snapshot {
            (snapshot.cwnd, snapshot.ssthresh) = (window.cwnd, window.ssthresh);
        }
    }

    /// A segment was retransmitted since the last reduction.
    pub(super) fn count_retransmission(&mut self) {
        if let Some(snapshot) = &mut self.snd.snapshot {
            snapshot.retransmitted += 1;
        }
    }

    pub(super) fn set_may_undo(&mut self, may_undo: bool) {
        self.snd.may_undo = may_undo;
    }

    /// Neither the window nor the timeout changes before this time.
    pub(super) fn freeze_until(&mut self, until: Instant) {
        self.snd.frozen_until = until;
    }

    /// True if the window and the timeout must not change now.
    pub(super) fn is_frozen(&self, now: Instant) -> bool {
        now < self.snd.frozen_until
    }
}

/// Loss detection and the phases of recovery: step 7 (`undo.rs`), step 8 (`detect.rs`, `recovery.rs`), timeouts
/// (`timeout.rs`), and new plug-ins (`mod.rs`, `live.rs`).
impl SendVariables {
    /// Called only by [`super::recovery`], on each change of its stage.
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.snd.phase = phase;
    }

    /// An episode begins: it is over when all that is outstanding now is acknowledged.
    pub(super) fn recover_until_nxt(&mut self) {
        self.snd.recover = self.snd.snd_nxt;
    }

    /// The last episode was spurious: duplicates may indicate a loss again.
    pub(super) fn forget_recover(&mut self) {
        self.snd.recover = Offset::SYN;
    }

    pub(super) fn count_dup_ack(&mut self) {
        self.snd.dup_acks += Segments(1);
    }

    pub(super) fn forget_dup_acks(&mut self) {
        self.snd.dup_acks = Segments::ZERO;
    }

    pub(super) fn set_dup_thresh(&mut self, dup_thresh: Segments) {
        self.snd.dup_thresh = dup_thresh;
    }

    /// Disorder begins.
    pub(super) fn note_flight_before_disorder(&mut self) {
        self.snd.flight_before_disorder = self.snd.flight_size();
    }

    /// Disorder goes on, with this much in flight in its last round trip.
    pub(super) fn renew_flight_before_disorder(&mut self, flight: Bytes) {
        self.snd.flight_before_disorder = flight;
    }

    /// What limited transmit has sent no longer counts separately.
    pub(super) fn end_limited_transmit(&mut self) {
        self.snd.limited_transmit = Bytes::ZERO;
    }

    pub(super) fn set_postponed_until(&mut self, until: Instant) {
        self.snd.postponed_until = until;
    }
}

/// Times: step 6 (`rtt.rs`), a restart of the retransmission timer (`timers.rs`, `timeout.rs`), a paced segment (`pacing.rs`),
/// and the handshake (`mod.rs`).
impl SendVariables {
    pub(super) fn set_srtt(&mut self, srtt: Option<Duration>) {
        self.snd.srtt = srtt;
    }

    pub(super) fn set_rto(&mut self, rto: Duration) {
        self.snd.rto = rto;
    }

    pub(super) fn set_has_rto_timer(&mut self, has: bool) {
        self.has_rto_timer = has;
    }

    pub(super) fn set_rto_expires(&mut self, at: Instant) {
        self.snd.rto_expires = at;
    }

    pub(super) fn set_next_send_time(&mut self, at: Instant) {
        self.snd.next_send_time = at;
    }

    /// False if the estimator disables the retransmission timer; the loss detector's timer then replaces it everywhere.
    pub(super) fn has_rto_timer(&self) -> bool {
        self.has_rto_timer
    }

    /// The RTO without back-off, or a substitute if there is no RTO, because window probes and the idle check still need
    /// a time.
    pub(super) fn rto_or_substitute(&self, config: &Config) -> Duration {
        if self.has_rto_timer() {
            return self.snd.rto;
        }
        self.snd.srtt.unwrap_or(config.initial_rto).max(config.min_rto)
    }

    /// That time, doubled `backoff` times (RFC 6298 §5.5).
    pub(super) fn backed_off(&self, config: &Config, backoff: u32) -> Duration {
        (self.rto_or_substitute(config) * (1 << backoff.min(20))).min(config.max_rto)
    }
}

fn cap(config: &Config, smss: Bytes, window: Bytes) -> Bytes {
    config.max_window.map_or(window, |max| window.min(max.of(smss)))
}
