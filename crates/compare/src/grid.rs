//! A grid of runs: a scenario, and the values of some of its keys (`docs/reference/scenarios.md`).

mod cell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use reknit_config::{InputError, KeyError};
use reknit_sim::{MAX_SEEDS, Transports};
use reknit_variants::Custom;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::point::Point;
use crate::{Error, named_variant, names, variant_setting};

/// The most points of a grid.
const MAX_POINTS: usize = 1_000_000;
/// Where the parameters of variants are kept until the variant of a point is known; no key of a scenario.
const SETTINGS: &str = "variant.";
/// The keys of a scenario that can vary.
const KEYS: [&str; 7] = ["variant", "path", "duration", "loss", "in_order", "phases", "flows"];

/// A scenario with axes.
#[derive(Clone, PartialEq, Debug)]
pub struct GridFile {
    /// The file of the scenario, or its name for errors.
    pub location: String,
    /// The scenario.
    pub table: Table,
    /// The axes; the last one varies fastest.
    pub axes: Vec<Axis>,
    /// Changes of the path that come from the argument `set` and not from the file, each as `KEY=VALUE`.
    pub set_by_argument: Vec<String>,
    /// The transports that may be compared beside the variants.
    pub transports: Transports,
}

/// A key that varies.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// A key of the scenario or of the path, with dots.
    pub key: String,
    /// The values, each preceded by its name in results.
    pub values: Vec<(Value, Value)>,
}

/// All runs of a grid file.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// The axes.
    pub axes: Vec<Axis>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The points in the order of the axes, then of the seeds.
    pub points: Vec<Point>,
    /// Warnings about combinations in the user's variants.
    pub warnings: Vec<String>,
}

impl Axis {
    /// The key with its values, given as a list, or as a table from names in results to values.
    ///
    /// # Errors
    /// If there is no value.
    pub fn new(key: &str, values: Value) -> Result<Axis, KeyError> {
        let values = match values {
            Value::Array(values) => {
                values.into_iter().enumerate().map(|(i, value)| (label(i, &value), value)).collect()
            }
            Value::Table(labelled) => labelled.into_iter().map(|(name, value)| (Value::String(name), value)).collect(),
            _ => Vec::new(),
        };
        Axis::labelled(key, values)
    }

    /// The key with its values, each preceded by its name in results.
    ///
    /// # Errors
    /// If there is no value.
    pub fn labelled(key: &str, values: Vec<(Value, Value)>) -> Result<Axis, KeyError> {
        if values.is_empty() {
            return Err(KeyError::new(key, "must be a list of at least one value").inside("axes"));
        }
        Ok(Axis { key: key.to_owned(), values })
    }
}

impl Axis {
    /// Replaces patterns and families of variants, and patterns of paths, by the names that they match.
    fn expand(&mut self, own: &[Custom]) -> Result<(), String> {
        let names = |text: &str| match self.key.as_str() {
            "variant" if named_variant::is_group(text) => {
                let variants = named_variant::expand(text, own).map_err(|error| error.to_string())?;
                Ok(Some(variants.into_iter().map(|variant| variant.name).collect::<Vec<_>>()))
            }
            "path" if names::is_pattern(text) => {
                names::expand_paths(&[text.to_owned()]).map(Some).map_err(|error| error.to_string())
            }
            _ => Ok::<_, String>(None),
        };
        let mut expanded: Vec<(Value, Value)> = Vec::new();
        for (label, value) in &self.values {
            match value.as_str().filter(|_| label == value).map(names).transpose()?.flatten() {
                None => expanded.push((label.clone(), value.clone())),
                Some(found) => expanded.extend(found.into_iter().map(|name| (name.clone().into(), name.into()))),
            }
        }
        // A name that matches twice is used once.
        self.values.clear();
        for (label, value) in expanded {
            if self.values.iter().all(|(known, _)| *known != label) {
                self.values.push((label, value));
            }
        }
        Ok(())
    }
}

/// The name of a value in results; for a table its own name, or its number.
fn label(i: usize, value: &Value) -> Value {
    match value {
        Value::Table(table) => table.get("name").cloned().unwrap_or_else(|| Value::String(format!("#{i}"))),
        Value::Array(_) => Value::String(format!("#{i}")),
        other => other.clone(),
    }
}

