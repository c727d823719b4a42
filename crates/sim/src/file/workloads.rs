//! The workloads in a scenario file.

use std::fmt;
use std::num::NonZeroU32;

use reknit_config::{KeyError, read};
use reknit_path::Variate;
use reknit_units::{Bytes, Duration, Share};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::{Table, Value};

use crate::plan::WorkloadShare;
use crate::workload::{Transactions, Workload, is_possible};

/// The kinds of workloads.
pub(super) const KINDS: [&str; 4] = ["bulk", "transfer", "files", "requests"];

/// A workload with its share of the flows.
pub(super) fn workload_share(group: &str, j: usize, mut table: Table) -> Result<WorkloadShare, KeyError> {
    #[derive(Deserialize)]
    struct Own {
        share: Share,
        name: Option<String>,
    }
    let own = ["share", "name"].into_iter().filter_map(|key| table.remove_entry(key)).collect();
    let Own { share, name } = read(own)?;
    if share == Share::ZERO {
        return Err(KeyError::new("share", "must be more than 0"));
    }
    let name = format!("{group}/{}", name.unwrap_or_else(|| j.to_string()));
    Ok(WorkloadShare { name, share, workload: workload(Value::Table(table))? })
}

/// The name of a kind, or a table with a kind and its keys.
pub(super) fn workload(value: Value) -> Result<Workload, KeyError> {
    let mut table = match value {
        Value::Table(table) => table,
        Value::String(kind) => Table::from_iter([("kind".to_owned(), Value::String(kind))]),
        other => {
            let message = format!("must be a kind or a table with a `kind`, not {}", reknit_config::shown(&other));
            return Err(KeyError::new("", message));
        }
    };
    let Some(Value::String(kind)) = table.remove("kind") else {
        return Err(KeyError::new("kind", format!("missing; allowed are {}", KINDS.join(", "))));
    };
    let workload = match kind.as_str() {
        "bulk" => read::<EmptyTable>(table).map(|EmptyTable {}| Workload::Bulk),
        "transfer" => read::<Transfer>(table).map(|Transfer { size, back }| match back {
            Bytes::ZERO => Workload::Transfer(size),
            back => Workload::Exchange { size, back },
        }),
        "files" => read::<Files>(table).map(|files| Workload::Transactions(files.into())),
        "requests" => read::<Requests>(table).map(|requests| Workload::Transactions(requests.into())),
        _ => {
            let what = format!("unknown workload `{kind}`");
            return Err(KeyError::new("kind", reknit_config::unknown(&what, &kind, &KINDS)));
        }
    };
    check(workload.map_err(|error| error.map_message(|message| format!("{message} ({kind})")))?)
}

/// Refuses sizes that can never arrive completely, and counts of zero.
fn check(workload: Workload) -> Result<Workload, KeyError> {
    let Some(Transactions { request, response, count, .. }) = workload.transactions() else { return Ok(workload) };
    if let Workload::Exchange { back, .. } = workload
        && !is_possible(back)
    {
        return Err(KeyError::new("back", "must be at most 1024 TiB"));
    }
    let asks = request > Bytes::ZERO;
    let key = if asks { "response" } else { "size" };
    for (key, size) in [(key, response), ("request", if asks { request } else { response })] {
        if !is_possible(size) {
            return Err(KeyError::new(key, "must be at least 1 B and at most 1024 TiB"));
        }
    }
    if count == Some(0) { Err(KeyError::new("count", "must be at least 1")) } else { Ok(workload) }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyTable {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    /// The amount of data.
    size: Bytes,
    /// What the receiver of data sends meanwhile, from the arrival of the first data on.
    #[serde(default)]
    back: Bytes,
}

/// Files back to back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    /// Size of each file.
    size: Bytes,
    /// Time from the end of one transaction to the beginning of the next.
    #[serde(default = "no_time")]
    think: Variate,
    /// Transactions per connection.
    #[serde(default)]
    #[schemars(schema_with = "per_connection")]
    per_connection: PerConnection,
    /// The number of transactions; by default they continue until the end of the run.
    count: Option<u64>,
}

impl From<Files> for Transactions {
    fn from(files: Files) -> Transactions {
        Transactions {
            think: files.think,
            per_connection: files.per_connection.0,
            count: files.count,
            ..Transactions::files(files.size)
        }
    }
}

/// Requests and responses.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requests {
    /// Size of each request.
    #[schemars(with = "Bytes")]
    request: NotZero,
    /// Size of each response.
    response: Bytes,
    /// Time from the end of one transaction to the beginning of the next.
    #[serde(default = "no_time")]
    think: Variate,
    /// Transactions per connection.
    #[serde(default)]
    #[schemars(schema_with = "per_connection")]
    per_connection: PerConnection,
    /// The number of transactions; by default they continue until the end of the run.
    count: Option<u64>,
}

impl From<Requests> for Transactions {
    fn from(requests: Requests) -> Transactions {
        let Requests { request: NotZero(request), response, think, per_connection, count } = requests;
        Transactions { request, response, think, per_connection: per_connection.0, count }
    }
}

pub(super) fn no_time() -> Variate {
    Variate::Constant(Duration::ZERO)
}

/// A size of at least one byte.
struct NotZero(Bytes);

impl<'de> Deserialize<'de> for NotZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NotZero, D::Error> {
        match Bytes::deserialize(deserializer)? {
            Bytes::ZERO => {
                Err(D::Error::custom("must be at least 1 B; use the kind `files` for data without requests"))
            }
            size => Ok(NotZero(size)),
        }
    }
}

/// Transactions on a connection: a number, or `all`.
struct PerConnection(Option<NonZeroU32>);

impl Default for PerConnection {
    fn default() -> PerConnection {
        PerConnection(Some(NonZeroU32::MIN))
    }
}

impl<'de> Deserialize<'de> for PerConnection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PerConnection, D::Error> {
        struct NumberOrAll;

        impl Visitor<'_> for NumberOrAll {
            type Value = PerConnection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of at least 1, or \"all\"")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<PerConnection, E> {
                let number = u32::try_from(number).ok().and_then(NonZeroU32::new);
                number.map(|n| PerConnection(Some(n))).ok_or_else(|| E::custom("must be at least 1, or \"all\""))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PerConnection, E> {
                match text {
                    "all" => Ok(PerConnection(None)),
                    _ => Err(E::custom(format!("`{text}` is neither a number of at least 1 nor \"all\""))),
                }
            }
        }

        deserializer.deserialize_any(NumberOrAll)
    }
}

fn per_connection(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "integer", "minimum": 1 }, { "const": "all" }] })
}
