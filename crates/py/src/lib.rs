//! The native part of the Python package: conversions and one error map. What it computes is `reknit-compare`'s.

mod convert;
mod interrupt;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use reknit_compare::catalogue::Document;
use reknit_compare::{Axis, Estimate, Experiment, Grid, Point, path_report};
use reknit_path::Direction;
use reknit_variants::VARIANTS;

use convert::{AxisArg, FileOrTable, NameOrTable, RunArgs, Seeds, SetupArgs};

pyo3::create_exception!(
    reknit,
    Error,
    PyValueError,
    "What was asked for is wrong, or could not be done: one line that names the argument or file and what is allowed."
);

/// The one map of errors: all of them are `reknit.Error`, with the same text as the command's.
fn raise(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// The JSON document of `reknit compare --json`, and what works against itself in the user's files.
#[pyfunction]
fn compare<'py>(
    py: Python<'py>,
    setup: SetupArgs<'py>,
    request: RunArgs<'py>,
    seeds: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = request.compare_options(setup, seeds).map_err(raise)?;
    let (comparison, warnings) = interrupt::while_running(py, move |stop: &AtomicBool| {
        let experiment = Experiment::new(&options)?;
        let comparison = experiment.run(|job| Ok::<_, reknit_compare::Error>(job.simulate(stop)))?;
        Ok((comparison, experiment.warnings))
    })?;
    Ok(pythonize::pythonize(py, &(comparison, warnings))?)
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

/// What one sweep is made of.
#[derive(IntoPyObject)]
struct Sweep<'py> {
    /// Each axis with what results call its values.
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
    let (grid, points) = py
        .detach(|| {
            let grid = Grid::new(grid_file, seeds, &variant_files)?;
            let points = grid.points.iter().map(|point| (point.key(), point.text())).collect();
            Ok::<_, reknit_compare::Error>((grid, points))
        })
        .map_err(raise)?;
    let labels = |axis: &Axis| {
        let labels: Vec<&toml::Value> = axis.values.iter().map(|(label, _)| label).collect();
        Ok::<_, PyErr>((axis.key.clone(), pythonize::pythonize(py, &labels)?))
    };
    let axes = grid.axes.iter().map(labels).collect::<PyResult<_>>()?;
    Ok(Sweep { axes, seeds: grid.seeds, points, warnings: grid.warnings })
}

/// The run of a point of [`grid`], by its text.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn run_point(py: Python<'_>, text: String) -> PyResult<Bound<'_, PyAny>> {
    let run = interrupt::while_running(py, |stop: &AtomicBool| Point::parse(&text)?.run(stop))?;
    Ok(pythonize::pythonize(py, &run)?)
}

/// Mean of some values and half the width of its 95 % confidence interval.
#[pyfunction]
fn estimate(values: Vec<f64>) -> (f64, Option<f64>) {
    let estimate = Estimate::of(values);
    (estimate.mean, estimate.ci95)
}

/// The JSON document of `reknit variants --json`.
#[pyfunction]
fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &Document::of(VARIANTS))?)
}

/// Name, description and source of all built-in paths.
#[pyfunction]
fn paths(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &path_report::list().map_err(raise)?)?)
}

/// What a path does to a train of packets, each direction.
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

/// The command `reknit` with these arguments, the program's name first; its exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| reknit_cli::run(arguments))
}

/// What `reknit` is made of.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(grid, module)?)?;
    module.add_function(wrap_pyfunction!(run_point, module)?)?;
    module.add_function(wrap_pyfunction!(variants, module)?)?;
    module.add_function(wrap_pyfunction!(paths, module)?)?;
    module.add_function(wrap_pyfunction!(path, module)?)?;
    module.add_function(wrap_pyfunction!(style, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
