//! The native part of the Python package: it converts values and errors. `reknit-compare` does the computation.

mod captures;
mod convert;
mod interrupt;
mod pool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use reknit_compare::catalogue::Document;
use reknit_compare::{Axis, Estimate, Grid, Point, PreparedComparison, SeveralPaths, names, path_report};
use reknit_path::Direction;
use reknit_sim::Transports;
use reknit_variants::VARIANTS;

use convert::{AxisArg, FileOrTable, NameOrTable, RunArgs, Seeds, SetupArgs};

pyo3::create_exception!(
    reknit,
    Error,
    PyValueError,
    "Invalid input, or a failure. The message is one line that names the argument or file, and states what is allowed."
);

/// All errors become `reknit.Error`, with the command's text.
fn raise(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(reknit_config::visible(&error.to_string()).into_owned())
}

/// The JSON document of `reknit compare --json` for several paths, and warnings. Without paths, the path of `setup` is used.
#[pyfunction]
fn compare<'py>(
    py: Python<'py>,
    setup: SetupArgs<'py>,
    paths: Vec<NameOrTable<'py>>,
    request: RunArgs<'py>,
    seeds: Option<i64>,
    oracle: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let paths = paths.into_iter().map(convert::path).collect::<Result<Vec<_>, _>>().map_err(raise)?;
    let options = request.compare_options(setup, &paths, seeds, oracle).map_err(raise)?;
    let (comparisons, warnings) = interrupt::while_running(py, move |stop: &AtomicBool| {
        let experiments = PreparedComparison::on_paths(&options, paths)?;
        let run =
            |experiment: &PreparedComparison| experiment.run(|job| Ok::<_, reknit_compare::Error>(job.simulate(stop)));
        let comparisons = experiments.iter().map(run).collect::<Result<Vec<_>, _>>()?;
        let warnings: Vec<String> =
            PreparedComparison::all_warnings(&experiments).into_iter().map(str::to_owned).collect();
        Ok((comparisons, warnings))
    })?;
    Ok(pythonize::pythonize(py, &(SeveralPaths::of(&comparisons), warnings))?)
}

/// The paths, with patterns replaced by what they match.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn expand_paths(paths: Vec<String>) -> PyResult<Vec<String>> {
    names::expand_paths(&paths).map_err(raise)
}

/// One run with its time series.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn simulate<'py>(
    py: Python<'py>,
    setup: SetupArgs<'py>,
    request: RunArgs<'py>,
    seed: u64,
    sample_every: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = request.simulate_options(setup, seed, sample_every.as_deref()).map_err(raise)?;
    let trajectory = interrupt::while_running(py, move |stop: &AtomicBool| reknit_compare::simulate(&options, stop))?;
    Ok(pythonize::pythonize(py, &trajectory)?)
}

/// One run, packet by packet.
#[pyfunction]
fn trace<'py>(py: Python<'py>, setup: SetupArgs<'py>, request: RunArgs<'py>, seed: u64) -> PyResult<Bound<'py, PyAny>> {
    let options = request.simulate_options(setup, seed, None).map_err(raise)?;
    let trace = interrupt::while_running(py, move |stop: &AtomicBool| reknit_compare::trace(&options, stop))?;
    Ok(pythonize::pythonize(py, &trace)?)
}

/// The JSON document of `reknit analyze --json`, the verdicts in columns, and how many of them were left out.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn analyze(
    py: Python<'_>,
    path: PathBuf,
    at: Option<String>,
) -> PyResult<(Bound<'_, PyAny>, captures::EventColumns, u64)> {
    let at = at.map(|at| convert::place(&at)).transpose().map_err(raise)?;
    let (analysis, events, left_out) = py.detach(|| captures::analyze(&path, at)).map_err(raise)?;
    // By way of JSON, whose arrays become lists and not tuples.
    let document = serde_json::to_value(&analysis).map_err(raise)?;
    Ok((pythonize::pythonize(py, &document)?, events, left_out))
}

