//! Options of a connection that are not algorithms: sizes, clocks, features.

use reknit_units::{Bytes, Capacity, Duration, Segments};
use serde::{Deserialize, Serialize};

/// When the sender measures the round-trip time for its RTO estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RttSamples {
    /// One timed segment per round trip, as BSD and ns-2 do (RFC 6298 §3). So the gains of the estimator average over
    /// about 8 round trips.
    #[default]
    PerRound,
    /// One sample per ACK that newly delivers a segment that was sent only once.
    PerAck,
}

/// Which holes may be retransmitted during fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Retransmit {
    /// Lost segments, then new data, then other holes (RFC 6675 §4, `NextSeg`).
    #[default]
    Lost,
    /// Every hole below the highest SACK before new data, as ns-2's `sack1` does.
    AnyHole,
}

/// What `max_window` limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MaxWindowCaps {
    /// All data in flight, limited transmit included, like `maxwnd` of ns-2 or a receive window of that size.
    #[default]
    Flight,
    /// Only cwnd: limited transmit may exceed it.
    Cwnd,
}

/// The quantity that a multiplicative decrease applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseOf {
    /// FlightSize (RFC 5681 eq. 4).
    #[default]
    FlightSize,
    /// cwnd, as ns-2 does. The difference is largest if windows are small.
    Cwnd,
}

/// Which segments PAWS discards, and which of them are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Paws {
    /// Every segment with a timestamp older than TS.Recent; a limited number of them is answered with an ACK (RFC 7323 §5.3,
    /// RFC 5961 §7).
    #[default]
    Rfc7323,
    /// A timestamp may be 1 ms older than TS.Recent, or missing. Data is always answered; a pure ACK from before RCV.NXT is not, and of
    /// others one in 500 ms (`tcp_invalid_ratelimit`). An ACK that repeats another may open the window, or close it, but
    /// not shrink it: it may have been overtaken (observed in Linux 6.18).
    Linux,
}

/// Probing of an idle connection (RFC 9293 §3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is given up.
    pub probes: u32,
}

