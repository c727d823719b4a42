//! Man pages and shell completions, generated from the same definitions as `--help`.

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::Shell;

/// The shells for which completions are written.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes `man/*.1` and `completions/*` into `folder`.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let [man, completions] = ["man", "completions"].map(|name| folder.join(name));
    fs::create_dir_all(&man)?;
    clap_mangen::generate_to(reknit_cli::command(), &man)?;
    fs::create_dir_all(&completions)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut reknit_cli::command(), "reknit", &completions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_man_page_and_completions() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let scripts = ["reknit.bash", "_reknit", "reknit.fish"].map(|name| read(&format!("completions/{name}")));
        let command = reknit_cli::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert!(names.contains(&"compare"), "{names:?}");
        for name in names {
            assert!(read(&format!("man/reknit-{name}.1")).contains(".SH SYNOPSIS"), "{name}");
            assert!(scripts.iter().all(|script| script.contains(name)), "{name}");
        }
        assert!(read("man/reknit.1").contains("reknit\\-compare(1)"));
    }
}
