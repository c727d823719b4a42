//! The size of a queue.

use std::fmt;
use std::str::FromStr;

use reknit_units::{Capacity, Duration, Rate, Segments};
use serde::{Deserialize, Serialize};

/// How much a queue holds: packets (`50 packets`), bytes (`64 KiB`), or what its link sends in some time (`50 ms`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "String")]
pub enum QueueSize {
    /// Packets or bytes.
    Capacity(Capacity),
    /// The bytes that leave in this time at the link's rate.
    Time(Duration),
}

impl QueueSize {
    /// The default of all queues.
    pub const HUNDRED_PACKETS: QueueSize = QueueSize::packets(100);

    /// A queue of this many packets of any size.
    pub const fn packets(count: u32) -> QueueSize {
        QueueSize::Capacity(Capacity::Count(Segments(count)))
    }

    /// The capacity of the queue of a link with this rate.
    pub fn at(self, rate: Rate) -> Capacity {
        match self {
            QueueSize::Capacity(capacity) => capacity,
            QueueSize::Time(time) => Capacity::Bytes(rate.bytes_in(time)),
        }
    }
}

/// As [`QueueSize::HUNDRED_PACKETS`], for serde.
pub(crate) fn hundred_packets() -> QueueSize {
    QueueSize::HUNDRED_PACKETS
}

impl FromStr for QueueSize {
    type Err = String;

    fn from_str(text: &str) -> Result<QueueSize, String> {
        match (text.parse::<Capacity>(), text.parse::<Duration>()) {
            (Ok(capacity), _) => Ok(QueueSize::Capacity(capacity)),
            (_, Ok(time)) => Ok(QueueSize::Time(time)),
            _ => Err(format!(
                "`{text}` is not the size of a queue; write packets (`50 packets`), bytes (`64 KiB`) or the time in which \
                 the link empties it (`50 ms`)"
            )),
        }
    }
}

impl TryFrom<toml::Value> for QueueSize {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<QueueSize, String> {
        match value {
            toml::Value::String(text) => text.parse(),
            other => other.to_string().parse(),
        }
    }
}

impl From<QueueSize> for String {
    fn from(size: QueueSize) -> String {
        size.to_string()
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSize::Capacity(capacity) => capacity.fmt(f),
            QueueSize::Time(time) => time.fmt(f),
        }
    }
}

impl schemars::JsonSchema for QueueSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QueueSize".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Capacity::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reknit_units::Bytes;

    #[test]
    fn a_queue_counts_packets_bytes_or_time() {
        let rate = Rate::from_bits_per_second(10_000_000);
        for (text, capacity) in [
            ("50 packets", Capacity::Count(Segments(50))),
            ("64 KiB", Capacity::Bytes(Bytes(65_536))),
            ("20 ms", Capacity::Bytes(Bytes(25_000))),
            ("1 s", Capacity::Bytes(Bytes(1_250_000))),
        ] {
            let size: QueueSize = text.parse().unwrap();
            assert_eq!(size.at(rate), capacity, "{text}");
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        for text in ["50", "ms", "-1 ms", "50 Mbit/s"] {
            assert!(text.parse::<QueueSize>().unwrap_err().contains("the size of a queue"), "{text}");
        }
    }
}
