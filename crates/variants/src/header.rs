//! The `//!` header of an algorithm's file. Lists and documentation are generated from it.

/// A parsed header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The first line, without markup.
    pub title: String,
    /// The other blocks: each paragraph on one line, tables and lists line by line.
    pub blocks: Vec<String>,
}

impl Header {
    /// The header of the file with this text.
    pub fn parse(file: &str) -> Header {
        let lines =
            file.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
        let mut blocks: Vec<String> = Vec::new();
        let mut block = String::new();
        for line in lines.chain([""]) {
            if line.trim().is_empty() {
                blocks.extend(Some(std::mem::take(&mut block)).filter(|block| !block.is_empty()));
                continue;
            }
            let starts = starts_a_line(line);
            if !block.is_empty() {
                block.push(if starts { '\n' } else { ' ' });
            }
            block.push_str(if starts { line.trim_end() } else { line.trim() });
        }
        let first = if blocks.is_empty() { String::new() } else { blocks.remove(0) };
        match first.strip_prefix("# ") {
            Some(title) => Header { title: title.to_owned(), blocks },
            // Without a title, the first sentence is the title, and the paragraph is kept whole.
            None => Header { title: sentence(&first).to_owned(), blocks: [vec![first.clone()], blocks].concat() },
        }
    }

    /// The paragraph with the heading `name`, without the heading; it begins with `**name.**` or `**name**`.
    pub fn section(&self, name: &str) -> Option<&str> {
        self.blocks.iter().find_map(|block| {
            let rest = block.strip_prefix("**")?.strip_prefix(name)?;
            Some(rest.strip_prefix(".**").or_else(|| rest.strip_prefix("**"))?.trim_start_matches([',', ' ']))
        })
    }
}

/// True for table rows, list items, and lines indented by four spaces.
fn starts_a_line(line: &str) -> bool {
    ["|", "* ", "- ", "    "].iter().any(|mark| line.starts_with(mark))
}

/// The text up to the first full stop, colon or line break that ends the sentence.
fn sentence(text: &str) -> &str {
    let end = [". ", ": ", "\n"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_title_and_sections() {
        let file = "//! # ABC\n//!\n//! Somebody: Paper.\n//! 2001.\n//!\n//! **What it changes.** Much\n//! indeed.\n//!\n\
                    //! **Rules**, on an ACK. 1: go.\n//! - 2: stop\n//!   there.\n//!\n\
                    //! | a | b |\n//! |---|---|\n\nuse x;\n//! not this";
        let header = Header::parse(file);
        assert_eq!(header.title, "ABC");
        assert_eq!(header.blocks[0], "Somebody: Paper. 2001.");
        assert_eq!(header.section("What it changes"), Some("Much indeed."));
        assert_eq!(header.section("Rules"), Some("on an ACK. 1: go.\n- 2: stop there."));
        assert_eq!(header.section("State"), None);
        assert_eq!(header.blocks.last().unwrap(), "| a | b |\n|---|---|");
    }

    #[test]
    fn without_a_title_the_first_sentence_is_the_title() {
        let header = Header::parse("//! One rule: always so. More.\n//! And more.\n");
        assert_eq!(header.title, "One rule");
        assert_eq!(header.blocks, ["One rule: always so. More. And more."]);
    }
}