impl GridFile {
    /// Reads a scenario file with a table `[axes]`.
    ///
    /// # Errors
    /// Names the file, the line (for invalid TOML) or the key.
    pub fn load(file: &Path) -> Result<GridFile, Error> {
        let location = file.display().to_string();
        let text = reknit_config::read_file(file, reknit_config::LARGEST_FILE)
            .map_err(|error| InputError::new(&location, error))?;
        let mut table = reknit_config::parse(&location, &text)?;
        let axes = match table.remove("axes") {
            None => Vec::new(),
            Some(Value::Table(axes)) => sorted(axes, &text),
            Some(_) => return Err(wrong(&location, "axes", "write it as a table [axes]")),
        };
        let axes = axes.into_iter().map(|(key, values)| Axis::new(&key, values));
        let axes = axes.collect::<Result<_, _>>().map_err(|error: KeyError| error.at(&location))?;
        Ok(GridFile { location, table, axes, set_by_argument: Vec::new(), transports: Transports::default() })
    }

    /// Overrides `key` with these values: a single one applies to all points, several become an axis. Each is preceded
    /// by its name in results. Without values the file is unchanged.
    ///
    /// # Errors
    /// If the key cannot vary.
    pub fn set(&mut self, key: &str, mut values: Vec<(Value, Value)>) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        // A key of the path may be written with or without `set.`.
        let plain = key.strip_prefix("set.").unwrap_or(key);
        let is_same = |axis: &Axis| axis.key.strip_prefix("set.").unwrap_or(&axis.key) == plain;
        let position = self.axes.iter().position(is_same);
        self.axes.retain(|axis| !is_same(axis));
        self.table.remove(plain);
        if values.len() > 1 {
            let axis = Axis::labelled(key, values).map_err(|error| error.at(&self.location))?;
            self.axes.insert(position.unwrap_or(self.axes.len()), axis);
        } else if let Some((_, value)) = values.pop() {
            insert(&mut self.table, key, value).map_err(|message| wrong(&self.location, key, &message))?;
        }
        Ok(())
    }

    /// Overrides a key of the path by the argument `set`, which errors then name.
    ///
    /// # Errors
    /// If the file has a key `set` that is no table.
    pub fn set_by_argument(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.set_by_argument.push(format!("{key}={value}"));
        self.set(&format!("set.{key}"), vec![(value.into(), value.into())])
    }

    /// Makes these variants an axis, instead of those of the file.
    pub fn set_variants(&mut self, names: &[String]) {
        if !names.is_empty() {
            self.axes.retain(|axis| axis.key != "variant");
            self.table.remove("variant");
            let names = names.iter().map(|name| Value::from(name.as_str())).collect();
            self.table.insert("variants".to_owned(), Value::Array(names));
        }
    }
}

/// The axes in the order of the file. Keys of the path may be written without quotes, which makes them nested tables.
fn sorted(axes: Table, text: &str) -> Vec<(String, Value)> {
    #[derive(Deserialize)]
    struct Order {
        axes: BTreeMap<Spanned<String>, Value>,
    }
    let positions = toml::from_str::<Order>(text).map(|order| order.axes).unwrap_or_default();
    let position = |key: &str| positions.keys().find(|known| known.get_ref() == key).map(|known| known.span().start);
    let mut axes: Vec<(String, Value)> = axes.into_iter().collect();
    axes.sort_by_key(|(key, _)| position(key));
    axes.into_iter().flat_map(|(key, value)| flat(key, value)).collect()
}

fn flat(key: String, value: Value) -> Vec<(String, Value)> {
    let is_of_path = ["forward", "reverse", "tcp", "set"].contains(&key.split('.').next().unwrap_or_default());
    // A parameter of a variant may be written without quotes, too: `variant.SEAM.PARAMETER`.
    let has_parameters = |table: &Table| match key.split_once('.') {
        None => key == "variant" && variant_setting::has_parameters(table),
        Some((first, seam)) => first == "variant" && !seam.contains('.'),
    };
    match value {
        Value::Table(table) if is_of_path || has_parameters(&table) => {
            table.into_iter().flat_map(|(more, value)| flat(format!("{key}.{more}"), value)).collect()
        }
        other => vec![(key, other)],
    }
}

