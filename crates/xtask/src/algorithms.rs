//! `docs/reference/algorithms`: one page for each variant, generated from the header of its file.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use reknit_compare::about::{facts, parts_by_seam, settings};
use reknit_variants::{VARIANTS, Variant};

use crate::hooks::{self, Hook};

/// Writes all pages, and removes those of variants that no longer exist.
pub(crate) fn write(folder: &Path, hooks: &[Hook], generated: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        fs::remove_file(entry?.path())?;
    }
    fs::write(folder.join("README.md"), index(generated))?;
    for variant in VARIANTS.iter() {
        fs::write(folder.join(format!("{}.md", variant.name)), page(variant, hooks, generated))?;
    }
    Ok(())
}

fn index(generated: &str) -> String {
    let mut text = format!(
        "# Algorithms\n\n{generated}\n\nA variant is the TCP of one end of a connection: a named combination of algorithms. \
         There are {} variants, grouped into families by what they do about reordering. To begin, compare `sack`, `linux`, \
         `bbr`, `pr` and `reknit`; `oracle` is the reference. Users can [define their own variants](../variants.md) in \
         files.\n\n\
         *The survey* is Leung, Li, Yang: An Overview of Packet Reordering in TCP, IEEE TPDS 18(4), 2007. *RR-TCP* is \
         Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK, ICSI TR-02-006, 2002. The pages of \
         the variants give the other sources in full. *Faithful* means that every rule of the source is implemented and \
         tested; *partial*, that some rules are our interpretation; *untested*, that nothing was compared with the numbers of \
         the source; *original*, that there is no source: [this project's own](../../design/reknit.md). *Changes* says which end of the \
         connection differs from `sack`.\n",
        VARIANTS.len()
    );
    let mut last = None;
    for variant in VARIANTS.iter() {
        let family = variant.family();
        if last != Some(family.key) {
            let title = family.to_string();
            let (first, rest) = title.split_at(1);
            let _ = write!(
                text,
                "\n## {}{rest}\n\n| variant | what | source | changes | peer needs | status |\n|---|---|---|---|---|---|\n",
                first.to_uppercase()
            );
            last = Some(family.key);
        }
        let Variant { name, summary, source, side, peer_needs, status, .. } = variant;
        let _ = writeln!(text, "| [{name}]({name}.md) | {summary} | {source} | {side} | {peer_needs} | {status} |");
    }
    text
}

fn page(variant: &Variant, hooks: &[Hook], generated: &str) -> String {
    let composition = (variant.compose)();
    let page = variant.page;
    let name = variant.name;
    let mut text = format!("# {name}\n\n{generated}\n\n{}\n\n| | |\n|---|---|\n", variant.summary);
    for (key, fact) in facts(variant, &composition) {
        let _ = writeln!(text, "| {key} | {} |", cell(&fact));
    }
    let _ = writeln!(text, "| file | [{file}](../../../crates/variants/src/{file}) |", file = page.file);
    let _ = write!(text, "\n## {}\n", page.title);
    for block in page.blocks {
        let _ = write!(text, "\n{block}\n");
    }
    text.push_str(
        "\n## Parts\n\nA variant consists of one algorithm for each *seam*, a decision that a TCP has to make. `*` marks the seams at which it \
         differs from `sack`.\n\n\
         | | seam | algorithm |\n|---|---|---|\n",
    );
    for (seam, part) in parts_by_seam(&composition) {
        let (mark, seam) = seam.split_at(1);
        let _ = writeln!(text, "| {} | `{}` | {} |", mark.trim(), seam.trim(), cell(&part));
    }
    let parts: Vec<_> = composition.all_parts().map(|(seam, part)| (format!("{seam:?}"), part)).collect();
    let lines = hooks::lines(hooks, &parts);
    if !lines.is_empty() {
        let _ = write!(
            text,
            "\nWhat the engine has for a single algorithm ([all hooks](../../design/hooks.md)):\n\n{lines}"
        );
    }
    let settings = settings(&composition);
    if !settings.is_empty() {
        let _ = write!(text, "\n## Parameters\n\n| seam | parameter | value | what |\n|---|---|---|---|\n");
        for setting in settings {
            let (seam, key) = (setting.seam, &setting.parameter.name);
            let _ = writeln!(text, "| `{seam}` | `{key}` | {} | {} |", setting.shown(), cell(&setting.meaning()));
        }
    }
    let _ = write!(
        text,
        "\n`reknit variants {name} --toml` prints all of this as a [variant file](../variants.md), which you can edit to make your own.\n"
    );
    text
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
