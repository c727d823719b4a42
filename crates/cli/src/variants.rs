//! `reknit variants`: lists and explains the variants.

use std::fmt::Write;

use reknit_compare::about::{self, Setting};
use reknit_compare::catalogue::Document;
use reknit_sim::Transports;
use reknit_variants::{VARIANTS, Variant, file};

use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

/// List the variants, or explain one
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  reknit variants
  reknit variants rack
  reknit variants rack --toml > my.toml")]
pub(crate) struct Args {
    /// Explain this variant
    name: Option<String>,
    /// Print the variant as a complete TOML file, to edit and use with --variant-file
    #[arg(long, requires = "name", conflicts_with = "json")]
    toml: bool,
    /// Print everything as JSON (docs/reference/json.md)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, transports: &Transports) -> Result<(), Failure> {
    let screen = Screen::stdout();
    let Some(name) = &args.name else {
        return if args.json {
            output::print_json(&Document::of(&VARIANTS))
        } else {
            output::print(&list(transports, screen))
        };
    };
    if let Some(transport) = transports.find(name) {
        return output::print(&format!("{}\n", table::wrap(transport.about(), screen.text_width(), 0)));
    }
    let variant = reknit_variants::find(name).map_err(|error| Failure::Usage(error.to_string()))?;
    if args.json {
        output::print_json(&Document::of(std::slice::from_ref(variant)))
    } else if args.toml {
        output::print(&file::write(&format!("my-{}", variant.name), variant, &(variant.compose)()))
    } else {
        output::print(&explain(variant, screen))
    }
}

/// All variants, grouped by family, then the other transports.
fn list(transports: &Transports, screen: Screen) -> String {
    let mut columns = [
        Column::new("variant", 0, Align::Left),
        Column::wrapping("summary", 0, 24),
        Column::new("changes", 1, Align::Left),
        Column::wrapping("peer needs", 3, 14),
        Column::new("status", 1, Align::Left),
        Column::wrapping("source", 2, 18),
    ];
    let mut headings = Vec::new();
    let mut last = None;
    for (row, variant) in VARIANTS.iter().enumerate() {
        let family = variant.family();
        if last != Some(family.key) {
            headings.push((row, table::wrap(&format!("{}: {family}", family.key), screen.text_width(), 2)));
            last = Some(family.key);
        }
        let cells = [
            variant.name.to_owned(),
            variant.summary.to_owned(),
            variant.side.to_string(),
            variant.peer_needs.to_owned(),
            variant.status.to_string(),
            variant.source.to_owned(),
        ];
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }
    let table = table::render_grouped(&columns, &headings, screen);
    let hint = "Explain one variant: reknit variants NAME. Print it as a file to edit: reknit variants NAME --toml. Select a family: \
                --variants family:NAME. --json prints all details.";
    format!("{table}\n{}{}\n", others(transports, screen), table::wrap(hint, screen.text_width(), 0))
}

/// The list of other transports; nothing if the program has none.
fn others(transports: &Transports, screen: Screen) -> String {
    let items: Vec<(String, String)> =
        transports.iter().map(|transport| (format!("  {}", transport.name()), transport.about().to_owned())).collect();
    if items.is_empty() {
        return String::new();
    }
    format!("Other transports\n{}\n", table::definitions(&items, screen.text_width()))
}

/// The page of one variant: header, facts, parts, parameters.
fn explain(variant: &Variant, screen: Screen) -> String {
    let width = screen.text_width();
    let composition = (variant.compose)();
    let heading = |text: &str| format!("\n{}\n", screen.heading(text));
    let mut text = table::wrap(&format!("{}: {}", variant.name, variant.summary), width, 2);
    text.push('\n');
    text.push_str(&heading(variant.page.title));
    text.push_str(&variant.page.blocks.iter().map(|block| prose(block, width)).collect::<Vec<_>>().join("\n"));
    text.push_str(&heading("Summary"));
    text.push_str(&table::definitions(&about::facts(variant, &composition), width));
    text.push_str(&heading("Parts (* differs from `sack`)"));
    text.push_str(&table::definitions(&about::parts_by_seam(&composition), width));
    let settings = about::settings(&composition);
    if !settings.is_empty() {
        text.push_str(&heading("Parameters"));
        text.push_str(&parameter_list(&settings, width));
    }
    text.push_str(&heading("Start your own variant"));
    let name = variant.name;
    let own = format!("reknit variants {name} --toml > my.toml");
    let _ = writeln!(text, "{own}\nreknit compare --path two-paths-50ms --variant-file my.toml");
    text
}

/// A block of a header without its Markdown.
fn prose(block: &str, width: usize) -> String {
    let mut text = String::new();
    for line in block.replace("**", "").lines() {
        // Wrapping would break the columns of a Markdown table.
        let line = if line.starts_with('|') { line.to_owned() } else { table::wrap(line, width, 0) };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn parameter_list(settings: &[Setting], width: usize) -> String {
    let line = |setting: &Setting| {
        let key = format!("{}.{}", setting.seam, setting.parameter.name);
        (format!("{key} = {}", setting.shown()), setting.meaning())
    };
    let mut text = String::new();
    for (key, meaning) in settings.iter().map(line) {
        let meaning = table::wrap(&meaning, width.saturating_sub(4), 0).replace('\n', "\n    ");
        let _ = writeln!(text, "{}\n    {meaning}", table::wrap(&key, width, 4));
    }
    text
}
