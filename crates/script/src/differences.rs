//! The scripts with which the kernel does something else, and who is right.

use serde::Deserialize;

/// The list.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// The version of the kernel: its first two numbers.
    pub kernel: String,
    /// The differences in the order of the scripts.
    #[serde(default)]
    pub difference: Vec<Difference>,
}

/// One difference.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The script: its path in `scripts`, without the extension.
    pub script: String,
    /// The line of the script that differs first.
    pub line: usize,
    /// What the kernel does there.
    pub kernel: String,
    /// Who is right by the RFC.
    pub right: Right,
    /// Why, with the section.
    pub why: String,
    /// It depends on the moment: in some runs the kernel does what the script says.
    #[serde(default)]
    pub sometimes: bool,
}

/// Who is right by the RFC.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// The RFC allows both.
    Both,
    /// The kernel.
    Kernel,
    /// reknit.
    Reknit,
}

impl Right {
    /// As the page shows it.
    pub fn name(self) -> &'static str {
        match self {
            Right::Both => "both",
            Right::Kernel => "the kernel",
            Right::Reknit => "reknit",
        }
    }
}

impl Differences {
    /// Reads the list.
    ///
    /// # Errors
    /// One line about what is wrong.
    pub fn parse(text: &str) -> Result<Differences, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim().replace('\n', " "))
    }

    /// The difference of `script`, if it has one.
    pub fn of(&self, script: &str) -> Option<&Difference> {
        self.difference.iter().find(|difference| difference.script == script)
    }
}
