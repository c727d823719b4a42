//! JSON Schemas (2020-12) of what is written and of the files that are read.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::Comparison;

/// The schema of a result. `required` has its fields in the order in which they are written.
pub fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn tcp() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<reknit_tcp::Config>().to_value()
}

/// A path file.
pub fn path() -> Value {
    reknit_path::schema(&tcp())
}

/// A variant file.
pub fn variant() -> Value {
    reknit_variants::schema()
}

/// A scenario file.
pub fn scenario() -> Value {
    reknit_sim::schema(&path(), &variant(), &tcp())
}

/// The JSON document of `reknit compare --json`.
pub fn result() -> Value {
    of::<Comparison>()
}
