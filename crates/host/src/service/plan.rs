//! What a service does to this machine, and how it is undone.

use std::fmt;

use super::Step;

/// Steps, and those that undo them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What is done.
    pub steps: Vec<Step>,
    /// What undoes it. Each step may fail: what it undoes may not have been done.
    pub undo: Vec<Step>,
}

/// A plan that was carried out. It is undone when this is dropped, also after an error.
#[must_use]
#[derive(Debug)]
pub struct Applied<'a>(&'a Plan);

impl Plan {
    /// Does all steps; if one fails, undoes those before it.
    ///
    /// # Errors
    /// The step, and what went wrong.
    pub fn apply(&self) -> Result<Applied<'_>, String> {
        let applied = Applied(self);
        self.steps.iter().try_for_each(Step::execute)?;
        Ok(applied)
    }

    /// Undoes all steps.
    pub fn remove(&self) {
        for step in &self.undo {
            let _ = step.execute();
        }
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// The commands, one a line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        writeln!(f, "\n# at the end:")?;
        self.undo.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_undone_after_an_error_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made");
        let run = |line: String| Step::Run(line);
        let made = run(format!("touch {}", file.display()));
        let undo = vec![run("false".to_owned()), run(format!("rm {}", file.display()))];
        let plan = Plan { steps: vec![made.clone()], undo: undo.clone() };
        let applied = plan.apply().unwrap();
        assert!(file.exists());
        drop(applied);
        assert!(!file.exists());
        let plan = Plan { steps: vec![made, run("false".to_owned())], undo };
        assert!(plan.apply().unwrap_err().starts_with("`false`: "));
        assert!(!file.exists());
        assert!(plan.to_string().contains("\nfalse\n\n# at the end:\nfalse\nrm "), "{plan}");
    }
}
