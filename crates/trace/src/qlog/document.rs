//! The structure of a qlog: one JSON document with traces, or a sequence of records whose first one has the trace's header.
//! Events are passed on one by one, as they are read.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::data::Data;
use super::value::{Fields, Into, List, Scalar, drain};

/// An event as written.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) time: Scalar,
    /// The time is the span since the event before.
    pub(super) is_delta: bool,
    pub(super) name: Scalar,
    pub(super) group: Scalar,
    pub(super) path: Scalar,
    pub(super) data: Data,
}

/// What is said about a trace besides its events. It may come after them.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Its number in the file.
    pub(super) number: usize,
    pub(super) vantage: Scalar,
    pub(super) group: Scalar,
    pub(super) original_id: Scalar,
    pub(super) time_format: Scalar,
    pub(super) time_units: Scalar,
    /// The columns of events that are arrays.
    pub(super) columns: Vec<Scalar>,
}

/// Takes the events of a file.
pub(super) trait Take {
    /// An event. The error is the user's: what is wrong with it.
    fn event(&mut self, header: &Header, event: Raw) -> Result<(), String>;
    /// The trace is over.
    fn trace(&mut self, header: Header);
}

/// A file that is read.
pub(super) struct Reading<'a> {
    pub(super) to: &'a mut dyn Take,
    pub(super) version: Scalar,
    pub(super) schema: Scalar,
    /// The header of a sequence of records.
    pub(super) sequence: Option<Header>,
    pub(super) traces: usize,
    pub(super) events: u64,
    /// The name of another format that this is.
    pub(super) other_format: Option<&'static str>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(to: &'a mut dyn Take) -> Reading<'a> {
        let (version, schema) = (Scalar::None, Scalar::None);
        Reading { to, version, schema, sequence: None, traces: 0, events: 0, other_format: None }
    }

    fn give<E: de::Error>(&mut self, header: &Header, event: Raw) -> Result<(), E> {
        self.events += 1;
        let number = self.events;
        self.to.event(header, event).map_err(|why| E::custom(format_args!("{WRONG}event {number}: {why}")))
    }

    fn new_header(&mut self) -> Header {
        let number = self.traces;
        self.traces += 1;
        Header { number, ..Header::default() }
    }
}

/// The beginning of errors about what an event says, as opposed to how it is written.
pub(super) const WRONG: &str = "\u{1}";

/// Reads a JSON value of the file: the document, or a record.
pub(super) struct Record<'a, 'b>(pub(super) &'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Record<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum RecordKey {
    QlogVersion,
    FileSchema,
    Traces,
    Trace,
    Connections,
    Constants,
    #[serde(alias = "relative_time", alias = "delta_time")]
    Time,
    Name,
    GroupId,
    Data,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for Record<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a qlog: an object, or a sequence of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reading = self.0;
        let mut event = Raw::default();
        while let Some(key) = map.next_key()? {
            match key {
                RecordKey::QlogVersion => reading.version = map.next_value()?,
                RecordKey::FileSchema => reading.schema = map.next_value()?,
                RecordKey::Traces => map.next_value_seed(Traces(reading))?,
                RecordKey::Trace => {
                    let mut header = reading.new_header();
                    map.next_value_seed(Trace { reading, header: &mut header })?;
                    if let Some(before) = reading.sequence.replace(header) {
                        reading.to.trace(before);
                    }
                }
                RecordKey::Connections | RecordKey::Constants => {
                    let is_old = matches!(key, RecordKey::Connections);
                    reading.other_format = Some(if is_old { "qlog before draft-00" } else { "a NetLog of Chrome" });
                    map.next_value::<IgnoredAny>()?;
                }
                RecordKey::Time => event.time = map.next_value()?,
                RecordKey::Name => event.name = map.next_value()?,
                RecordKey::GroupId => event.group = map.next_value()?,
                RecordKey::Data => map.next_value_seed(Into(&mut event.data))?,
                RecordKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if event.name.text().is_some() && !event.time.is_none() {
            let header = reading.sequence.take().unwrap_or_else(|| reading.new_header());
            let given = reading.give(&header, event);
            reading.sequence = Some(header);
            given?;
        }
        Ok(())
    }
}

/// The list of traces.
struct Traces<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Traces<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Traces<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            let mut header = self.0.new_header();
            let read = seq.next_element_seed(Trace { reading: &mut *self.0, header: &mut header });
            let is_over = matches!(read, Ok(None));
            if !is_over {
                // A trace that is cut off counts too.
                self.0.to.trace(header);
            }
            if is_over || read?.is_none() {
                return Ok(());
            }
        }
    }
}

/// A trace: its header and, in a document, its events.
struct Trace<'a, 'b> {
    reading: &'a mut Reading<'b>,
    header: &'a mut Header,
}

