//! `reknit schema`: JSON Schemas of files and results, for editors and validators.

use clap::ValueEnum;
use reknit_compare::schema;

use crate::{Failure, output};

/// Print the JSON Schema of a result or of a TOML file
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Save the output to a file. An editor with a TOML language server then completes and checks TOML \
files whose first line is `#:schema` and the name of the schema file (docs/guide/own-path.md)."
)]
pub(crate) struct Args {
    /// Print the schema of this kind of document
    #[arg(value_enum, value_name = "KIND")]
    of: Of,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    /// The JSON document of `reknit compare --json`
    Result,
    /// The JSON document of `reknit analyze --json`
    Analysis,
    /// The JSON document of `reknit analyze SENDER RECEIVER --json`
    BothEnds,
    /// The JSON document of `reknit analyze FILE.qlog --json`
    Qlog,
    /// The JSON document of `reknit replay --json`
    Replay,
    /// A path file
    Path,
    /// A scenario file, with or without axes
    Scenario,
    /// A variant file
    Variant,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let schema = match args.of {
        Of::Result => schema::result(),
        Of::Analysis => schema::of::<reknit_trace::Analysis>(),
        Of::BothEnds => schema::of::<reknit_trace::BothEnds>(),
        Of::Qlog => schema::of::<reknit_trace::qlog::QlogAnalysis>(),
        Of::Replay => schema::of::<reknit_compare::Replay>(),
        Of::Path => schema::path(),
        Of::Scenario => schema::scenario(),
        Of::Variant => schema::variant(),
    };
    let text = serde_json::to_string_pretty(&schema).map_err(|error| Failure::Failed(error.to_string()))?;
    output::print(&format!("{text}\n"))
}
