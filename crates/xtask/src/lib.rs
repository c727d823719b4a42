//! Generates documentation in `docs` from the sources.

mod algorithms;
mod causes;
pub mod kernel;
pub mod results;
pub mod rfcs;

use std::path::Path;

/// Writes the generated pages to `docs`: `algorithms/`, `causes.md` and `pictures/`.
///
/// # Errors
/// One line that names the file and what is wrong.
pub fn docs(docs: &Path) -> Result<(), String> {
    let folder = docs.join("algorithms");
    algorithms::write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    causes::write(docs)
}
