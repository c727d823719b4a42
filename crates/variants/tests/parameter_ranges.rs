//! The numeric parameters of all algorithms: each has a range, values outside it are rejected, and a connection works
//! with the smallest and the largest value.

use reknit_tcp::Config;
use reknit_tcp::seams::Seam;
use reknit_testkit::network::{Application, Case, Model, Network, Origin, Polling};
use reknit_units::{Bytes, Capacity};
use reknit_variants::parameter::Parameter;
use reknit_variants::{Custom, VARIANTS, Variant, composition, file};
use toml::{Table, Value};

/// A parameter of an algorithm, in a variant that uses it.
struct Site {
    variant: &'static Variant,
    seam: Seam,
    /// The index among the algorithms that fill the seam.
    position: usize,
    /// The path of keys to the parameter, below the table of the algorithm.
    keys: Vec<String>,
    parameter: Parameter,
}

impl Site {
    /// Its key in errors.
    fn key(&self) -> String {
        let list = if self.seam.takes_many() { format!("[{}]", self.position) } else { String::new() };
        format!("{}{list}.{}", self.seam, self.keys.join("."))
    }

    /// The variant with this value of the parameter.
    fn with(&self, value: Value) -> Result<Custom, String> {
        let mut table: Table = file::write("mine", self.variant, &(self.variant.compose)()).parse().unwrap();
        let mut at = &mut table[self.seam.key()];
        if let Value::Array(parts) = at {
            at = &mut parts[self.position];
        }
        for key in &self.keys {
            at = &mut at[key.as_str()];
        }
        *at = value;
        // As text, as users write it.
        Custom::parse("my.toml", &table.to_string()).map_err(|error| error.to_string())
    }

    fn has_a_fraction(&self) -> bool {
        self.parameter.default.as_ref().is_some_and(|default| default.contains('.'))
    }
}

/// Every parameter of every algorithm, once.
fn sites() -> Vec<Site> {
    let mut seen: Vec<(Seam, String)> = Vec::new();
    let mut sites = Vec::new();
    for variant in VARIANTS.iter() {
        let composition = (variant.compose)();
        for seam in Seam::ALL {
            for (position, part) in composition.parts(seam).into_iter().enumerate() {
                if seen.contains(&(seam, part.algorithm.clone())) {
                    continue;
                }
                let parameters = composition::algorithm(seam, &part.algorithm).unwrap().parameters.clone();
                seen.push((seam, part.algorithm));
                let mut open: Vec<_> = parameters.into_iter().map(|p| (vec![p.name.clone()], p)).collect();
                while let Some((keys, parameter)) = open.pop() {
                    let below = |p: &Parameter| [keys.as_slice(), std::slice::from_ref(&p.name)].concat();
                    open.extend(parameter.inner.iter().map(|p| (below(p), p.clone())));
                    sites.push(Site { variant, seam, position, keys, parameter });
                }
            }
        }
    }
    sites
}

/// The numeric ones.
fn numbers() -> Vec<Site> {
    let is_number = |site: &Site| site.parameter.default.as_ref().is_some_and(|text| text.parse::<f64>().is_ok());
    sites().into_iter().filter(is_number).collect()
}

/// The bounds of its range, as its type writes them, and the nearest values outside.
fn ends(site: &Site) -> ([Value; 2], [Value; 2]) {
    let range = site.parameter.range.clone().expect("the parameter has a range");
    let (least, largest) = (*range.start(), *range.end());
    if site.has_a_fraction() {
        let outside = [least.next_down(), largest.next_up()].map(Value::Float);
        return ([least, largest].map(Value::Float), outside);
    }
    let (least, largest) = (least as i64, largest as i64);
    ([least, largest].map(Value::Integer), [least - 1, largest + 1].map(Value::Integer))
}

#[test]
fn every_number_has_a_range_that_contains_its_default() {
    let numbers = numbers();
    assert!(numbers.len() > 40, "{}", numbers.len());
    for site in numbers {
        let default: f64 = site.parameter.default.as_ref().unwrap().parse().unwrap();
        let range = &site.parameter.range;
        assert!(range.as_ref().is_some_and(|range| range.contains(&default)), "{}: {range:?}", site.key());
    }
}

#[test]
fn a_number_outside_its_range_is_rejected_with_key_value_and_range() {
    for site in numbers() {
        let nonsense = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e308].map(Value::Float);
        let (_, outside) = ends(&site);
        for value in nonsense.into_iter().chain([Value::Integer(-1)]).chain(outside) {
            let shown = value.to_string();
            let error = site.with(value).err().unwrap_or_else(|| panic!("{} = {shown} is a part", site.key()));
            let expected = format!("my.toml: {} = {shown}: must be {}", site.key(), site.parameter.allowed());
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn invalid_durations_are_rejected() {
    let mut durations = 0;
    for site in sites() {
        let default = site.parameter.default.clone().unwrap_or_default();
        if default.parse::<reknit_units::Duration>().is_err() {
            continue;
        }
        durations += 1;
        for text in ["-1 ms", "inf s", "nan s", "1e308 s", "-5", "1"] {
            let error = site.with(Value::String(text.to_owned())).err();
            let error = error.unwrap_or_else(|| panic!("{} = {text} is a part", site.key()));
            assert!(error.starts_with(&format!("my.toml: {}: `{text}` is ", site.key())), "{error}");
        }
    }
    assert!(durations > 10, "{durations}");
}

/// A short transfer on a path that loses, duplicates and reorders packets.
fn case() -> Case {
    let application = |sends| Application { sends, chunk: 20_000, reads_every_ms: 0 };
    let config =
        Config { receive_buffer: Capacity::Bytes(Bytes(100_000)), timestamps: true, sack: true, ..Config::default() };
    Case {
        seed: 7,
        origin: Origin { start_ms: 0, isns: [1, 2], timestamp_offsets: [3, 4] },
        network: Network { loss: 0.02, duplication: 0.02, damage: 0.0, delay_ms: 10, jitter_ms: 15, marking: 0.0 },
        applications: [application(100_000), application(2_000)],
        configs: [config.clone(), config],
        simultaneous: false,
    }
}

#[test]
fn a_connection_works_with_the_smallest_and_the_largest_value() {
    for site in numbers().iter().filter(|site| !site.variant.is_simulated_only()) {
        for value in ends(site).0 {
            let shown = format!("{} = {value}", site.key());
            let composition = site.with(value).unwrap_or_else(|error| panic!("{error}")).composition;
            let mut model = Model::new(&case(), [&composition; 2], Polling::Merged, ());
            let whole = model.play().and_then(|()| model.verify());
            assert_eq!(whole, Ok(true), "{shown}");
        }
    }
}
