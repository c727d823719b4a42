//! The messages of deserializers in the words of our own errors: keys instead of fields, no names of Rust's types, and
//! suggestions for names that are unknown.

use crate::words::unknown;

/// What `message`, made by serde, says about a key.
pub(crate) fn humanize_serde(message: &str) -> String {
    unknown_name(message).or_else(|| wrong_value(message)).unwrap_or_else(|| message.to_owned())
}

fn unknown_name(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    if message.starts_with("missing field ") {
        return Some(format!("`{name}` is missing"));
    }
    if message.starts_with("duplicate field ") {
        return Some(format!("`{name}` is given twice"));
    }
    if message.starts_with("unknown field ") {
        return Some(if known.is_empty() {
            "unknown key; no other key is allowed here".to_owned()
        } else {
            unknown("unknown key", name, &known)
        });
    }
    message.starts_with("unknown variant ").then(|| unknown(&format!("unknown value `{name}`"), name, &known))
}

fn wrong_value(message: &str) -> Option<String> {
    let (kind, rest) = message.split_once(": ")?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    match kind {
        "invalid type" => Some(format!("must be {}, not {}", meaning(expected), shown(found))),
        "invalid value" => Some(format!("must be {}, not {}", range(expected), shown(found))),
        _ => None,
    }
}

/// A value as files write it: `string "y"` is `"y"`, and ``integer `3` `` is `3`.
fn shown(found: &str) -> &str {
    match found {
        "map" => "a table",
        "sequence" => "a list",
        _ => match found.strip_prefix("string ") {
            Some(text) => text,
            None => found.split('`').nth(1).unwrap_or(found),
        },
    }
}

/// What serde calls the value that it expects.
fn meaning(expected: &str) -> String {
    let plain = match expected {
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "a map" => "a table",
        "a sequence" => "a list",
        _ if expected.starts_with("a nonzero ") => "a whole number of at least 1",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    };
    match expected.strip_prefix("a tuple of size ") {
        Some(size) => format!("a list of {size} values"),
        None => plain.to_owned(),
    }
}

/// The same for a value of the right type.
fn range(expected: &str) -> String {
    let most = match expected {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => i64::MAX.cast_unsigned(), // TOML has no larger numbers
        _ => return meaning(expected),
    };
    format!("a whole number from 0 to {most}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are of interest")]
    struct All {
        #[serde(default)]
        on: bool,
        #[serde(default)]
        port: u16,
        #[serde(default)]
        ratio: f64,
        #[serde(default)]
        pair: (u8, u8),
        #[serde(default)]
        list: Vec<u8>,
        #[serde(default)]
        text: String,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        word: Option<Word>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are of interest")]
    struct Inner {
        rate: u32,
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Drop,
        Delay,
    }

    #[test]
    fn errors_of_all_types_are_in_words() {
        for (text, says) in [
            ("on = \"maybe\"", "on: must be true or false, not \"maybe\""),
            ("port = \"y\"", "port: must be a whole number, not \"y\""),
            ("port = -1", "port: must be a whole number from 0 to 65535, not -1"),
            ("port = 1.5", "port: must be a whole number, not 1.5"),
            ("ratio = true", "ratio: must be a number, not true"),
            ("pair = 3", "pair: must be a list of 2 values, not 3"),
            ("list = { a = 1 }", "list: must be a list, not a table"),
            ("text = [1]", "text: must be a string, not a list"),
            ("inner = 3", "inner: must be a table, not 3"),
            ("inner = {}", "inner: `rate` is missing"),
            ("inner = { rat = 1 }", "inner.rat: unknown key; did you mean `rate`? Allowed are rate"),
            ("moon = 1", "moon: unknown key; allowed are on, port, ratio, pair, list, text, inner, word"),
            ("word = \"lose\"", "word: unknown value `lose`; allowed are drop, delay"),
            ("word = \"dela\"", "word: unknown value `dela`; did you mean `delay`? Allowed are drop, delay"),
        ] {
            let error = crate::read::<All>(text.parse().unwrap()).unwrap_err().to_string();
            assert_eq!(error, says, "{text}");
        }
    }
}