impl<'de> DeserializeSeed<'de> for Trace<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        Into(&mut self).deserialize(deserializer)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum TraceKey {
    VantagePoint,
    CommonFields,
    Configuration,
    EventFields,
    Events,
    #[serde(other)]
    Other,
}

impl Fields for Trace<'_, '_> {
    type Key = TraceKey;

    fn take<'de, A: MapAccess<'de>>(&mut self, key: TraceKey, map: &mut A) -> Result<(), A::Error> {
        match key {
            TraceKey::VantagePoint => map.next_value_seed(Into(&mut Vantage(self.header))),
            TraceKey::CommonFields => map.next_value_seed(Into(&mut Common(self.header))),
            TraceKey::Configuration => map.next_value_seed(Into(&mut Configuration(self.header))),
            TraceKey::EventFields => {
                self.header.columns = map.next_value::<List<Scalar>>()?.0;
                Ok(())
            }
            TraceKey::Events => map.next_value_seed(Events { reading: &mut *self.reading, header: &*self.header }),
            TraceKey::Other => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

/// Defines the fields of a part of a header.
macro_rules! part {
    ($part:ident, $key:ident, $($variant:ident $(($alias:literal))* => $field:ident),+) => {
        struct $part<'a>(&'a mut Header);

        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "snake_case")]
        enum $key {
            $($(#[serde(alias = $alias)])* $variant,)+
            #[serde(other)]
            Other,
        }

        impl Fields for $part<'_> {
            type Key = $key;

            fn take<'de, A: MapAccess<'de>>(&mut self, key: $key, map: &mut A) -> Result<(), A::Error> {
                match key {
                    $($key::$variant => self.0.$field = map.next_value()?,)+
                    $key::Other => drop(map.next_value::<IgnoredAny>()?),
                }
                Ok(())
            }
        }
    };
}

part!(Vantage, VantageKey, Type => vantage);
part!(Configuration, ConfigurationKey, TimeUnits => time_units);
part!(
    Common, CommonKey,
    GroupId => group,
    Odcid("ODCID") => original_id,
    TimeFormat => time_format
);

/// The events of a trace in a document.
struct Events<'a, 'b> {
    reading: &'a mut Reading<'b>,
    header: &'a Header,
}

impl<'de> DeserializeSeed<'de> for Events<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element_seed(OneEvent(self.header))? {
            self.reading.give(self.header, event)?;
        }
        Ok(())
    }
}

/// One event: an object, or an array with the columns of the header.
struct OneEvent<'a>(&'a Header);

impl<'de> DeserializeSeed<'de> for OneEvent<'_> {
    type Value = Raw;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// What a column or a key of an event has.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum EventKey {
    #[serde(alias = "relative_time", alias = "timestamp")]
    Time,
    DeltaTime,
    #[serde(alias = "event", alias = "event_type", alias = "type")]
    Name,
    GroupId,
    PathId,
    Data,
    #[serde(other)]
    Other,
}

/// The columns of the events of quic-go and picoquic that have none.
const USUAL: [EventKey; 4] = [EventKey::Time, EventKey::Other, EventKey::Name, EventKey::Data];

impl EventKey {
    fn of_column(name: &Scalar) -> EventKey {
        let name = name.text().unwrap_or_default().to_ascii_lowercase();
        let name = de::value::StrDeserializer::<de::value::Error>::new(&name);
        EventKey::deserialize(name).unwrap_or(EventKey::Other)
    }
}

impl<'de> Visitor<'de> for OneEvent<'_> {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut event = Raw::default();
        while let Some(key) = map.next_key()? {
            match key {
                EventKey::Time => event.time = map.next_value()?,
                EventKey::DeltaTime => (event.time, event.is_delta) = (map.next_value()?, true),
                EventKey::Name => event.name = map.next_value()?,
                EventKey::GroupId => event.group = map.next_value()?,
                EventKey::PathId => event.path = map.next_value()?,
                EventKey::Data => map.next_value_seed(Into(&mut event.data))?,
                EventKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let given: Vec<EventKey> = self.0.columns.iter().map(EventKey::of_column).collect();
        let columns = if given.is_empty() { &USUAL[..] } else { &given };
        let mut event = Raw::default();
        for column in columns {
            let is_there = match column {
                EventKey::Data => seq.next_element_seed(Into(&mut event.data))?.is_some(),
                EventKey::Other => seq.next_element::<IgnoredAny>()?.is_some(),
                scalar => {
                    let Some(value) = seq.next_element::<Scalar>()? else { return Ok(event) };
                    event.is_delta |= matches!(scalar, EventKey::DeltaTime);
                    match scalar {
                        EventKey::Time | EventKey::DeltaTime => event.time = value,
                        EventKey::Name => event.name = value,
                        EventKey::GroupId => event.group = value,
                        _ => event.path = value,
                    }
                    true
                }
            };
            if !is_there {
                return Ok(event);
            }
        }
        drain(seq)?;
        Ok(event)
    }
}
