//! All pages of the repository: their links, their words, and what they say about where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use xtask::pages::Page;

/// What a page for users does not speak of: our aims, and how things were.
const NOT_FOR_USERS: [&str; 6] =
    ["goal", "earlier version", "earlier versions", "measured again", "not reached", "of the report"];
/// Folders without pages or sources of ours.
const SKIPPED: [&str; 4] = ["target", "out", "artifacts", "corpus"];

/// All files below `folder` with one of the extensions, relative to the repository.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    fn collect(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                    collect(&path, extensions, found);
                }
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
                found.push(path);
            }
        }
    }
    let root = xtask::root().canonicalize().unwrap();
    let mut found = Vec::new();
    collect(&root.join(folder), extensions, &mut found);
    found.sort();
    found.iter().map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect()
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(xtask::root().join(page)).unwrap()
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The anchors of the headings, as GitHub and the site make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
                let slug: String = heading.take().unwrap_or_default().to_lowercase().chars().filter(kept).collect();
                let slug = slug.replace(' ', "-");
                let numbered = (1..).map(|n| format!("{slug}-{n}"));
                let free = std::iter::once(slug.clone()).chain(numbered).find(|slug| !anchors.contains(slug));
                anchors.extend(free);
            }
            _ => {}
        }
    }
    anchors
}

/// The targets of links and pictures.
fn links(text: &str) -> Vec<String> {
    let target = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    };
    parse(text).filter_map(target).collect()
}

/// What is wrong with a link, if anything.
fn wrong(page: &Path, link: &str, all: &BTreeMap<PathBuf, BTreeSet<String>>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, fragment)| (path, Some(fragment)));
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { page.to_owned() } else { normal(&folder.join(path)) };
    if !xtask::root().join(&target).exists() {
        return Some(format!("{}: {link}: no such file", page.display()));
    }
    let fragment = fragment?;
    let has = all.get(&target).is_some_and(|anchors| anchors.contains(fragment));
    (!has).then(|| format!("{}: {link}: no such heading", page.display()))
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            normal.pop();
        } else if part.as_os_str() != "." {
            normal.push(part);
        }
    }
    normal
}

#[test]
fn links_lead_to_files_and_headings() {
    let texts: BTreeMap<PathBuf, String> =
        files("", &["md"]).into_iter().map(|page| (page.clone(), read(&page))).collect();
    let all: BTreeMap<_, _> = texts.iter().map(|(page, text)| (page.clone(), anchors(text))).collect();
    let found: Vec<(&PathBuf, String)> =
        texts.iter().flat_map(|(page, text)| links(text).into_iter().map(move |link| (page, link))).collect();
    assert!(found.len() > 1000, "only {} links", found.len());
    let wrong: Vec<String> = found.iter().filter_map(|(page, link)| wrong(page, link, &all)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_link_is_found() {
    let page = Path::new("docs/guide/compare.md");
    let all = BTreeMap::from([(page.to_owned(), anchors("# A title\n\n## `a --b`: c\n\n## A title\n"))]);
    for right in ["#a-title", "#a---b-c", "#a-title-1", "../README.md", "https://host.invalid/x"] {
        assert_eq!(wrong(page, right, &all), None, "{right}");
    }
    for link in ["#a", "#a-title-2", "README.md", "../README.md#nothing"] {
        assert!(wrong(page, link, &all).is_some(), "{link}");
    }
}

#[test]
fn sources_name_pages_that_exist() {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    let mut named = 0;
    for file in files("", &["rs", "py", "toml", "pyi", "yml"]) {
        let text = read(&file);
        for (at, _) in text.match_indices("docs/") {
            let end = text[at..].find(|c| !is_path(c)).map_or(text.len(), |length| at + length);
            let page = text[at..end].trim_end_matches('.');
            let is_start = !text[..at].ends_with(is_path);
            if is_start && Path::new(page).extension().is_some_and(|extension| extension == "md") {
                named += 1;
                assert!(xtask::root().join(page).exists(), "{}: {page}: no such page", file.display());
            }
        }
    }
    assert!(named > 30, "only {named}");
}

#[test]
fn pages_for_users_are_few_and_speak_to_users() {
    let pages = [files("docs/guide", &["md"]), files("docs/reference", &["md"])].concat();
    let by_hand: Vec<_> = pages.iter().filter(|page| !page.starts_with("docs/reference/algorithms")).collect();
    assert!(by_hand.len() <= 20, "{} pages", by_hand.len());
    for page in &pages {
        for (number, line) in (1..).zip(read(page).lines()) {
            let line = line.to_lowercase();
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
            let line = format!(" {} ", words.join(" "));
            for phrase in NOT_FOR_USERS {
                let is_there = [" ", "s "].iter().any(|end| line.contains(&format!(" {phrase}{end}")));
                assert!(!is_there, "{}:{number}: `{phrase}` is not for users", page.display());
            }
        }
    }
}

#[test]
fn every_generated_page_says_by_which_command_and_at_which_commit() {
    let kinds = Page::value_variants().iter().flat_map(|page| page.places());
    let folders = kinds.filter(|place| Path::new(place).extension().is_none()).flat_map(|place| files(place, &["md"]));
    let single = ["docs/reference/causes.md", "docs/design/rfcs.md", "docs/design/unsafe.md", "docs/design/hooks.md"]
        .map(PathBuf::from);
    let results = files("study/results", &["md"]).into_iter().filter(|page| !page.ends_with("README.md"));
    let pages: Vec<PathBuf> = folders.chain(single).chain(results).collect();
    assert!(pages.len() > 60, "only {} pages", pages.len());
    for page in pages {
        let text = read(&page);
        let line = text.lines().nth(2).unwrap_or_default();
        let rest = line.strip_prefix("*Generated by `").and_then(|rest| rest.split_once('`'));
        let (command, rest) = rest.unwrap_or_else(|| panic!("{}: {line:?}", page.display()));
        let commit = rest.strip_prefix(" at commit `").and_then(|rest| rest.strip_suffix("`.*"));
        let is_commit = commit.is_some_and(|commit| commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit()));
        let is_current = rest == " from the sources of this commit.*";
        assert!(!command.is_empty() && (is_commit || is_current), "{}: {line:?}", page.display());
    }
}
