//! The JSON Schema of variant files, generated from the lists of algorithms.

use reknit_config::schema::tagged_or_any;
use serde_json::{Value, json};

use crate::composition;
use crate::parameter::Description;
use crate::registry::VARIANTS;
use reknit_tcp::seams::Seam;

/// The schema of a variant file.
pub fn schema() -> Value {
    let bases: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    let switch = |description: &str| json!({ "type": "boolean", "description": description });
    let mut properties = json!({
        "name": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_.+-]*$",
            "description": "The name in lists and results; it must differ from the names of the built-in variants.",
        },
        "base": { "enum": bases, "description": "The variant that it is based on; `sack` by default." },
        "summary": { "type": "string", "description": "A one-line description." },
        "sack": switch("Whether to offer SACK."),
        "timestamps": switch("Whether to offer timestamps."),
    });
    for seam in Seam::ALL {
        properties[seam.key()] = slot(seam);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A variant of reknit",
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": properties,
    })
}

/// The schema of a seam: one of its algorithms, or several. A table without `algorithm` overrides parameters of the base's
/// algorithm.
fn slot(seam: Seam) -> Value {
    let algorithms: Vec<(String, Value)> = composition::algorithms(seam).iter().map(algorithm).collect();
    let one = tagged_or_any("algorithm", &algorithms);
    let mut schema = if seam.takes_many() { json!({ "type": "array", "items": one }) } else { one };
    schema["description"] = seam.question().into();
    schema
}

fn algorithm(description: &Description) -> (String, Value) {
    let mut schema = description.schema.clone();
    schema["type"] = "object".into();
    schema["additionalProperties"] = false.into();
    (description.name.clone(), schema)
}
