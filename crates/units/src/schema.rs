//! Schemas of the quantities: the type names of parameters, for lists and documents.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Bytes, Capacity, Duration, Rate, Segments, Share};

macro_rules! quantity {
    ($type:ty, $name:literal, $json:tt $(, $key:literal: $value:literal)*) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": $json, "format": $name $(, $key: $value)* })
            }
        }
    };
}

quantity!(Duration, "duration", "string");
quantity!(Bytes, "size", "string");
quantity!(Rate, "rate", "string");
quantity!(Share, "share", ["number", "string"], "minimum": 0, "maximum": 1);
quantity!(Segments, "segments", "integer");
quantity!(Capacity, "capacity", ["integer", "string"]);
