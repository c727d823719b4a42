//! Writes the tables of `docs/design/security.md`: what receivers that lie gain.

use std::path::Path;

const PAGE: &str = "docs/design/security.md";
const BEGIN: &str = "<!-- written by `make security` -->\n";
const END: &str = "<!-- end -->";

/// Runs the attacks and writes the tables in the repository at `root`. Takes minutes.
///
/// # Errors
/// One line that names the file and what is wrong.
pub fn write(root: &Path) -> Result<(), String> {
    let page = root.join(PAGE);
    let failed = |error: std::io::Error| format!("{PAGE}: {error}");
    let text = std::fs::read_to_string(&page).map_err(failed)?;
    let (before, after) = text.split_once(BEGIN).ok_or_else(|| format!("{PAGE}: no {BEGIN}"))?;
    let (_, after) = after.split_once(END).ok_or_else(|| format!("{PAGE}: no {END}"))?;
    let tables = reknit_cli::attack_tables()?;
    std::fs::write(&page, format!("{before}{BEGIN}{tables}{END}{after}")).map_err(failed)
}
