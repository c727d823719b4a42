//! `reknit variants`: what can be compared.

use std::fmt::Write;
use std::path::PathBuf;

use reknit_compare::catalogue::Document;
use reknit_compare::names;
use reknit_variants::header::Header;
use reknit_variants::part;
use reknit_variants::part::{Face, Form, Parameter};
use reknit_variants::seam::Seam;
use reknit_variants::{Composition, Family, VARIANTS, Variant, file, rules};

use crate::table::{self, Align, Column};
use crate::{Failure, output, reference};

/// List the variants, or explain one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Explain this one
    name: Option<String>,
    /// Print a complete variant file of it, to change and use with --variant-file
    #[arg(long, requires = "name", conflicts_with = "json")]
    toml: bool,
    /// Print everything as JSON (docs/json.md describes it)
    #[arg(long)]
    json: bool,
    /// Write docs/algorithms
    #[arg(long, value_name = "DIR", hide = true, conflicts_with_all = ["name", "toml", "json"])]
    docs: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = &args.docs {
        return reference::write(folder);
    }
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
    let variants = by_family();
    for variant in variants.iter().map(|(_, variant)| variant) {
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
    for ((family, _), line) in variants.iter().zip(lines) {
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

/// All variants, those of one family together.
pub(crate) fn by_family() -> Vec<(Family, &'static Variant)> {
    let mut all: Vec<(Family, &Variant)> = VARIANTS.iter().map(|variant| (variant.family(), variant)).collect();
    all.sort_by_key(|(family, _)| *family);
    all
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
    text.push_str(&table::definitions(&facts(variant, &composition), width));
    text.push_str(&heading("Parts (* differs from `sack`)"));
    text.push_str(&table::definitions(&parts_by_seam(&composition), width));
    let parameters = parameters(&composition);
    if !parameters.is_empty() {
        text.push_str(&heading("Parameters"));
        text.push_str(&parameter_list(&parameters, width));
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

/// What a table of facts says.
pub(crate) fn facts(variant: &Variant, composition: &Composition) -> Vec<(String, String)> {
    let mut facts = vec![
        ("source", variant.source.to_owned()),
        ("changes", variant.side.to_string()),
        ("peer needs", variant.peer_needs.to_owned()),
        ("if it has not", rules::possible_fall_backs(composition).join("; ")),
        ("status", variant.status.to_string()),
        ("also called", variant.aliases.join(", ")),
    ];
    facts.retain(|(_, fact)| !fact.is_empty());
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// Seam and algorithm with what it is; what differs from the base is marked.
pub(crate) fn parts_by_seam(composition: &Composition) -> Vec<(String, String)> {
    let base = Composition::default();
    let mut items = Vec::new();
    for seam in Seam::ALL {
        let (own, usual) = (composition.faces(seam), base.faces(seam));
        let mark = if own == usual { ' ' } else { '*' };
        let describe = |face: &Face| format!("`{}`: {}", face.algorithm, face.form().about);
        let own: Vec<String> = own.iter().map(describe).collect();
        let own = if own.is_empty() { "none".to_owned() } else { own.join("; ") };
        items.push((format!("{mark} {seam}"), own));
    }
    items
}

/// A parameter with the value that a variant gives it.
pub(crate) struct ScenarioOptions {
    pub(crate) seam: Seam,
    pub(crate) parameter: Parameter,
    pub(crate) value: String,
}

impl ScenarioOptions {
    /// The value with its unit, and the default where it is another.
    pub(crate) fn shown(&self) -> String {
        let value = self.parameter.show(&self.value);
        match &self.parameter.default {
            Some(default) if *default != self.value => format!("{value} (default {default})"),
            _ => value,
        }
    }

    /// What it means, and which words are allowed.
    pub(crate) fn meaning(&self) -> String {
        let mut text = self.parameter.meaning.clone();
        for (word, meaning) in &self.parameter.choices {
            let _ = write!(text, " `{word}`: {}", if meaning.is_empty() { "." } else { meaning });
        }
        text
    }
}

/// All parameters of all parts.
pub(crate) fn parameters(composition: &Composition) -> Vec<ScenarioOptions> {
    let mut settings = Vec::new();
    for (seam, face) in Seam::ALL.iter().flat_map(|seam| composition.faces(*seam).into_iter().map(|f| (*seam, f))) {
        let Form { parameters, .. } = face.form();
        for parameter in parameters {
            let value = face.parameters.get(&parameter.name).map_or(String::new(), part::plain);
            settings.push(ScenarioOptions { seam, parameter, value });
        }
    }
    settings
}

fn parameter_list(settings: &[ScenarioOptions], width: usize) -> String {
    let line = |setting: &ScenarioOptions| {
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
