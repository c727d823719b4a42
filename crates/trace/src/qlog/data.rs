//! The data of an event: the fields that matter, of all events and in all dialects.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess};

use super::value::{Fields, Into, List, Scalar};

/// The `data` of an event. Its `header` is part of it.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) packet_type: Scalar,
    pub(super) packet_number: Scalar,
    pub(super) packet_number_space: Scalar,
    pub(super) packet_numbers: Vec<Scalar>,
    pub(super) packet_size: Scalar,
    /// The number of the path in multipath QUIC.
    pub(super) path_id: Scalar,
    pub(super) raw: Raw,
    /// None if the log does not have them.
    pub(super) frames: Option<Vec<Frame>>,
    pub(super) trigger: Scalar,
    pub(super) is_mtu_probe: Scalar,
    pub(super) lost_packets: Scalar,
    pub(super) congestion_window: Scalar,
    pub(super) smoothed_rtt: Scalar,
    pub(super) latest_rtt: Scalar,
    pub(super) pto_count: Scalar,
    pub(super) new_state: Scalar,
    pub(super) event_type: Scalar,
    pub(super) timer_type: Scalar,
    pub(super) reordering_threshold: Scalar,
    pub(super) time_threshold: Scalar,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum DataKey {
    Header,
    #[serde(alias = "type")]
    PacketType,
    PacketNumber,
    PacketNumberSpace,
    PacketNumbers,
    PacketSize,
    PathId,
    Raw,
    Frames,
    Trigger,
    IsMtuProbePacket,
    LostPackets,
    #[serde(alias = "cwnd", alias = "current_cwnd")]
    CongestionWindow,
    SmoothedRtt,
    LatestRtt,
    PtoCount,
    New,
    EventType,
    TimerType,
    ReorderingThreshold,
    TimeThreshold,
    #[serde(other)]
    Other,
}

impl Fields for Data {
    type Key = DataKey;

    fn take<'de, A: MapAccess<'de>>(&mut self, key: DataKey, map: &mut A) -> Result<(), A::Error> {
        let field = match key {
            DataKey::Header => return map.next_value_seed(Into(self)),
            DataKey::Raw => return map.next_value_seed(Into(&mut self.raw)),
            DataKey::Frames => {
                self.frames = Some(map.next_value::<List<Frame>>()?.0);
                return Ok(());
            }
            DataKey::PacketNumbers => {
                self.packet_numbers = map.next_value::<List<Scalar>>()?.0;
                return Ok(());
            }
            DataKey::Other => return map.next_value::<IgnoredAny>().map(drop),
            DataKey::PacketType => &mut self.packet_type,
            DataKey::PacketNumber => &mut self.packet_number,
            DataKey::PacketNumberSpace => &mut self.packet_number_space,
            DataKey::PacketSize => &mut self.packet_size,
            DataKey::PathId => &mut self.path_id,
            DataKey::Trigger => &mut self.trigger,
            DataKey::IsMtuProbePacket => &mut self.is_mtu_probe,
            DataKey::LostPackets => &mut self.lost_packets,
            DataKey::CongestionWindow => &mut self.congestion_window,
            DataKey::SmoothedRtt => &mut self.smoothed_rtt,
            DataKey::LatestRtt => &mut self.latest_rtt,
            DataKey::PtoCount => &mut self.pto_count,
            DataKey::New => &mut self.new_state,
            DataKey::EventType => &mut self.event_type,
            DataKey::TimerType => &mut self.timer_type,
            DataKey::ReorderingThreshold => &mut self.reordering_threshold,
            DataKey::TimeThreshold => &mut self.time_threshold,
        };
        *field = map.next_value()?;
        Ok(())
    }
}

/// Lengths of the raw bytes of a packet or a frame.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) length: Scalar,
    pub(super) payload_length: Scalar,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum RawKey {
    Length,
    PayloadLength,
    #[serde(other)]
    Other,
}

impl Fields for Raw {
    type Key = RawKey;

    fn take<'de, A: MapAccess<'de>>(&mut self, key: RawKey, map: &mut A) -> Result<(), A::Error> {
        match key {
            RawKey::Length => self.length = map.next_value()?,
            RawKey::PayloadLength => self.payload_length = map.next_value()?,
            RawKey::Other => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

/// A frame of a packet.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) kind: Scalar,
    pub(super) stream_id: Scalar,
    pub(super) offset: Scalar,
    pub(super) length: Scalar,
    pub(super) raw: Raw,
    pub(super) path_id: Scalar,
    pub(super) acked_ranges: Vec<Range>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum FrameKey {
    FrameType,
    #[serde(alias = "id")]
    StreamId,
    Offset,
    Length,
    Raw,
    PathId,
    AckedRanges,
    #[serde(other)]
    Other,
}

impl Fields for Frame {
    type Key = FrameKey;

    fn take<'de, A: MapAccess<'de>>(&mut self, key: FrameKey, map: &mut A) -> Result<(), A::Error> {
        let field = match key {
            FrameKey::FrameType => &mut self.kind,
            FrameKey::StreamId => &mut self.stream_id,
            FrameKey::Offset => &mut self.offset,
            FrameKey::Length => &mut self.length,
            FrameKey::PathId => &mut self.path_id,
            FrameKey::Raw => return map.next_value_seed(Into(&mut self.raw)),
            FrameKey::AckedRanges => {
                self.acked_ranges = map.next_value::<List<Range>>()?.0;
                return Ok(());
            }
            FrameKey::Other => return map.next_value::<IgnoredAny>().map(drop),
        };
        *field = map.next_value()?;
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Frame, D::Error> {
        let mut frame = Frame::default();
        serde::de::DeserializeSeed::deserialize(Into(&mut frame), deserializer)?;
        Ok(frame)
    }
}

/// A range of acknowledged numbers: `[5, 7]`, `[5]`, `5`, `"5"` or `"5-7"`.
#[derive(Debug)]
pub(super) struct Range(Vec<Scalar>);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Range, D::Error> {
        OneOrMany::deserialize(deserializer).map(|ends| match ends {
            OneOrMany::Many(ends) => Range(ends),
            OneOrMany::One(Scalar::Text(text)) => {
                Range(text.split('-').map(|end| Scalar::Text(end.to_owned())).collect())
            }
            OneOrMany::One(number) => Range(vec![number]),
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Scalar>),
    One(Scalar),
}

impl Range {
    /// The first and the last number.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub(super) fn ends(&self) -> Result<(u64, u64), String> {
        let ends: Result<Option<Vec<u64>>, String> = self.0.iter().map(Scalar::whole).collect();
        let shown = || self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match ends.ok().flatten().as_deref() {
            Some([only]) => Ok((*only, *only)),
            Some([a, b]) => Ok((*a.min(b), *a.max(b))),
            _ => Err(format!("acked_ranges has [{}]; allowed are [first, last] and [number]", shown())),
        }
    }
}
