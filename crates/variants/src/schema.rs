//! The JSON Schema of variant files, from the algorithms that the registered variants consist of.

use serde_json::{Map, Value, json};

use crate::library::Library;
use crate::registry::VARIANTS;
use crate::seam::Seam;

/// The schema of a variant file.
pub fn schema() -> Value {
    let library = Library::new();
    let bases: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    let switch = |description: &str| json!({ "type": "boolean", "description": description });
    let mut properties = json!({
        "name": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_.+-]*$",
            "description": "What lists and results call it; no built-in variant may have the name.",
        },
        "base": { "enum": bases, "description": "The variant that it starts from; `sack` by default." },
        "summary": { "type": "string", "description": "What it is, in a line." },
        "sack": switch("Whether it asks for SACK."),
        "timestamps": switch("Whether it asks for timestamps."),
        "shares_reordering": switch("Whether connections to the same host share what they know of reordering."),
    });
    for seam in Seam::ALL {
        properties[seam.key()] = slot(&library, seam);
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

/// What may fill `seam`: one of its algorithms, or several.
fn slot(library: &Library, seam: Seam) -> Value {
    let algorithms: Vec<Value> =
        library.kinds(seam).iter().flat_map(|kind| algorithms(kind.name, kind.schema())).collect();
    let one = json!({ "anyOf": algorithms });
    let mut schema = if seam.takes_many() { json!({ "type": "array", "items": one }) } else { one };
    schema["description"] = seam.question().into();
    schema
}

/// The members of a family, or the one algorithm; without `algorithm` a table changes the parameters of the base's.
fn algorithms(name: &str, schema: Value) -> Vec<Value> {
    if let Some(family) = schema["oneOf"].as_array() {
        return family.clone();
    }
    let mut schema = schema;
    let mut properties: Map<String, Value> = schema["properties"].as_object().cloned().unwrap_or_default();
    properties.insert("algorithm".to_owned(), json!({ "const": name }));
    schema["type"] = "object".into();
    schema["properties"] = properties.into();
    schema["additionalProperties"] = false.into();
    vec![schema]
}
