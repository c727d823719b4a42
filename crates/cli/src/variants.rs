//! `reknit variants`: what can be compared.

use std::fmt::Write;

use reknit_compare::about::{self, Setting};
use reknit_compare::catalogue::Document;
use reknit_compare::names;
use reknit_variants::header::Header;
use reknit_variants::{VARIANTS, Variant, file};

use crate::table::{self, Align, Column};
use crate::{Failure, output};

/// List the variants, or explain one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The variant to explain
    name: Option<String>,
    /// Print it as a complete variant file, to edit and use with --variant-file
    #[arg(long, requires = "name", conflicts_with = "json")]
    toml: bool,
    /// Print everything as JSON (docs/json.md describes it)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let width = table::terminal_width();
    let Some(name) = &args.name else {
        return if args.json {
            output::print_json(&Document::of(VARIANTS))
        } else {
            output::print(&list(width, table::may_colour()))
        };
    };
    let variant = reknit_variants::find(name).map_err(|error| {
        let near = names::nearest(name, VARIANTS.iter().map(|variant| variant.name));
        Failure::Usage(names::with_guess(error.to_string(), near))
    })?;
    if args.json {
        output::print_json(&Document::of(std::slice::from_ref(variant)))
    } else if args.toml {
        output::print(&file::write(&format!("my-{}", variant.name), variant, &(variant.compose)()))
    } else {
        output::print(&explain(variant, width, table::may_colour()))
    }
}

/// One line for each, by what it does about reordering.
fn list(width: usize, bold: bool) -> String {
    let mut columns = [
        Column::new("variant", 0, Align::Left),
        Column::new("summary", 1, Align::Left),
        Column::new("source", 0, Align::Left),
        Column::new("changes", 0, Align::Left),
        Column::new("peer needs", 0, Align::Left),
        Column::new("status", 0, Align::Left),
    ];
    for variant in VARIANTS {
        let cells = [
            variant.name.to_owned(),
            variant.summary.to_owned(),
            variant.source.to_owned(),
            variant.side.to_string(),
            variant.peer_needs.to_owned(),
            variant.status.to_string(),
        ];
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }
    cut(&mut columns, width);
    let rendered = table::render(&columns, width, bold);
    let mut lines = rendered.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    let mut last = None;
    for (variant, line) in VARIANTS.iter().zip(lines) {
        let family = variant.family();
        if last != Some(family) {
            let _ = writeln!(text, "\n{family}:");
            last = Some(family);
        }
        let _ = writeln!(text, "{line}");
    }
    let more =
        "More about one: reknit variants NAME. Your own from it: reknit variants NAME --toml. All in full: --json.";
    let _ = write!(text, "\n{}\n", table::wrap(more, width, 0));
    text
}

/// Sources and needs share what names, sides and states leave; from 120 columns on there is room for summaries too.
fn cut(columns: &mut [Column; 6], width: usize) {
    const GAPS: usize = 10;
    let fixed: usize = [0, 3, 5].iter().map(|i| columns[*i].width()).sum();
    let left = width.saturating_sub(fixed + GAPS);
    let (source, needs) = (columns[2].width(), columns[4].width());
    if width >= 120 {
        let (source, needs) = (source.min(left / 4), needs.min(left / 5));
        columns[1].cut_to(left.saturating_sub(source + needs));
        columns[2].cut_to(source);
        columns[4].cut_to(needs);
    } else {
        // The summary is left out, and with it a gap.
        let needs = needs.min(left * 2 / 5);
        columns[2].cut_to((left + 2).saturating_sub(needs));
        columns[4].cut_to(needs);
        columns[1].cut_to(width);
    }
}

/// Everything about one.
fn explain(variant: &Variant, width: usize, bold: bool) -> String {
    let composition = (variant.compose)();
    let header = Header::parse(variant.file().1);
    let heading = |text: &str| if bold { format!("\n\x1b[1m{text}\x1b[0m\n") } else { format!("\n{text}\n") };
    let mut text = table::wrap(&format!("{}: {}", variant.name, variant.summary), width, 2);
    text.push('\n');
    text.push_str(&heading(&header.title));
    text.push_str(&header.blocks.iter().map(|block| prose(block, width)).collect::<Vec<_>>().join("\n"));
    text.push_str(&heading("In short"));
    text.push_str(&table::definitions(&about::facts(variant, &composition), width));
    text.push_str(&heading("Parts (* differs from `sack`)"));
    text.push_str(&table::definitions(&about::parts_by_seam(&composition), width));
    let settings = about::settings(&composition);
    if !settings.is_empty() {
        text.push_str(&heading("Parameters"));
        text.push_str(&parameter_list(&settings, width));
    }
    text.push_str(&heading("Your own"));
    let name = variant.name;
    let own = format!("reknit variants {name} --toml > my.toml");
    let _ = writeln!(text, "{own}\nreknit compare --path two-paths-50ms --variant-file my.toml");
    text
}

/// A block of a header without its mark-up.
fn prose(block: &str, width: usize) -> String {
    let mut text = String::new();
    for line in block.replace("**", "").lines() {
        let _ = writeln!(text, "{}", table::wrap(line, width, 0));
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
