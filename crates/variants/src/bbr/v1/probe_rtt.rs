//! The propagation delay, estimated as the minimum RTT of ten seconds, and ProbeRTT, which measures it again (§4.1.2,
//! §4.3.5).

use reknit_tcp::facts::{AckFacts, Context};
use reknit_units::{Duration, Instant, Segments};

use super::{Bbr, MIN_CWND, Mode, Sample, Stamp};

/// `RTpropFilterLen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// `ProbeRTTDuration`.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt {
    rtt: Option<Duration>,
    stamp: Instant,
    /// `BBR.probe_rtt_done_stamp`: when ProbeRTT may end; set once the data in flight has come down.
    done_stamp: Stamp,
    /// A round has ended since then.
    round_done: bool,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.rtt
    }

    /// The handshake gives the first sample, as in Linux. It ended when the first segment was sent.
    fn begin(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if self.rtt.is_none() && cx.snd.handshake_rtt.is_some() {
            self.update(cx.now - ack.rtt.unwrap_or_default(), cx.snd.handshake_rtt);
        }
    }

    /// True if the minimum is older than the window.
    fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.rtt.is_some() && now > self.stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = rtt
            && (expired || self.rtt.is_none_or(|min| rtt < min))
        {
            self.rtt = Some(rtt);
            self.stamp = now;
        }
        expired
    }
}

impl Bbr {
    /// `BBRUpdateRTprop` and `BBRCheckProbeRTT`. Returns the new cwnd if ProbeRTT ends.
    pub(super) fn update_min_rtt(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, sample: &Sample) -> Option<Segments> {
        self.min_rtt.begin(cx, ack);
        let expired = self.min_rtt.update(cx.now, ack.rtt);
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(cx);
            self.mode = Mode::ProbeRtt;
            self.min_rtt.done_stamp = None;
        }
        let restored = if self.mode == Mode::ProbeRtt { self.handle_probe_rtt(cx) } else { None };
        if sample.acked > Segments::ZERO {
            self.idle_restart = false;
        }
        restored
    }

    /// `BBRHandleProbeRTT`: lasts 200 ms and a round from the moment when only four segments are in flight.
    fn handle_probe_rtt(&mut self, cx: &Context<'_>) -> Option<Segments> {
        if self.min_rtt.done_stamp.is_none() {
            if cx.board.pipe().segments <= MIN_CWND {
                self.min_rtt.done_stamp = Some(cx.now + PROBE_RTT_TIME);
                self.min_rtt.round_done = false;
                self.bandwidth.next_round_delivered = self.bandwidth.delivered;
            }
            return None;
        }
        self.min_rtt.round_done |= self.bandwidth.round_start;
        if self.min_rtt.round_done { self.check_probe_rtt_done(cx) } else { None }
    }

    /// Ends ProbeRTT if its time is over, and then returns the new cwnd, which is at least the saved one.
    pub(super) fn check_probe_rtt_done(&mut self, cx: &Context<'_>) -> Option<Segments> {
        self.min_rtt.done_stamp.filter(|done| cx.now > *done)?;
        self.min_rtt.stamp = cx.now;
        if self.full_pipe.reached {
            self.enter_probe_bw(cx);
        } else {
            self.mode = Mode::Startup;
        }
        Some(cx.snd.cwnd.whole_segments(cx.snd.smss).max(self.control.prior_cwnd))
    }
}
