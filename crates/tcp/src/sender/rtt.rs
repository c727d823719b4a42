//! Round-trip times: which acknowledgments give a sample (RFC 6298 §3), the shortest one, and the timeout. [`super::measure`]
//! calls `measure` and [`update_rto`] in step 6; [`super::transmit`] starts and stops the timing of a segment.
//! Owned by [`super::Sender`].

use reknit_units::{Bytes, Duration, Instant};

use super::state::SendVariables;
use crate::config::{Config, RttSamples};
use crate::facts::{AckFacts, Context};
use crate::scoreboard::{Scoreboard, SegId};
use crate::seams::RtoEstimator;
use crate::seq::Offset;

/// The segment whose round trip is being timed (RFC 6298 §3).
#[derive(Clone, Copy, PartialEq, Debug)]
struct Timed {
    end: Offset,
    sent: Instant,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct RoundTrips {
    /// Without timestamps.
    timed: Option<Timed>,
    /// With timestamps: one sample per round trip, the next when this byte is acknowledged.
    round_end: Offset,
    /// The shortest so far.
    min: Option<Duration>,
}

impl RoundTrips {
    pub(super) fn new() -> RoundTrips {
        RoundTrips { timed: None, round_end: Offset::SYN, min: None }
    }

    /// The round trip of the handshake; none if a SYN was retransmitted.
    pub(super) fn establish(&mut self, rtt: Option<Duration>) {
        self.min = rtt;
        self.round_end = Offset::DATA;
    }

    pub(super) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// A new segment that ends at `end` is sent. Times it if no other segment is being timed.
    pub(super) fn start_timing(&mut self, now: Instant, end: Offset) {
        if self.timed.is_none() {
            self.timed = Some(Timed { end, sent: now });
        }
    }

    /// A segment is retransmitted. Its own RTT would be ambiguous (Karn's algorithm), and that of a later segment would
    /// include the wait for the retransmission.
    pub(super) fn stop_timing(&mut self) {
        self.timed = None;
    }

    /// Notes the RTT of what `ack` delivers, and takes a sample for the estimator if one is due. True if the ACK has a
    /// valid sample, whether it is taken or not.
    ///
    /// `measured` is [`Delivered::rtt`]; `echoed` is computed from the echoed timestamp, which is also valid for
    /// retransmitted segments (RFC 7323 §4.1).
    pub(super) fn measure(
        &mut self,
        cx: &Context<'_>,
        ack: &mut AckFacts<'_>,
        measured: Option<Duration>,
        echoed: Option<Duration>,
    ) -> bool {
        ack.rtt = measured;
        self.min = ack.rtt.map_or(self.min, |rtt| Some(self.min.map_or(rtt, |least| least.min(rtt))));
        let rtt = ack.rtt.or(echoed.filter(|_| ack.advances()));
        ack.rtt_sample = match cx.config.rtt_samples {
            RttSamples::PerAck => rtt,
            RttSamples::PerRound if cx.snd.timestamps => self.round_sample(cx, ack, rtt),
            RttSamples::PerRound => self.timed_sample(cx.now, ack),
        };
        rtt.is_some()
    }

    /// With timestamps, SND.NXT marks a round trip, and the first ACK beyond the mark gives the sample.
    fn round_sample(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, rtt: Option<Duration>) -> Option<Duration> {
        if ack.ack >= self.round_end && rtt.is_some() {
            self.round_end = cx.snd.snd_nxt + Bytes(1);
            return rtt;
        }
        None
    }

    /// Without timestamps one segment is timed until it is cumulatively acknowledged.
    fn timed_sample(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Duration> {
        let timed = self.timed.filter(|timed| ack.ack >= timed.end)?;
        self.timed = None;
        Some(now.since(timed.sent))
    }

    /// Brings its fields into the cache.
    pub(super) fn prefetch(&self) {
        std::hint::black_box(&(self.round_end, self.min));
    }
}

/// What an ACK newly delivers, from the records of its segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    pub(super) bytes: Bytes,
    /// When the newest segment was sent of those that were sent only once.
    sent_once: Option<Instant>,
    /// Some were sent more than once.
    repeats: bool,
}

impl Delivered {
    pub(super) fn of(newly: &[SegId], board: &Scoreboard) -> Delivered {
        let mut delivered = Delivered::default();
        for record in newly.iter().filter_map(|id| board.get(*id)) {
            delivered.bytes += Bytes(u64::from(record.len));
            if record.transmissions == 1 {
                delivered.sent_once = delivered.sent_once.max(Some(record.last_sent));
            } else {
                delivered.repeats = true;
            }
        }
        delivered
    }

    /// RTT of the newest segment that was sent only once (Karn's algorithm).
    ///
    /// Without SACK, a cumulative ACK may cover segments that arrived long ago behind a hole. If any of them was
    /// retransmitted, none of them gives a valid sample.
    pub(super) fn rtt(&self, now: Instant, sack: bool) -> Option<Duration> {
        self.sent_once.filter(|_| sack || !self.repeats).map(|sent| now.since(sent))
    }
}

/// Takes SRTT and the timeout from the estimator, and clamps the timeout (RFC 6298 §2.4, §2.5).
pub(super) fn update_rto(state: &mut SendVariables, estimator: &dyn RtoEstimator, config: &Config) {
    state.set_srtt(estimator.srtt());
    if let Some(rto) = estimator.rto() {
        state.set_rto(rto.ceil_to(config.rto_tick).max(config.min_rto).min(config.max_rto));
    }
    state.set_has_rto_timer(estimator.has_timer());
}
