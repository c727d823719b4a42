//! JSON Schemas of tables in which one key decides which other keys are allowed.

use serde_json::{Map, Value, json};

/// The schema of a table whose key `tag` names one of `kinds`, each a name and the schema of such a table without the key.
///
/// A validator reports the errors for the kind that is named, instead of saying that the table matches no kind. Editors do not
/// look behind conditions for keys to complete, so the keys of all kinds are repeated beside the conditions, in a list of
/// alternatives that accepts everything.
pub fn tagged(tag: &str, kinds: &[(String, Value)]) -> Value {
    let names: Vec<&String> = kinds.iter().map(|(name, _)| name).collect();
    let condition = |(name, schema): &(String, Value)| {
        let mut schema = schema.clone();
        schema["properties"][tag] = json!({});
        json!({ "if": { "properties": { tag: { "const": name } }, "required": [tag] }, "then": schema })
    };
    let keys = |(_, schema): &(String, Value)| {
        let mut keys: Map<String, Value> = schema["properties"].as_object().cloned().unwrap_or_default();
        keys.remove(tag);
        json!({ "properties": keys })
    };
    json!({
        "type": "object",
        "required": [tag],
        "properties": { tag: { "enum": names } },
        "allOf": kinds.iter().map(condition).collect::<Vec<_>>(),
        "anyOf": kinds.iter().map(keys).chain([json!({})]).collect::<Vec<_>>(),
    })
}

/// The same if the key may be missing; the table must then match any kind.
pub fn tagged_or_any(tag: &str, kinds: &[(String, Value)]) -> Value {
    let mut schema = tagged(tag, kinds);
    schema["required"] = json!([]);
    let any: Vec<&Value> = kinds.iter().map(|(_, schema)| schema).collect();
    if let Some(conditions) = schema["allOf"].as_array_mut() {
        conditions.push(json!({ "if": { "not": { "required": [tag] } }, "then": { "anyOf": any } }));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_condition_and_its_keys_can_be_completed() {
        let kind = |key: &str| json!({ "properties": { key: { "type": "string" } }, "additionalProperties": false });
        let schema = tagged("kind", &[("link".to_owned(), kind("rate")), ("loss".to_owned(), kind("share"))]);
        assert_eq!(schema["properties"]["kind"]["enum"], json!(["link", "loss"]));
        let of_loss = &schema["allOf"][1];
        assert_eq!(of_loss["if"]["properties"]["kind"]["const"], "loss");
        assert_eq!(of_loss["then"]["properties"], json!({ "share": { "type": "string" }, "kind": {} }));
        assert_eq!(schema["anyOf"][1], json!({ "properties": { "share": { "type": "string" } } }));
        assert_eq!(schema["anyOf"][2], json!({}));
        let any = tagged_or_any("kind", &[("link".to_owned(), kind("rate"))]);
        assert_eq!((&any["required"], any["allOf"].as_array().unwrap().len()), (&json!([]), 2));
    }
}
