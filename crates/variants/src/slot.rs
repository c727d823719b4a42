//! The content of a seam, one part or a list of parts, and how it is read from a file.

use std::any::Any;

use reknit_config::KeyError;
use toml::{Table, Value};

use crate::part::{self, Face, Form, Kind, Parser, Shared};
use crate::seam::Seam;

/// The content of one seam of a composition.
pub trait Slot: Any {
    /// The parts that have a name.
    fn faces(&self) -> Vec<Face>;

    /// Replaces the content by what `value` describes. `known` holds the content of the same seam in all registered
    /// variants: their parts may be named.
    ///
    /// # Errors
    /// If `value` is invalid; the error names the key and what is allowed.
    fn fill(&mut self, seam: Seam, value: Value, known: &[&dyn Slot]) -> Result<(), KeyError>;
}

impl<S: ?Sized + 'static> Slot for Shared<S> {
    fn faces(&self) -> Vec<Face> {
        self.face().into_iter().collect()
    }

    fn fill(&mut self, seam: Seam, value: Value, known: &[&dyn Slot]) -> Result<(), KeyError> {
        let refuse = |message: String| KeyError::new(seam.key(), message);
        let table = match value {
            Value::Table(table) => table,
            Value::Array(_) => {
                return Err(refuse(format!("exactly one algorithm fills this seam; write one table [{seam}]")));
            }
            other => return Err(refuse(format!("expected a table [{seam}], not {}", other.type_str()))),
        };
        let known = kinds(known, |slot: &Shared<S>| vec![slot.clone()]);
        *self = read(table, std::slice::from_ref(self), &known).map_err(|error| error.inside(seam.key()))?;
        Ok(())
    }
}

impl<S: ?Sized + 'static> Slot for Vec<Shared<S>> {
    fn faces(&self) -> Vec<Face> {
        self.iter().filter_map(|part| part.face()).collect()
    }

    fn fill(&mut self, seam: Seam, value: Value, known: &[&dyn Slot]) -> Result<(), KeyError> {
        let Value::Array(values) = value else {
            return Err(KeyError::new(seam.key(), format!("write each algorithm as a table [[{seam}]]")));
        };
        let known = kinds(known, Vec::clone);
        let read_one = |(i, value)| {
            let outer = format!("{seam}[{i}]");
            match value {
                Value::Table(table) => read(table, self, &known).map_err(|error| error.inside(&outer)),
                _ => Err(KeyError::new(outer, format!("write each algorithm as a table [[{seam}]]"))),
            }
        };
        *self = values.into_iter().enumerate().map(read_one).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// Builds the content of a seam for a connection: one plug-in, or a list of them.
pub(crate) trait Build {
    type Plugins;

    fn plugins(&self) -> Self::Plugins;
}

impl<S: ?Sized> Build for Shared<S> {
    type Plugins = Box<S>;

    fn plugins(&self) -> Box<S> {
        self.build()
    }
}

impl<S: ?Sized> Build for Vec<Shared<S>> {
    type Plugins = Vec<Box<S>>;

    fn plugins(&self) -> Vec<Box<S>> {
        self.iter().map(|part| part.build()).collect()
    }
}

/// Each kind of part among `slots`, once.
fn kinds<T: Slot, S: ?Sized>(slots: &[&dyn Slot], parts: impl Fn(&T) -> Vec<Shared<S>>) -> Vec<(Kind, Parser<S>)> {
    let mut kinds: Vec<(Kind, Parser<S>)> = Vec::new();
    for slot in slots {
        let slot: &dyn Any = *slot;
        for part in slot.downcast_ref().map(&parts).unwrap_or_default() {
            if let (Some(face), Some(parser)) = (part.face(), part.parser())
                && kinds.iter().all(|(kind, _)| kind.type_name != face.kind.type_name)
            {
                kinds.push((face.kind, parser));
            }
        }
    }
    kinds
}

/// The part that `table` describes. Parameters that are not given are taken from the part in `current` with the same
/// algorithm, if there is one.
fn read<S: ?Sized>(
    mut table: Table,
    current: &[Shared<S>],
    known: &[(Kind, Parser<S>)],
) -> Result<Shared<S>, KeyError> {
    let current: Vec<Face> = current.iter().filter_map(|part| part.face()).collect();
    let forms: Vec<(Form, Parser<S>)> =
        known.iter().flat_map(|(kind, parser)| kind.forms().into_iter().map(|form| (form, *parser))).collect();
    let names = || forms.iter().map(|(form, _)| form.name.as_str()).collect::<Vec<_>>().join(", ");
    let algorithm = match (table.remove("algorithm"), current.as_slice()) {
        (Some(Value::String(name)), _) => name,
        (Some(other), _) => {
            return Err(KeyError::new("algorithm", format!("expected a name, not {}", other.type_str())));
        }
        (None, [only]) => only.algorithm.clone(),
        (None, _) => return Err(KeyError::new("algorithm", format!("missing; allowed are {}", names()))),
    };
    let Some((form, parser)) = forms.iter().find(|(form, _)| form.name == algorithm) else {
        let message = format!("unknown algorithm `{algorithm}`; allowed are {}", names());
        return Err(KeyError::new("algorithm", message));
    };
    if let Some(key) = table.keys().find(|key| form.parameters.iter().all(|parameter| parameter.name != **key)) {
        let allowed: Vec<_> = form.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let allowed = if allowed.is_empty() { "no parameters".to_owned() } else { allowed.join(", ") };
        return Err(KeyError::new(key, format!("unknown key; `{algorithm}` has {allowed}")));
    }
    part::check(&form.parameters, &table)?;
    let start = current.into_iter().find(|face| face.algorithm == algorithm);
    let mut parameters = start.map(|face| face.parameters).unwrap_or_default();
    parameters.extend(table);
    parameters.insert("algorithm".to_owned(), Value::String(algorithm));
    parser(parameters)
}
