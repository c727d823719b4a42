//! The page of a variant, which is the comment at the head of its file, agrees with its entry in the code, and neither has a
//! placeholder of the template.

use reknit_variants::{VARIANTS, Variant};

/// What the template has where an author must write something.
const PLACEHOLDERS: [&str; 3] = ["Author", "Title. Journal", "year, §section"];

fn header(variant: &Variant) -> String {
    format!("{} {}", variant.page.title, variant.page.blocks.join(" "))
}

/// Years, and numbers of RFCs, sections and reports.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words.map(|word| word.trim_matches('.')).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn there_are_no_placeholders() {
    for variant in VARIANTS.iter() {
        let texts = [&header(variant), variant.name, variant.summary, variant.source].join(" ");
        for placeholder in PLACEHOLDERS {
            assert!(!texts.contains(placeholder), "{}: `{placeholder}` is a placeholder of the template", variant.name);
        }
    }
}

#[test]
fn sources_and_status_are_those_of_the_header() {
    for variant in VARIANTS.iter() {
        let (name, source, header) = (variant.name, variant.source, header(variant));
        let known: Vec<&str> = numbers(&header).collect();
        for number in numbers(source) {
            assert!(known.contains(&number), "{name}: the header does not have {number} of the source `{source}`");
        }
        let (_, status) = header.split_once("**Status.**").unwrap_or_else(|| panic!("{name}: no status in the header"));
        let given = variant.status.to_string();
        assert!(status.to_lowercase().contains(&given), "{name}: its header is not {given}");
    }
}

#[test]
fn no_header_says_which_results_come_out() {
    for variant in VARIANTS.iter() {
        let header = header(variant);
        assert!(!header.contains("Reproduces"), "{}: results are measured by the study", variant.name);
    }
}