impl Grid {
    /// Resolves all names. Without an axis `variant`, the scenario's variants become an axis. `seeds` overrides the
    /// scenario.
    ///
    /// # Errors
    /// If any point is invalid.
    pub fn new(grid_file: GridFile, seeds: Option<Vec<u64>>, variant_files: &[PathBuf]) -> Result<Grid, Error> {
        let GridFile { location, mut table, mut axes, set_by_argument, transports } = grid_file;
        let seeds = match (seeds, table.remove("seeds")) {
            (Some(seeds), _) => seeds,
            (None, None) => (1..=5).collect(),
            (None, Some(number)) => {
                let number = number.as_integer().and_then(|n| u64::try_from(n).ok());
                let number = number.filter(|n| (1..=u64::from(MAX_SEEDS)).contains(n));
                let message = format!("must be from 1 to {MAX_SEEDS}");
                (1..=number.ok_or_else(|| wrong(&location, "seeds", &message))?).collect()
            }
        };
        if seeds.is_empty() || seeds.len() > MAX_SEEDS as usize {
            return Err(wrong(&location, "seeds", &format!("must be 1 to {MAX_SEEDS} seeds")));
        }
        if let Some(variants) = table.remove("variants")
            && axes.iter().all(|axis| axis.key != "variant")
            && !table.contains_key("variant")
        {
            axes.insert(0, Axis::new("variant", variants).map_err(|error| error.at(&location))?);
        }
        let own = named_variant::load(variant_files)?;
        for axis in &mut axes {
            axis.expand(&own).map_err(|message| wrong(&location, &format!("axes.{}", axis.key), &message))?;
        }
        let size = axes.iter().try_fold(1, |size: usize, axis| size.checked_mul(axis.values.len()));
        let all = size.and_then(|size| size.checked_mul(seeds.len())).filter(|all| *all <= MAX_POINTS);
        let (Some(size), Some(_)) = (size, all) else {
            return Err(wrong(&location, "axes", &format!("the grid has more than {MAX_POINTS} points")));
        };
        let common = cell::Common {
            location: &location,
            variant_files,
            set_by_argument: &set_by_argument,
            transports: &transports,
        };
        let resolve = |i: usize| common.resolve(chosen(&location, &table, &axes, i)?);
        let cells: Vec<(Point, Vec<String>)> = (0..size).into_par_iter().map(resolve).collect::<Result<_, Error>>()?;
        let of_seeds = |point: &Point| seeds.iter().map(|seed| point.with_seed(*seed)).collect::<Vec<_>>();
        let points = cells.iter().flat_map(|(point, _)| of_seeds(point)).collect();
        let warnings: BTreeSet<String> = cells.into_iter().flat_map(|(_, warnings)| warnings).collect();
        Ok(Grid { axes, seeds, points, warnings: warnings.into_iter().collect() })
    }

    /// The names of the values at the point with this number.
    pub fn labels(&self, point: usize) -> Vec<&Value> {
        let picks = picks(&self.axes, point / self.seeds.len());
        self.axes.iter().zip(picks).map(|(axis, pick)| &axis.values[pick].0).collect()
    }
}

fn wrong(location: &str, key: &str, message: &str) -> Error {
    KeyError::new(key, message).at(location).into()
}

/// The index of the value on each axis; the last axis varies fastest.
fn picks(axes: &[Axis], mut i: usize) -> Vec<usize> {
    let mut picks = vec![0; axes.len()];
    for (pick, axis) in picks.iter_mut().zip(axes).rev() {
        *pick = i % axis.values.len();
        i /= axis.values.len();
    }
    picks
}

/// The scenario at one cell of the grid.
fn chosen(location: &str, table: &Table, axes: &[Axis], i: usize) -> Result<Table, Error> {
    let mut table = table.clone();
    // Keys of the path are allowed beside those of the scenario.
    for key in table.keys().filter(|key| is_of_path(key)).cloned().collect::<Vec<_>>() {
        if let Some(value) = table.remove(&key) {
            insert(&mut table, &key, value).map_err(|message| wrong(location, &key, &message))?;
        }
    }
    for (axis, pick) in axes.iter().zip(picks(axes, i)) {
        insert(&mut table, &axis.key, axis.values[pick].1.clone())
            .map_err(|message| wrong(location, &format!("axes.{}", axis.key), &message))?;
    }
    Ok(table)
}

fn is_of_path(key: &str) -> bool {
    key == "drop_notices" || ["forward.", "reverse.", "tcp."].iter().any(|start| key.starts_with(start))
}

fn insert(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    if let Some(key) = key.strip_prefix("set.").or_else(|| is_of_path(key).then_some(key)) {
        let set = table.entry("set").or_insert_with(|| Value::Table(Table::new()));
        let set = set.as_table_mut().ok_or("`set` is not a table")?;
        set.insert(key.to_owned(), value);
        return Ok(());
    }
    if key.starts_with(SETTINGS) {
        let settings = table.entry(SETTINGS).or_insert_with(|| Value::Table(Table::new()));
        settings.as_table_mut().ok_or("write it as an axis")?.insert(key.to_owned(), value);
        return Ok(());
    }
    match key.split('.').collect::<Vec<_>>()[..] {
        [key @ ("variant" | "path" | "duration" | "loss" | "in_order" | "phases" | "flows")] => {
            table.insert(key.to_owned(), value);
            Ok(())
        }
        ["flows", set, ref keys @ ..] if !keys.is_empty() => {
            let flows = table.get_mut("flows").and_then(Value::as_array_mut);
            let flows = flows.ok_or("the scenario has no sets of flows [[flows]]")?;
            put(element(flows, set)?, keys, value)
        }
        _ => {
            let near = reknit_config::did_you_mean(key, KEYS.into_iter());
            Err(format!(
                "unknown key{near}{} {}, parts of flows such as flows.0.count, parameters of variants such as \
                 variant.dup_thresh.fa, and keys of the path such as forward.bottleneck.rate, tcp.min_rto or drop_notices",
                if near.is_empty() { "; these can vary:" } else { " These can vary:" },
                KEYS.join(", ")
            ))
        }
    }
}