/// The options of one end of a connection. Everything that an algorithm decides is in a plug-in instead.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum segment size to announce and to use, in bytes: payload and options together (RFC 9293 §3.7.1).
    pub mss: u16,
    /// The smallest segment size that a peer can impose, in bytes: a smaller announcement counts as this. Every host
    /// accepts 536 bytes (RFC 9293 §3.7.1), and smaller segments cost memory and time.
    pub min_mss: u16,
    /// Initial window (RFC 6928).
    pub initial_window: Segments,
    /// Upper limit of cwnd, or of all data in flight (`max_window_caps`). "none": no limit.
    #[serde(with = "or_none")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "or_none::schema"))]
    pub max_window: Option<Segments>,
    /// What `max_window` limits.
    pub max_window_caps: MaxWindowCaps,
    /// The most segments that one ACK may release. "none": no limit.
    #[serde(with = "or_none")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "or_none::schema"))]
    pub max_burst: Option<Segments>,
    /// Hold back partial segments while data is in flight (Nagle, RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Offer selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Report duplicates as DSACK (RFC 2883); needs `sack`.
    pub dsack: bool,
    /// Ignore a DSACK if the peer has reported more duplicates than segments were retransmitted, as Linux does.
    pub limit_dsacks: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// What happens to segments with old timestamps.
    pub paws: Paws,
    /// Offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Receive buffer; it limits the window that is announced.
    pub receive_buffer: Capacity,
    /// In-order full-sized segments per ACK; 1 acknowledges every segment (RFC 5681 §4.2).
    pub ack_every: Segments,
    /// Longest delay of an ACK: less than 500 ms (RFC 9293 §3.8.6.3).
    pub ack_delay: Duration,
    /// RTO before the first measurement (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// Lower bound of the RTO (RFC 6298 §2.4).
    pub min_rto: Duration,
    /// Upper bound of the RTO with its back-off (RFC 6298 §2.5).
    pub max_rto: Duration,
    /// Clock tick to which RTT samples and the RTO are rounded. Zero: no rounding.
    pub rto_tick: Duration,
    /// When the RTT is measured.
    pub rtt_samples: RttSamples,
    /// Grow the window by bytes acknowledged (RFC 3465) rather than by ACKs.
    pub byte_counting: bool,
    /// The quantity that a multiplicative decrease applies to.
    pub decrease_of: DecreaseOf,
    /// Which holes fast recovery may retransmit.
    pub retransmit: Retransmit,
    /// Withhold about one new segment in this many until something above it is SACKed. A receiver that acknowledges it lies,
    /// and the connection is reset. Needs SACK, and bits that the peer does not know ([`crate::Connection::set_secret`]).
    /// "none": off.
    #[serde(with = "or_none")]
    #[cfg_attr(feature = "schemars", schemars(schema_with = "or_none::schema"))]
    pub withhold_every: Option<Segments>,
    /// Fall back to the initial window after an idle RTO (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Probing of an idle connection. None: off.
    pub keep_alive: Option<KeepAlive>,
    /// Abort the connection if data stays unacknowledged for this long (R2 of RFC 9293 §3.8.3, at least 100 s).
    pub user_timeout: Duration,
    /// Time in TIME-WAIT: twice the maximum segment lifetime (RFC 9293 §3.4.2).
    pub time_wait: Duration,
    /// Accept a SYN while waiting for the answer to our own (RFC 9293 §3.5, figure 8). Both ends of a simultaneous open
    /// need it. Off, because an attacker who guesses the ports could otherwise prevent a connection with one SYN.
    pub simultaneous_open: bool,
    /// Time after which a passive open whose SYN-ACK is not acknowledged returns to LISTEN.
    pub half_open_timeout: Duration,
    /// Abort the connection if the peer is silent for this long in FIN-WAIT-2: it has acknowledged our FIN and never
    /// closes. Its data restarts the time.
    pub fin_wait_2_timeout: Duration,
    /// Abort the connection if data that the application has written is not acknowledged within this time although the
    /// peer answers: it keeps its window closed, or reads too slowly (RFC 6429). Needs a bounded send buffer. None: off,
    /// as RFC 9293 §3.8.6.1 requires.
    pub drain_timeout: Option<Duration>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1460,
            min_mss: 536,
            initial_window: Segments(10),
            max_window: None,
            max_window_caps: MaxWindowCaps::Flight,
            max_burst: Some(Segments(4)),
            nagle: true,
            sack: true,
            dsack: true,
            limit_dsacks: false,
            timestamps: true,
            paws: Paws::Rfc7323,
            ecn: false,
            receive_buffer: Capacity::Bytes(Bytes(4 << 20)),
            ack_every: Segments(2),
            ack_delay: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            rto_tick: Duration::ZERO,
            rtt_samples: RttSamples::PerRound,
            byte_counting: true,
            decrease_of: DecreaseOf::FlightSize,
            retransmit: Retransmit::Lost,
            withhold_every: None,
            idle_restart: true,
            keep_alive: None,
            user_timeout: Duration::from_secs(300),
            time_wait: Duration::from_secs(60),
            simultaneous_open: false,
            half_open_timeout: Duration::from_secs(60),
            fin_wait_2_timeout: Duration::from_secs(600),
            drain_timeout: None,
        }
    }
}

/// A shorter timeout would expire so often that simulations never end.
const SHORTEST_RTO: Duration = Duration::from_micros(10);
/// The same for keep-alives.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(1);

/// A limit in segments, or the word `none`.
mod or_none {
    use reknit_units::Segments;
    use serde::de::{Deserializer, Error, Unexpected, Visitor};
    use serde::{Serialize, Serializer};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(limit: &Option<Segments>, serializer: S) -> Result<S::Ok, S::Error> {
        match limit {
            Some(limit) => limit.serialize(serializer),
            None => serializer.serialize_str("none"),
        }
    }

