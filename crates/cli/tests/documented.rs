//! The examples in README.md and in the pages of docs/ show what the command prints.

use std::path::Path;
use std::process::Command;

/// What is between two or more spaces.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// The page may show some of the columns, as in a narrow terminal.
fn is_shown_in(documented: &str, line: &str) -> bool {
    let mut cells_of_line = cells(line).into_iter();
    cells(documented).into_iter().all(|cell| cells_of_line.any(|other| other == cell))
}

fn print(arguments: &str, folder: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reknit"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_pages_show_what_the_command_prints() {
    let (root, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), env!("CARGO_TARGET_TMPDIR"));
    for (page, least) in [("README.md", 6), ("docs/guide/compare.md", 2), ("docs/reference/paths.md", 5)] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let mut checked = 0;
        for block in text.split("\n```").skip(1).step_by(2) {
            if let Some(variant) = block.strip_prefix("toml file=patient-rack.toml\nname = \"patient-rack\"") {
                let file = Path::new(folder).join("patient-rack.toml");
                std::fs::write(file, format!("name = \"patient-rack\"{variant}")).unwrap();
            }
            let Some((arguments, documented)) =
                block.strip_prefix("\n$ reknit ").and_then(|text| text.split_once('\n'))
            else {
                continue;
            };
            let printed = print(arguments, folder);
            // A narrow table has other headings.
            let has_numbers = |line: &&str| line.contains(char::is_numeric) && !line.starts_with("variant");
            for line in documented.lines().filter(has_numbers) {
                let found = printed.lines().any(|printed| is_shown_in(line, printed));
                assert!(found, "{page}: `reknit {arguments}` does not print\n{line}\nbut\n{printed}");
                checked += 1;
            }
        }
        assert!(checked >= least, "{page}: only {checked} lines were found");
    }
}
