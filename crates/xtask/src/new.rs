//! `cargo xtask new FAMILY NAME`: a new variant and its test from the template, entered in all lists.

use std::path::{Path, PathBuf};

use reknit_variants::Family;

/// Writes the files of the variant `name` below `root`, and enters it in the lists. Returns the changed files, relative to
/// `root`; the first is that of the algorithm.
///
/// # Errors
/// If the family is unknown or the name is taken or invalid. Nothing is written then.
pub fn variant(root: &Path, family: &str, name: &str) -> Result<Vec<PathBuf>, String> {
    let families: Vec<&str> = Family::ALL.iter().map(|family| family.key()).collect();
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
            return Err(format!("{}: it exists", file.display()));
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
        (source, algorithm(&read(root, &variants.join("src/template.rs"))?, name, &module)),
        (test, worked_example(&read(root, &variants.join("tests/vectors/template.rs"))?, family, name, &module)),
        edit(&format!("src/{family}/mod.rs"), &|text| with_module(text, "pub(crate) mod", &module))?,
        edit("src/registry.rs", &|text| with_entry(text, family, &module))?,
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

fn algorithm(template: &str, name: &str, module: &str) -> String {
    template
        .replace("pub const VARIANT", "pub(crate) const VARIANT")
        .replace("\"patient\"", &format!("\"{name}\""))
        .replace("\"template.rs\"", &format!("\"{module}.rs\""))
        .replace("Patient", &type_name(name))
}

fn worked_example(template: &str, family: &str, name: &str, module: &str) -> String {
    let lines = template.lines().filter(|line| !line.contains("The template is not registered"));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    text.replace("the template, `src/template.rs`", &format!("`src/{family}/{module}.rs`"))
        .replace("(template::VARIANT.compose)()", &format!("variant(\"{name}\")"))
        .replace("use reknit_variants::template;\n", "")
        .replace("config, vector}", "config, variant, vector}")
}

/// The text with a line for `module` among those of the other modules, which are sorted.
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

/// The text of the registry with `module` as the last entry of `family`.
fn with_entry(text: &str, family: &str, module: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let start = lines.iter().position(|line| line.contains(&format!(", {family}, \"")) && line.ends_with('{'))?;
    let end = start + lines[start..].iter().position(|line| line.trim() == "}")?;
    lines.insert(end, format!("        {module}::VARIANT,"));
    Some(lines.join("\n") + "\n")
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
