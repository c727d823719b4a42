//! `cargo xtask new FAMILY NAME`: a new variant and its test from the template, entered in all lists.

use std::path::{Path, PathBuf};

use reknit_variants::FAMILIES;

/// Writes the files of the variant `name` below `root`, and enters it in the lists. Returns the changed files, relative to
/// `root`; the first is that of the algorithm.
///
/// # Errors
/// If the family is unknown or the name is taken or invalid. Nothing is written then.
pub fn variant(root: &Path, family: &str, name: &str) -> Result<Vec<PathBuf>, String> {
    let families: Vec<&str> = FAMILIES.iter().map(|family| family.key).collect();
    if !families.contains(&family) {
        return Err(format!("{family}: no such family; allowed are {}", families.join(", ")));
    }
    let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !name.split('-').all(is_word) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(format!("{name}: write a name in lower case, such as `rr-ta`"));
    }
    if reknit_variants::find(name).is_ok() {
        return Err(format!("{name}: there is already a variant with this name"));
    }
    let (module, variants) = (name.replace('-', "_"), Path::new("crates/variants"));
    let source = variants.join(format!("src/{family}/{module}.rs"));
    let test = variants.join(format!("tests/vectors/{module}.rs"));
    for file in [&source, &test] {
        if root.join(file).exists() {
            return Err(format!("{}: already exists", file.display()));
        }
    }
    let edit = |file: &str, edit: &dyn Fn(&str) -> Option<String>| {
        let file = variants.join(file);
        let changed = edit(&read(root, &file)?);
        Ok::<_, String>((
            file.clone(),
            changed.ok_or_else(|| format!("{}: it does not have the expected form", file.display()))?,
        ))
    };
    let files = [
        (source, algorithm(&read(root, &variants.join("src/template.rs"))?, name)),
        (test, worked_example(&read(root, &variants.join("tests/vectors/template.rs"))?, family, name, &module)),
        edit(&format!("src/{family}/mod.rs"), &|text| {
            with_variant(&with_module(text, "pub mod", &module)?, family, name, &module)
        })?,
        edit("src/algorithms.rs", &|text| with_algorithm(text, family, name, &module))?,
        edit("tests/vectors/main.rs", &|text| with_module(text, "mod", &module))?,
    ];
    for (file, text) in &files {
        std::fs::write(root.join(file), text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(files.map(|(file, _)| file).into())
}

fn read(root: &Path, file: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{}: {error}", file.display()))
}

/// `rr-ta` as the name of a type: `RrTa`.
fn type_name(name: &str) -> String {
    let capital = |part: &str| format!("{}{}", part[..1].to_uppercase(), &part[1..]);
    name.split('-').map(capital).collect()
}

fn algorithm(template: &str, name: &str) -> String {
    template.replace("Patient", &type_name(name))
}

fn worked_example(template: &str, family: &str, name: &str, module: &str) -> String {
    // Lines that only the unregistered template needs.
    let is_of_the_template = |line: &&str| {
        ["The template is in no list", "DupThresh", "Composition", "use reknit_variants::"]
            .iter()
            .any(|part| line.contains(part))
    };
    let lines = template.lines().filter(|line| !is_of_the_template(line));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    text.replace("the template, `src/template.rs`", &format!("`src/{family}/{module}.rs`"))
        .replace("&composition", &format!("&variant(\"{name}\")"))
        .replace("config, vector}", "config, variant, vector}")
}

/// Inserts `mod module;` in sort order.
fn with_module(text: &str, keyword: &str, module: &str) -> Option<String> {
    let name = |line: &str| {
        let declared = line.strip_suffix(';').filter(|line| !line.starts_with(char::is_whitespace))?;
        declared.rsplit_once("mod ").map(|(_, name)| name.to_owned())
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines.iter().rposition(|line| name(line).is_some())?;
    let after = lines.iter().position(|line| name(line).is_some_and(|name| name.as_str() > module));
    lines.insert(after.unwrap_or(last + 1), format!("{keyword} {module};"));
    Some(lines.join("\n") + "\n")
}

/// The text of a family's `mod.rs` with the variant at the end, and in its list.
fn with_variant(text: &str, family: &str, name: &str, module: &str) -> Option<String> {
    let (constant, page) = (module.to_uppercase(), format!("{family}_{module}").to_uppercase());
    let list = text.find("pub const VARIANTS: &[Variant] = &[")?;
    let end = list + text[list..].find("];")?;
    let separator = if text[..end].trim_end().ends_with(',') { "    " } else { ", " };
    let close = if separator == ", " { "" } else { ",\n" };
    Some(format!(
        "{}{separator}{constant}{close}{}
const {constant}: Variant = Variant {{
    name: \"{name}\",
    aliases: &[],
    summary: \"sack that waits for more duplicate ACKs\",
    source: \"Author 2000, section 2\",
    side: crate::variant::ChangedEnd::Sender,
    peer_needs: \"SACK\",
    status: crate::variant::Status::Untested,
    page: &crate::pages::{page},
    compose: || crate::composition::Composition {{
        dup_thresh: {module}::{}Config::default().into(),
        ..Default::default()
    }},
}};
",
        &text[..end],
        &text[end..],
        type_name(name),
    ))
}

/// Adds the algorithm to the list of `DupThresh`.
fn with_algorithm(text: &str, family: &str, name: &str, module: &str) -> Option<String> {
    let list = "        dup_thresh: one DupThresh {\n";
    let (before, after) = text.split_once(list)?;
    let kind = type_name(name);
    let entry = format!(
        "            /// Wait for more duplicate ACKs.\n            {kind}(crate::{family}::{module}::{kind}Config),\n"
    );
    Some(format!("{before}{list}{entry}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_stay_sorted() {
        let text = "//! Doc.\n\npub mod a;\npub(crate) mod c;\n\nuse x;\n";
        assert_eq!(with_module(text, "mod", "b").unwrap(), text.replace("a;\n", "a;\nmod b;\n"));
        assert_eq!(with_module(text, "mod", "d").unwrap(), text.replace("c;\n", "c;\nmod d;\n"));
    }
}
