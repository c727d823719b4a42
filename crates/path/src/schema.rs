//! The JSON Schema of path files, derived from the types that read them.

use reknit_config::schema::tagged;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::stages;

/// The schema of a path file; `tcp` is the schema of its table of TCP options.
pub fn schema(tcp: &Value) -> Value {
    let stages = json!({ "type": "array", "items": tagged("kind", &stages()) });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A reknit path",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "description": { "type": "string", "description": "A description of the path in one sentence." },
            "source": { "type": "string", "description": "The source of the path's numbers." },
            "forward": with(&stages, "The stages that data passes through, in order."),
            "reverse": with(&stages, "The stages that ACKs pass through, in order."),
            "drop_notices": {
                "type": "boolean",
                "description": "Whether stages report the packets that they drop to receivers whose flows ask for it."
            },
            "tcp": with(tcp, "TCP options of both ends."),
        },
    })
}

fn with(schema: &Value, description: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = description.into();
    schema
}

/// Each kind of stage with its schema.
fn stages() -> Vec<(String, Value)> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let kinds = stages::schemas(&mut settings.into_generator());
    let one = |(kind, schema): (&str, schemars::Schema)| {
        let mut schema = schema.to_value();
        schema["properties"]["name"] =
            json!({ "type": "string", "description": "The name of the stage in overrides and errors." });
        (kind.to_owned(), schema)
    };
    kinds.into_iter().map(one).collect()
}
