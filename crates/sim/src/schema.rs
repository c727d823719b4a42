//! The JSON Schema of scenario files, from the types that read them.

use reknit_units::Share;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::file::{Files, Flows, Nothing, Requests, Top, Transfer};

/// The schema of a scenario file, with or without axes; `path`, `variant` and `tcp` are those of what may stand in it.
pub fn schema(path: &Value, variant: &Value, tcp: &Value) -> Value {
    let path = either(&path_name(), path);
    let variant = either(&json!({ "type": "string" }), variant);
    let mut schema = of::<Top>();
    schema["title"] = "A scenario of reknit".into();
    refine(&mut schema, "path", &path);
    refine(&mut schema, "variants", &json!({ "type": "array", "items": variant }));
    let count = json!({ "type": "integer", "minimum": 1 });
    refine(
        &mut schema,
        "flows",
        &either(&count, &json!({ "type": "array", "minItems": 1, "items": flows(&variant, tcp) })),
    );
    schema["properties"]["variant"] = variant;
    schema["properties"]["axes"] = json!({ "type": "object", "description": "For sweeps: keys, each with a list of values or a table of named ones." });
    // Keys of the path may stand beside those of the scenario.
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

/// Says more of a property; its description stays.
fn refine(schema: &mut Value, property: &str, more: &Value) {
    let description = schema["properties"][property]["description"].clone();
    let mut more = more.clone();
    more["description"] = description;
    schema["properties"][property] = more;
}

fn flows(variant: &Value, tcp: &Value) -> Value {
    let mut schema = of::<Flows>();
    let share = json!({ "share": of::<Share>(), "name": { "type": "string" } });
    let kinds = || kinds(&json!({}));
    let kind_alone = json!({ "enum": ["bulk"] });
    let workload = json!({ "anyOf": std::iter::once(kind_alone).chain(kinds()).collect::<Vec<_>>() });
    refine(&mut schema, "workload", &workload);
    let mix = json!({ "type": "array", "minItems": 1, "items": { "anyOf": self::kinds(&share) } });
    refine(&mut schema, "mix", &mix);
    refine(&mut schema, "variant", variant);
    refine(&mut schema, "tcp", tcp);
    schema
}

/// One schema for each kind of workload, with `more` properties.
fn kinds(more: &Value) -> Vec<Value> {
    let kinds = [
        ("bulk", of::<Nothing>()),
        ("transfer", of::<Transfer>()),
        ("files", of::<Files>()),
        ("requests", of::<Requests>()),
    ];
    let one = |(kind, mut schema): (&str, Value)| {
        schema["properties"]["kind"] = json!({ "const": kind });
        for (name, property) in more.as_object().into_iter().flatten() {
            schema["properties"][name] = property.clone();
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        schema["required"] = std::iter::once(Value::from("kind")).chain(required).collect();
        schema
    };
    kinds.into_iter().map(one).collect()
}
