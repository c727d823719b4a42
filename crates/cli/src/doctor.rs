//! `reknit doctor`: what this machine can run.

use reknit_host::doctor::{self, State};

use crate::table::{self, Screen};
use crate::{Failure, output};

pub(crate) fn run() -> Result<(), Failure> {
    let mut checks = doctor::examine();
    checks.extend([proxy(), shield()]);
    let describe = |check: &doctor::Check| {
        let state = match check.state {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Optional => "not available",
            State::Attention => "attention",
        };
        (check.name.to_owned(), format!("{state}: {}", check.note))
    };
    let items: Vec<_> = checks.iter().map(describe).collect();
    output::print(&table::definitions(&items, Screen::stdout().text_width()))?;
    if checks.iter().any(|check| check.state == State::Missing) {
        return Err(Failure::Failed("something is missing; simulations work without it".to_owned()));
    }
    Ok(())
}

/// The rules of a killed shield.
fn shield() -> doctor::Check {
    let (state, note) = match reknit_shield::leftovers::found() {
        None => (State::Ok, "nothing is left of a killed `reknit shield`".to_owned()),
        Some(found) => (State::Attention, format!("{found}; the next start replaces them, and its end removes them")),
    };
    doctor::Check { name: "shield", state, note }
}

/// The rules of a killed proxy.
fn proxy() -> doctor::Check {
    let (state, note) = match reknit_proxy::leftovers::found() {
        None => (State::Ok, "nothing is left of a killed `reknit proxy`".to_owned()),
        Some(found) => (State::Attention, format!("{found}; the next start replaces them, and its end removes them")),
    };
    doctor::Check { name: "proxy", state, note }
}
