//! The JSON Schema of scenario files, derived from the types that read them.

use reknit_config::schema::tagged;
use reknit_units::Share;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::file::{EmptyTable, Files, Flows, Requests, ScenarioTable, Transfer};

/// The schema of a scenario file, with or without axes; `path`, `variant` and `tcp` are the schemas of those tables.
pub fn schema(path: &Value, variant: &Value, tcp: &Value) -> Value {
    let path = either(&path_name(), path);
    let variant = either(&json!({ "type": "string" }), variant);
    let mut schema = of::<ScenarioTable>();
    schema["title"] = "A reknit scenario".into();
    refine(&mut schema, "path", &path);
    refine(&mut schema, "variants", &json!({ "type": "array", "items": variant }));
    let count = json!({ "type": "integer", "minimum": 1 });
    refine(
        &mut schema,
        "flows",
        &either(&count, &json!({ "type": "array", "minItems": 1, "items": flows(&variant, tcp) })),
    );
    schema["properties"]["variant"] = variant;
    schema["properties"]["axes"] = json!({ "type": "object", "description": "For sweeps: keys, each with a list of values or a table of named values." });
    // Keys of the path are allowed beside those of the scenario.
    schema["patternProperties"] = json!({ r"^(forward|reverse|tcp)\.": {} });
    schema["properties"]["drop_notices"] = json!({ "type": "boolean" });
    schema
}

fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn path_name() -> Value {
    json!({ "type": "string" })
}

fn either(one: &Value, other: &Value) -> Value {
    json!({ "anyOf": [one, other] })
}

/// Adds to the schema of a property; its description remains.
fn refine(schema: &mut Value, property: &str, more: &Value) {
    let description = schema["properties"][property]["description"].clone();
    let mut more = more.clone();
    more["description"] = description;
    schema["properties"][property] = more;
}

fn flows(variant: &Value, tcp: &Value) -> Value {
    let mut schema = of::<Flows>();
    let share = json!({ "share": of::<Share>(), "name": { "type": "string" } });
    refine(&mut schema, "workload", &either(&json!({ "enum": ["bulk"] }), &kinds(&json!({}))));
    let mix = json!({ "type": "array", "minItems": 1, "items": kinds(&share) });
    refine(&mut schema, "mix", &mix);
    refine(&mut schema, "variant", variant);
    refine(&mut schema, "tcp", tcp);
    schema
}

/// A table that names a kind of workload, with `more` properties.
fn kinds(more: &Value) -> Value {
    let kinds = [
        ("bulk", of::<EmptyTable>()),
        ("transfer", of::<Transfer>()),
        ("files", of::<Files>()),
        ("requests", of::<Requests>()),
    ];
    let one = |(kind, mut schema): (&str, Value)| {
        for (name, property) in more.as_object().into_iter().flatten() {
            schema["properties"][name] = property.clone();
        }
        (kind.to_owned(), schema)
    };
    tagged("kind", &kinds.map(one))
}
