//! A snapshot of a connection's variables, similar to Linux's `tcp_info`.

use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

use super::{Connection, State};
use crate::experiment::Features;
use crate::facts::Phase;

/// The variables of a connection at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The state of the connection.
    pub state: State,
    /// The phase of the sender's loss recovery.
    pub phase: Phase,
    /// Sender maximum segment size.
    pub smss: Bytes,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow start threshold; none before the first loss.
    pub ssthresh: Option<Bytes>,
    /// cwnd before the last reduction, while that reduction may still turn out to be spurious.
    pub cwnd_before_cut: Option<Bytes>,
    /// The number of duplicates that indicates a loss.
    pub dup_thresh: Segments,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time (RFC 6298: RTTVAR), if the estimator of the timeout keeps one.
    pub rttvar: Option<Duration>,
    /// Retransmission timeout without back-off; none if the algorithms have no such timer (`no-timer`, `pr`).
    pub rto: Option<Duration>,
    /// Bytes sent and not yet cumulatively acknowledged.
    pub flight_size: Bytes,
    /// Bytes estimated to be in the network.
    pub pipe: Bytes,
    /// The peer's receive window.
    pub snd_wnd: Bytes,
    /// The pacing rate, if the congestion control sets one.
    pub pacing_rate: Option<Rate>,
    /// Outstanding segments that are SACKed.
    pub sacked: Segments,
    /// Outstanding segments that are marked lost.
    pub lost: Segments,
    /// Outstanding segments that were retransmitted and are estimated to be in flight.
    pub retransmitted: Segments,
    /// Position in the stream of the first byte that is not acknowledged.
    pub snd_una: u64,
    /// Position in the stream of the next byte to send.
    pub snd_nxt: u64,
    /// How often the retransmission timeout is doubled now.
    pub backoff: u32,
    /// The shortest round-trip time so far.
    pub min_rtt: Option<Duration>,
    /// Bytes of the stream acknowledged.
    pub acknowledged: u64,
    /// Both ends agreed on SACK.
    pub sack: bool,
    /// Both ends agreed on timestamps.
    pub timestamps: bool,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// Experimental features that both ends agreed on.
    pub features: Features,
    /// Shift of the windows that the peer sends.
    pub window_scale: u8,
}

/// What keeps the sender from sending more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SendLimit {
    /// Nothing is written that is not acknowledged.
    #[default]
    Idle,
    /// Everything that was written is sent.
    Written,
    /// The peer's window is full.
    PeerWindow,
    /// The congestion window, pacing, or Nagle's algorithm.
    Path,
}

impl Connection {
    /// What keeps the sender from sending more now.
    pub fn send_limit(&self) -> SendLimit {
        let snd = &self.sender.state;
        let (waiting, outstanding) = (self.unacknowledged(), snd.flight_size());
        if self.state() == State::Closed || waiting == Bytes::ZERO {
            SendLimit::Idle
        } else if outstanding >= waiting {
            SendLimit::Written
        } else if outstanding + snd.smss.min(waiting - outstanding) > snd.snd_wnd
            && self.sender.board.pipe().bytes < snd.cwnd
        {
            SendLimit::PeerWindow
        } else {
            SendLimit::Path
        }
    }

    /// The connection's variables.
    pub fn info(&self, now: Instant) -> Info {
        let snd = &self.sender.state;
        let (snd_una, snd_nxt) = self.send_positions();
        Info {
            state: self.state(),
            phase: snd.phase,
            smss: snd.smss,
            cwnd: snd.cwnd,
            ssthresh: (snd.ssthresh != Bytes::MAX).then_some(snd.ssthresh),
            cwnd_before_cut: snd.snapshot.map(|snapshot| snapshot.cwnd),
            dup_thresh: self.sender.dup_thresh(now),
            srtt: snd.srtt,
            rttvar: self.sender.plugins.rto_estimator.rttvar(),
            rto: self.sender.plugins.rto_estimator.has_timer().then_some(snd.rto),
            flight_size: snd.flight_size(),
            pipe: self.sender.board.pipe().bytes,
            snd_wnd: snd.snd_wnd,
            pacing_rate: self.sender.pacing_rate(),
            sacked: self.sender.board.sacked().segments,
            lost: self.sender.board.lost().segments,
            retransmitted: self.sender.board.retransmitted().segments,
            snd_una,
            snd_nxt,
            backoff: self.sender.backoff(),
            min_rtt: self.sender.min_rtt(),
            acknowledged: self.acknowledged(),
            sack: snd.sack,
            timestamps: snd.timestamps,
            features: snd.features,
            ecn: self.negotiation.ecn(),
            window_scale: self.negotiation.snd_shift(),
        }
    }

    /// The records of outstanding segments that were visited so far, which measures the work of the sender and its
    /// plug-ins independently of the machine. Counted only in debug builds.
    pub fn records_visited(&self) -> u64 {
        self.sender.board.visited()
    }

    /// Checks the scoreboard's sums and the other invariants of a live connection.
    ///
    /// # Errors
    /// Names the invariant that is violated, which is a bug of the engine.
    pub fn check(&self) -> Result<(), String> {
        self.sender.board.check()?;
        let snd = &self.sender.state;
        if snd.cwnd < snd.smss {
            return Err(format!("cwnd {} is less than a segment", snd.cwnd));
        }
        if snd.ssthresh < snd.smss * 2 {
            return Err(format!("ssthresh {} is less than two segments", snd.ssthresh));
        }
        if self.is_synchronised() && self.state() != State::TimeWait {
            let outstanding = snd.snd_nxt.since(snd.snd_una);
            let recorded = self.sender.board.sent().bytes;
            if outstanding != recorded {
                return Err(format!("{outstanding} outstanding, {recorded} on the scoreboard"));
            }
            if outstanding > Bytes::ZERO && !self.sender.deadline().is_set() {
                return Err("data is outstanding and no timer of the sender runs".to_owned());
            }
            if self.sender.fin_is_acked() && self.sender.deadline().is_set() {
                return Err("the FIN is acknowledged and a timer of the sender runs".to_owned());
            }
        }
        Ok(())
    }
}
