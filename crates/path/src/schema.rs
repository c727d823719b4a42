//! The JSON Schema of path files, from the types that read them.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::stages;

/// The schema of a path file; `tcp` is that of its table of TCP options.
pub fn schema(tcp: &Value) -> Value {
    let stages = json!({ "type": "array", "items": { "oneOf": stages() } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A path of reknit",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "description": { "type": "string", "description": "What the path is, in a sentence." },
            "source": { "type": "string", "description": "Where it comes from." },
            "forward": with(&stages, "Stages on the way of data, in order."),
            "reverse": with(&stages, "Stages on the way of ACKs, in order."),
            "drop_notices": {
                "type": "boolean",
                "description": "Stages that drop packets tell the receivers, as far as their flows have asked for it."
            },
            "tcp": with(tcp, "Options of the TCP at both ends."),
        },
    })
}

fn with(schema: &Value, description: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = description.into();
    schema
}

/// One schema for each kind of stage.
fn stages() -> Vec<Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let kinds = stages::schemas(&mut settings.into_generator());
    let one = |(kind, schema): (&str, schemars::Schema)| {
        let mut schema = schema.to_value();
        schema["properties"]["kind"] = json!({ "const": kind });
        schema["properties"]["name"] =
            json!({ "type": "string", "description": "What overrides and errors call the stage." });
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        schema["required"] = std::iter::once(Value::from("kind")).chain(required).collect();
        schema
    };
    kinds.into_iter().map(one).collect()
}
