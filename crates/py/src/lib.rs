//! The native part of the Python package: conversions and one error map. What it computes is `reknit-compare`'s.

mod convert;
mod interrupt;

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use reknit_compare::catalogue::Document;
use reknit_compare::{Campaign, names, passage};
use reknit_path::Direction;
use reknit_variants::VARIANTS;

use convert::{Place, Request};

pyo3::create_exception!(
    reknit,
    Error,
    PyValueError,
    "What was asked for is wrong, or could not be done: one line that names the place and what is allowed."
);

/// The one map of errors: all of them are `reknit.Error`, with the same text as the command's.
fn raise(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// The JSON document of `reknit compare --json`, and what works against itself in the user's files.
#[pyfunction]
fn compare<'py>(
    py: Python<'py>,
    place: Place<'py>,
    request: Request,
    seeds: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let question = request.question(place, seeds).map_err(raise)?;
    let (comparison, warnings) = interrupt::while_running(py, move |stop: &AtomicBool| {
        let campaign = Campaign::new(&question)?;
        let comparison = campaign.run(|job| Ok::<_, reknit_compare::Error>(job.simulate(stop)))?;
        Ok((comparison, campaign.warnings))
    })?;
    Ok(pythonize::pythonize(py, &(comparison, warnings))?)
}

/// One run with its time series.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn simulate<'py>(
    py: Python<'py>,
    place: Place<'py>,
    request: Request,
    seed: u64,
    sample_every: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let single = request.single(place, seed, sample_every.as_deref()).map_err(raise)?;
    let trajectory = interrupt::while_running(py, move |stop: &AtomicBool| reknit_compare::simulate(&single, stop))?;
    Ok(pythonize::pythonize(py, &trajectory)?)
}

/// Refuses what [`simulate`] would refuse, without running it; duration and loss as the command prints them.
#[pyfunction]
fn check(place: Place<'_>, request: Request) -> PyResult<(String, Option<String>)> {
    let single = request.single(place, 1, None).map_err(raise)?;
    single.check().map_err(raise)?;
    Ok((single.setting.duration().to_string(), single.setting.loss.map(|loss| loss.to_string())))
}

/// The JSON document of `reknit variants --json`.
#[pyfunction]
fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &Document::of(VARIANTS))?)
}

/// Name, description and source of all built-in paths.
#[pyfunction]
fn paths(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize::pythonize(py, &passage::list().map_err(raise)?)?)
}

/// What a path does to a train of packets, each direction.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's values are converted, not borrowed")]
fn path(py: Python<'_>, name: String, set: Vec<String>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    let profile = names::load_path(&name, &set).map_err(raise)?;
    let reports = py.detach(|| {
        [Direction::Forward, Direction::Reverse].map(|direction| passage::report(&profile, direction, seed))
    });
    Ok(pythonize::pythonize(py, &reports)?)
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
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(variants, module)?)?;
    module.add_function(wrap_pyfunction!(paths, module)?)?;
    module.add_function(wrap_pyfunction!(path, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