/// Finds an element by its number or its name.
fn element<'a>(list: &'a mut [Value], wanted: &str) -> Result<&'a mut Value, String> {
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> =
        list.iter().enumerate().map(|(i, value)| name(value).unwrap_or_else(|| i.to_string())).collect();
    let position = names.iter().position(|name| name == wanted).or_else(|| wanted.parse().ok());
    let near = reknit_config::did_you_mean(wanted, names.iter().map(String::as_str));
    let the = if near.is_empty() { "; the" } else { " The" };
    let missing = format!("unknown entry `{wanted}`{near}{the} entries are {}", names.join(", "));
    position.and_then(|i| list.get_mut(i)).ok_or(missing)
}

fn put(at: &mut Value, keys: &[&str], value: Value) -> Result<(), String> {
    match (keys, at) {
        ([], at) => {
            *at = value;
            Ok(())
        }
        ([key, rest @ ..], Value::Table(table)) => {
            let next = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            put(next, rest, value)
        }
        ([key, rest @ ..], Value::Array(list)) => put(element(list, key)?, rest, value),
        ([key, ..], other) => Err(format!("`{other}` has no `{key}`; write it as a table")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "path = \"two-paths-50ms\"\nduration = \"2 s\"\nseeds = 2\nvariants = [\"sack\", \"rack\"]\n\
                        [[flows]]\nname = \"web\"\nworkload = { kind = \"files\", size = \"10 kB\" }\n\
                        [axes]\ntcp.min_rto = [\"200 ms\", \"1 s\"]\nloss = [0, 0.01]\n\"flows.web.count\" = [1, 3]\n";

    fn load(text: &str) -> Result<GridFile, Error> {
        let file = tempfile::Builder::new().prefix("reknit-grid-").suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        GridFile::load(file.path())
    }

    fn grid(text: &str) -> Result<Grid, Error> {
        load(text).and_then(|grid_file| Grid::new(grid_file, None, &[]))
    }

    #[test]
    fn axes_keep_the_order_of_the_file_and_the_last_varies_fastest() {
        let grid = grid(FILE).unwrap();
        let keys: Vec<&str> = grid.axes.iter().map(|axis| axis.key.as_str()).collect();
        assert_eq!(keys, ["variant", "tcp.min_rto", "loss", "flows.web.count"]);
        assert_eq!((grid.seeds.as_slice(), grid.points.len()), (&[1, 2][..], 32));
        let labels = |i| grid.labels(i).into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(labels(0), "\"sack\" \"200 ms\" 0 1");
        assert_eq!(labels(1), labels(0));
        assert_eq!(labels(2), "\"sack\" \"200 ms\" 0 3");
        assert_eq!(labels(31), "\"rack\" \"1 s\" 0.01 3");
    }

    #[test]
    fn the_argument_set_does_what_the_table_of_the_file_does() {
        let plain = load(FILE).unwrap();
        let mut by_argument = plain.clone();
        by_argument.set_by_argument("tcp.initial_window", "3").unwrap();
        let in_file = load(&FILE.replace("[[flows]]", "[set]\n\"tcp.initial_window\" = \"3\"\n[[flows]]")).unwrap();
        let [plain, by_argument, in_file] =
            [plain, by_argument, in_file].map(|grid_file| Grid::new(grid_file, None, &[]).unwrap().points);
        assert_eq!(by_argument, in_file);
        assert_ne!(by_argument, plain);
    }

    #[test]
    fn names_may_be_patterns_and_options_override_the_file() {
        let mut grid_file = load(&FILE.replace("\"rack\"]", "\"rr-fa*\", \"base\"]")).unwrap();
        let label = |text: &str| (Value::from(text), Value::from(text));
        grid_file.set("path", vec![label("two-paths-*")]).unwrap();
        assert!(Grid::new(grid_file.clone(), None, &[]).is_err(), "a pattern is a path only if it is an axis");
        grid_file.set("path", vec![label("clean"), label("two-paths-*")]).unwrap();
        grid_file.set("tcp.min_rto", vec![label("300 ms")]).unwrap();
        grid_file.set("loss", vec![label("2 %")]).unwrap();
        let grid = Grid::new(grid_file, Some(vec![1]), &[]).unwrap();
        let axes: Vec<(&str, usize)> = grid.axes.iter().map(|axis| (axis.key.as_str(), axis.values.len())).collect();
        assert_eq!(axes, [("variant", 8), ("flows.web.count", 2), ("path", 3)]);
        assert!(grid.points[0].text().contains("300 ms"));
    }

    #[test]
    fn the_text_of_a_point_has_everything_that_its_results_depend_on() {
        let key = |text: &str| grid(text).unwrap().points[0].key();
        let base = "path = \"clean\"\nduration = \"60 s\"\nvariant = \"sack\"\n";
        let same = [
            "description = \"other words\"\npath = \"clean\"\nduration = \"1 min\"\nvariant = \" sack\"\nloss = 0\nseeds = 1\n",
            "path = \"clean\"\nduration = \"60 s\"\nvariants = [\"sack\"]\nloss = \"0 %\"\n",
        ];
        assert_eq!(key(same[0]), key(same[1]));
        for (from, to) in [("60 s", "61 s"), ("clean", "lossy"), ("\"sack\"", "\"rack\"")] {
            assert_ne!(key(base), key(&base.replace(from, to)), "{to}");
        }
        let own = |divisor: u32| {
            let own =
                format!("{{ name = \"own\", base = \"rack\", loss_detector = {{ reo_wnd_divisor = {divisor} }} }}");
            key(&base.replace("\"sack\"", &own))
        };
        assert_eq!(own(1), own(1));
        assert_ne!(own(1), own(2));
    }

    #[test]
    fn a_parameter_of_a_variant_is_an_axis() {
        let text = "path = \"clean\"\nseeds = 1\nvariants = [\"rack\", { name = \"own\", base = \"rack\" }]\n[axes]\n\
                    variant.loss_detector.reo_wnd_divisor = [1, 4, 16]\n";
        let grid = grid(text).unwrap();
        let axes: Vec<(&str, usize)> = grid.axes.iter().map(|axis| (axis.key.as_str(), axis.values.len())).collect();
        assert_eq!(axes, [("variant", 2), ("variant.loss_detector.reo_wnd_divisor", 3)]);
        let texts: Vec<String> = grid.points.iter().map(Point::text).collect();
        for (point, name) in texts.iter().zip(["rack", "own"].into_iter().flat_map(|name| [name; 3])) {
            assert!(point.contains(&format!("\"variant\":\"{name}+reo_wnd_divisor-")), "{point}");
        }
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 6);
        let wrong = super::tests::grid(&text.replace("reo_wnd_divisor", "reo_wnd")).unwrap_err().to_string();
        assert!(wrong.contains("variant: loss_detector.reo_wnd: `rack` has no such parameter"), "{wrong}");
    }

    #[test]
    fn a_point_survives_serialisation() {
        let grid = grid(FILE).unwrap();
        for point in &grid.points {
            assert_eq!(Point::parse(&point.text()).as_ref(), Ok(point));
        }
        let of_another = grid.points[0].text().replace(env!("CARGO_PKG_VERSION"), "0.0.1");
        let error = Point::parse(&of_another).unwrap_err().to_string();
        assert!(error.contains("by reknit 0.0.1"), "{error}");
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        for (from, to, says) in [
            ("loss =", "speed =", "axes.speed: unknown key; these can vary: variant, path,"),
            ("[0, 0.01]", "[]", "axes.loss: must be a list of at least one value"),
            ("[0, 0.01]", "[0, 2]", "loss: "),
            ("web.count", "wbe.count", "flows.wbe.count: unknown entry `wbe`; the entries are web"),
            ("web.count", "web.workload.kind.x", "has no `x`; write it as a table"),
            ("seeds = 2", "seeds = 0", "seeds: must be from 1 to 10000"),
            ("\"rack\"]", "\"rock\"]", "variant: unknown variant `rock`"),
            ("\"rack\"]", "\"qq-*\"]", "axes.variant: no variant matches `qq-*`"),
            (
                "variants = [\"sack\", \"rack\"]",
                "",
                ": `variants` is missing; list the variants, or add an axis `variant`",
            ),
            ("[axes]", "[axes", ":8: "),
        ] {
            let error = grid(&FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("reknit-grid-"), "{error:?} does not contain {says:?}");
        }
    }
}