    #[cfg(feature = "schemars")]
    pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["integer", "string"], "format": "segments", "pattern": "^none$" })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Segments>, D::Error> {
        struct OrNone;

        impl Visitor<'_> for OrNone {
            type Value = Option<Segments>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of segments, or \"none\"")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Option<Segments>, E> {
                match u32::try_from(number) {
                    Ok(number) => Ok(Some(Segments(number))),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Option<Segments>, E> {
                match u32::try_from(number) {
                    Ok(number) => Ok(Some(Segments(number))),
                    Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Option<Segments>, E> {
                match text {
                    "none" => Ok(None),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(OrNone)
    }
}

/// A value of [`Config`] that is not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
pub struct ConfigError {
    /// The field.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl Config {
    /// The buffer in bytes; a count of segments is converted with `mss`.
    pub fn receive_buffer_size(&self) -> Bytes {
        self.receive_buffer.in_bytes(Bytes(u64::from(self.mss)))
    }

    /// The smallest shift with which a window of the buffer's size fits into 16 bits (RFC 7323 §2.2).
    pub fn window_shift(&self) -> u8 {
        let mut shift = 0;
        while shift < 14 && self.receive_buffer_size().0 >> shift > u64::from(u16::MAX) {
            shift += 1;
        }
        shift
    }

    /// Checks the values that serde cannot check.
    ///
    /// # Errors
    /// Names the first field with an invalid value, and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        fn refuse(key: &'static str, value: impl std::fmt::Display, allowed: &'static str) -> Result<(), ConfigError> {
            Err(ConfigError { key, value: value.to_string(), allowed })
        }
        if !(64..=65_495).contains(&self.mss) {
            return refuse("mss", self.mss, "must be from 64 to 65495 bytes");
        }
        if !(64..=65_495).contains(&self.min_mss) {
            return refuse("min_mss", self.min_mss, "must be from 64 to 65495 bytes");
        }
        if self.initial_window == Segments::ZERO {
            return refuse("initial_window", 0, "must be at least 1 segment");
        }
        if self.max_window == Some(Segments::ZERO) {
            return refuse("max_window", 0, "must be at least 1 segment");
        }
        if self.max_burst == Some(Segments::ZERO) {
            return refuse("max_burst", 0, "must be at least 1 segment");
        }
        if self.withhold_every.is_some_and(|every| every < Segments(16)) {
            return refuse("withhold_every", self.withhold_every.unwrap_or_default(), "must be at least 16 segments");
        }
        if self.ack_every == Segments::ZERO {
            return refuse("ack_every", 0, "must be at least 1 segment");
        }
        if self.ack_delay >= Duration::from_millis(500) {
            return refuse("ack_delay", self.ack_delay, "must be less than 500 ms (RFC 9293 section 3.8.6.3)");
        }
        let buffer = self.receive_buffer_size();
        if buffer < Bytes(u64::from(self.mss)) || buffer > Bytes(1 << 30) {
            return refuse("receive_buffer", self.receive_buffer, "must hold one segment and at most 1 GiB");
        }
        if self.min_rto < SHORTEST_RTO || self.min_rto > self.max_rto {
            return refuse("min_rto", self.min_rto, "must be at least 10 us and at most max_rto");
        }
        if self.initial_rto < SHORTEST_RTO {
            return refuse("initial_rto", self.initial_rto, "must be at least 10 us");
        }
        for (key, limit) in [
            ("half_open_timeout", Some(self.half_open_timeout)),
            ("fin_wait_2_timeout", Some(self.fin_wait_2_timeout)),
            ("drain_timeout", self.drain_timeout),
        ] {
            if limit == Some(Duration::ZERO) {
                return refuse(key, Duration::ZERO, "must be more than 0");
            }
        }
        if let Some(keep_alive) = self.keep_alive {
            for (key, time) in [("keep_alive.idle", keep_alive.idle), ("keep_alive.interval", keep_alive.interval)] {
                if time < SHORTEST_KEEP_ALIVE {
                    return refuse(key, time, "must be at least 1 ms");
                }
            }
            if keep_alive.probes == 0 {
                return refuse("keep_alive.probes", 0, "must be at least 1");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn an_invalid_value_is_named() {
        let error = Config { ack_every: Segments::ZERO, ..Config::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "ack_every = 0: must be at least 1 segment");
        for min_rto in [Duration::from_secs(90), Duration::from_nanos(1)] {
            let error = Config { min_rto, ..Config::default() }.check().unwrap_err();
            assert_eq!(error.key, "min_rto");
        }
        let error = Config { initial_rto: Duration::from_nanos(1), ..Config::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "initial_rto = 1 ns: must be at least 10 us");
    }

    #[test]
    fn an_ack_is_delayed_by_less_than_half_a_second() {
        for (ms, valid) in [(0, true), (499, true), (500, false)] {
            let config = Config { ack_delay: Duration::from_millis(ms), ..Config::default() };
            assert_eq!(config.check().is_ok(), valid, "{ms}");
        }
    }

    #[test]
    fn probes_that_leave_no_time_for_an_answer_are_refused() {
        let valid = KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
        for (keep_alive, key) in [
            (KeepAlive { idle: Duration::ZERO, ..valid }, "keep_alive.idle"),
            (KeepAlive { idle: Duration::from_nanos(1), ..valid }, "keep_alive.idle"),
            (KeepAlive { interval: Duration::ZERO, ..valid }, "keep_alive.interval"),
            (KeepAlive { probes: 0, ..valid }, "keep_alive.probes"),
        ] {
            let config = |keep_alive| Config { keep_alive: Some(keep_alive), ..Config::default() };
            assert_eq!(config(keep_alive).check().unwrap_err().key, key);
            assert_eq!(config(valid).check(), Ok(()));
        }
    }
}
