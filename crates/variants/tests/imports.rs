//! Files import only from files above them in the table of `lib.rs`, and there are no circular imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules of the crate, in the order of that table.
fn order(lib: &str) -> Vec<&str> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | ")?.split('|').next());
    rows.flat_map(|modules| modules.split('`').skip(1).step_by(2)).collect()
}

/// The text of each source file by its module path, for example `undo::eifel`.
fn sources(folder: &Path, module: &str, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let inner = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        if path.is_dir() {
            sources(&path, &inner, into);
        } else if name == "mod" {
            into.insert(module.to_owned(), fs::read_to_string(path).unwrap());
        } else {
            into.insert(inner, fs::read_to_string(path).unwrap());
        }
    }
}

/// The files from which `text` imports, by its `use crate::...` lines, without those of its unit tests.
fn imports(text: &str, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let uses = code.split("use crate::").skip(1).filter_map(|rest| rest.split(';').next());
    let paths = uses.flat_map(|path| match path.split_once('{') {
        Some((stem, names)) => {
            let names = names.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(|name| format!("{stem}{name}")).collect()
        }
        None => vec![path.to_owned()],
    });
    let file = |path: String| {
        let mut path = path.as_str();
        while !files.contains_key(path) {
            path = path.rsplit_once("::")?.0;
        }
        Some(path.to_owned())
    };
    paths.filter_map(file).collect()
}

#[test]
fn every_file_imports_only_from_modules_listed_before_it() {
    let mut files = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    let lib = files.remove("lib").unwrap();
    let order = order(&lib);
    let mut unsettled: BTreeMap<String, BTreeSet<String>> =
        files.iter().map(|(file, text)| (file.clone(), imports(text, &files))).collect();
    let imported_by = unsettled.clone();
    let combines =
        |file: &str| imported_by[file].iter().any(|other| ["composition", "variant"].contains(&other.as_str()));
    let place = |file: &str| {
        let (family, in_folder) = match file.split_once("::") {
            Some((family, _)) => (family, true),
            None => (file, files.keys().any(|other| other.starts_with(&format!("{file}::")))),
        };
        let row = if in_folder && combines(file) { "variant" } else { family };
        order.iter().position(|module| *module == row)
    };
    assert!(unsettled.values().any(|imported| !imported.is_empty()));
    for (file, imported) in &unsettled {
        let own = place(file).unwrap_or_else(|| panic!("{file} is not in the table of `lib.rs`"));
        for other in imported {
            assert!(place(other).unwrap() <= own, "{file} imports {other}, which is listed after it");
        }
    }
    // A file that imports only settled files is settled. Files left at the end are in a circle or import from one.
    loop {
        let settled: Vec<String> =
            unsettled.iter().filter(|(_, imported)| imported.is_empty()).map(|(file, _)| file.clone()).collect();
        if settled.is_empty() {
            break;
        }
        for file in &settled {
            unsettled.remove(file);
            for imported in unsettled.values_mut() {
                imported.remove(file);
            }
        }
    }
    assert!(unsettled.is_empty(), "circles: {unsettled:#?}");
}
