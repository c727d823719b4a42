//! JSON Schemas (2020-12) of results and of input files.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::Comparison;

/// The schema of a result. `required` lists its fields in the order in which they are written.
pub fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The fields of a type in the order in which they are written, each with its schema.
pub fn fields(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name, &schema["properties"][name]))
}

/// The schema that a field refers to, if any; it is one of the definitions of `root`.
pub(crate) fn definition<'a>(root: &'a Value, field: &Value) -> Option<&'a Value> {
    let alternatives = field["anyOf"].as_array().into_iter().flatten();
    let reference = std::iter::once(field).chain(alternatives).find_map(|schema| schema["$ref"].as_str())?;
    root.pointer(reference.strip_prefix('#')?)
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
