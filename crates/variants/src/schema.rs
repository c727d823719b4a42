//! The JSON Schema of variant files, generated from the algorithms of the registered variants.

use reknit_config::schema::tagged_or_any;
use serde_json::{Value, json};

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
            "description": "The name in lists and results; it must differ from the names of the built-in variants.",
        },
        "base": { "enum": bases, "description": "The variant that it is based on; `sack` by default." },
        "summary": { "type": "string", "description": "A one-line description." },
        "sack": switch("Whether to offer SACK."),
        "timestamps": switch("Whether to offer timestamps."),
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

/// What may fill `seam`: one of its algorithms, or several. Without `algorithm` a table changes the parameters of the base's.
fn slot(library: &Library, seam: Seam) -> Value {
    let algorithms: Vec<(String, Value)> =
        library.kinds(seam).iter().flat_map(|kind| algorithms(kind.name, kind.schema())).collect();
    let one = tagged_or_any("algorithm", &algorithms);
    let mut schema = if seam.takes_many() { json!({ "type": "array", "items": one }) } else { one };
    schema["description"] = seam.question().into();
    schema
}

/// The members of a family, or the one algorithm, with their names.
fn algorithms(name: &str, mut schema: Value) -> Vec<(String, Value)> {
    if let Some(family) = schema["oneOf"].as_array() {
        let name = |member: &Value| member["properties"]["algorithm"]["const"].as_str().unwrap_or_default().to_owned();
        return family.iter().map(|member| (name(member), member.clone())).collect();
    }
    schema["type"] = "object".into();
    schema["additionalProperties"] = false.into();
    vec![(name.to_owned(), schema)]
}
