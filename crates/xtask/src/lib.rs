//! Generates documentation in `docs` from the sources.

mod algorithms;
mod causes;
pub mod kernel;
pub mod new;
pub mod readme;
pub mod results;
pub mod rfcs;
pub mod security;
mod unsafe_code;

use std::path::Path;

/// Writes the generated pages to `docs`: `reference/algorithms/`, `reference/causes.md`,
/// `reference/pictures/` and `design/unsafe.md`.
///
/// # Errors
/// One line that names the file and what is wrong.
pub fn docs(docs: &Path) -> Result<(), String> {
    let folder = docs.join("reference/algorithms");
    algorithms::write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = docs.join("design/unsafe.md");
    std::fs::create_dir_all(docs.join("design")).map_err(|error| format!("{}: {error}", page.display()))?;
    std::fs::write(&page, unsafe_code::page(&root)?).map_err(|error| format!("{}: {error}", page.display()))?;
    causes::write(&docs.join("reference"))
}