/// The points of a sweep.
#[derive(IntoPyObject)]
struct Sweep<'py> {
    /// Each axis with the names of its values in results.
    axes: Vec<(String, Bound<'py, PyAny>)>,
    seeds: Vec<u64>,
    /// Key and text of each point, in the order of the axes, then of the seeds.
    points: Vec<(String, String)>,
    warnings: Vec<String>,
}

/// All points of a grid.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn grid<'py>(
    py: Python<'py>,
    scenario: FileOrTable<'py>,
    axes: Vec<AxisArg<'py>>,
    seeds: Option<Seeds>,
    variant_files: Vec<PathBuf>,
) -> PyResult<Sweep<'py>> {
    let grid_file = convert::grid_file(scenario, axes).map_err(raise)?;
    let seeds = seeds.map(Seeds::list).transpose().map_err(raise)?;
    let pool = pool::pool()?;
    let read = || {
        let grid = Grid::new(grid_file, seeds, &variant_files)?;
        let points = grid.points.iter().map(|point| (point.key(), point.text())).collect();
        Ok::<_, reknit_compare::Error>((grid, points))
    };
    let (grid, points) = py.detach(|| pool.install(read)).map_err(raise)?;
    let labels = |axis: &Axis| {
        let labels: Vec<&toml::Value> = axis.values.iter().map(|(label, _)| label).collect();
        Ok::<_, PyErr>((axis.key.clone(), pythonize::pythonize(py, &labels)?))
    };
    let axes = grid.axes.iter().map(labels).collect::<PyResult<_>>()?;
    Ok(Sweep { axes, seeds: grid.seeds, points, warnings: grid.warnings })
}

/// Runs a point of [`grid`], given its text.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn run_point(py: Python<'_>, text: String) -> PyResult<Bound<'_, PyAny>> {
    let run = interrupt::while_running(py, |stop: &AtomicBool| Point::parse(&text)?.run(&Transports::default(), stop))?;
    Ok(pythonize::pythonize(py, &run)?)
}

/// Mean of some values and half the width of the 95 % confidence interval.
#[pyfunction]
fn estimate(values: Vec<f64>) -> (f64, Option<f64>) {
    let estimate = Estimate::of(values);
    (estimate.mean, estimate.ci95)
}

/// The JSON document of `reknit variants --json`.
#[pyfunction]
fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &Document::of(&VARIANTS))?)
}

/// Name, description and source of all built-in paths.
#[pyfunction]
fn paths(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &path_report::list().map_err(raise)?)?)
}

/// What each direction of a path does to a train of packets.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn path<'py>(py: Python<'py>, path: NameOrTable<'py>, set: Vec<String>, seed: u64) -> PyResult<Bound<'py, PyAny>> {
    let profile = convert::profile(path, &set).map_err(raise)?;
    let reports = py.detach(|| {
        [Direction::Forward, Direction::Reverse].map(|direction| path_report::report(&profile, direction, seed))
    });
    Ok(pythonize::pythonize(py, &reports)?)
}

/// Colours and markers of all pictures.
#[pyfunction]
fn style(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let style: toml::Table = toml::from_str(reknit_cli::STYLE).map_err(raise)?;
    Ok(pythonize::pythonize(py, &style)?)
}

/// Runs the command `reknit` with these arguments, beginning with the program's name. Returns its exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let pool = pool::pool()?;
    Ok(py.detach(|| pool.install(|| reknit_cli::run(arguments))))
}

/// The native module of `reknit`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(expand_paths, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(grid, module)?)?;
    module.add_function(wrap_pyfunction!(run_point, module)?)?;
    module.add_function(wrap_pyfunction!(variants, module)?)?;
    module.add_function(wrap_pyfunction!(paths, module)?)?;
    module.add_function(wrap_pyfunction!(path, module)?)?;
    module.add_function(wrap_pyfunction!(style, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
