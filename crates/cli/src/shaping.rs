//! Options that change a path, or describe one, without a file.

use clap::{Args, ValueEnum};
use reknit_config::InputError;
use reknit_path::Profile;
use reknit_units::{Duration, Rate, Share};
use toml::{Table, Value};

use crate::{Failure, input};

/// A rate, a delay and a rule of netem.
#[derive(Args, Debug)]
pub(crate) struct ShapingArgs {
    /// Add this delay to each direction; without a path, this is the path's delay
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Limit each direction to this rate, for example `10 Mbit/s`; without a path, this is the path's rate
    #[arg(long, value_name = "RATE", value_parser = input::rate, allow_hyphen_values = true)]
    rate: Option<Rate>,
    /// Add what this rule of Linux's netem does, for example `delay 10ms 1ms reorder 25%` (docs/reference/paths.md)
    #[arg(long, value_name = "RULE")]
    netem: Option<String>,
}

/// A shield at the end of the path.
#[derive(Args, Debug)]
pub(crate) struct ShieldArgs {
    /// Put a gateway in front of the receiver that restores the order of packets, or gives branches the same delay (docs/reference/paths.md)
    #[arg(long, value_enum, value_name = "MODE")]
    shield: Option<Mode>,
}

/// What a shield does in front of the receiver of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// Hold early packets of a TCP flow whose sender retransmits late ones, as long as that makes it faster
    Resequence,
    /// Hold packets of any protocol that take the faster branch of the path, for the difference of the delays
    Equalise,
}

impl ShapingArgs {
    /// The options as values of `--set`, which append stages. The rule of netem applies to `ways`.
    pub(crate) fn set(&self, ways: &[&str]) -> Result<Vec<String>, Failure> {
        let mut set = Vec::new();
        if self.rate.is_some() || self.delay.is_some() {
            let mut link = stage("link");
            link.extend(self.rate.map(|rate| ("rate".to_owned(), rate.to_string().into())));
            link.extend(self.delay.map(|delay| ("delay".to_owned(), delay.to_string().into())));
            set.extend(["forward", "reverse"].map(|way| append(way, &link)));
        }
        if let Some(rule) = &self.netem {
            let mut netem = stage("netem");
            netem.insert("rule".to_owned(), rule.as_str().into());
            check(rule, &netem)?;
            set.extend(ways.iter().map(|way| append(way, &netem)));
        }
        Ok(set)
    }

    /// The options as they are given.
    pub(crate) fn given(&self) -> Vec<String> {
        let rate = self.rate.map(|rate| format!("--rate {rate}"));
        let delay = self.delay.map(|delay| format!("--delay {delay}"));
        [rate, delay, self.netem.as_ref().map(|rule| format!("--netem {rule}"))].into_iter().flatten().collect()
    }

    /// The path that these options describe, before its stages are appended.
    pub(crate) fn path(&self) -> Table {
        let parts = [
            self.rate.map(|rate| rate.to_string()),
            self.delay.map(|delay| format!("{delay} one way")),
            self.netem.as_ref().map(|rule| format!("netem {rule}")),
        ];
        let description: Vec<String> = parts.into_iter().flatten().collect();
        [("description".to_owned(), Value::from(description.join(", ")))].into_iter().collect()
    }
}

impl ShieldArgs {
    /// The option as it is given.
    pub(crate) fn given(&self) -> Option<String> {
        Some(format!("--shield {}", self.shield?.to_possible_value()?.get_name()))
    }

    /// The option as a value of `--set`, which appends a stage.
    pub(crate) fn set(&self) -> Option<String> {
        let mode = self.shield?.to_possible_value()?;
        let mut shield = stage("shield");
        shield.insert("mode".to_owned(), mode.get_name().into());
        Some(append("forward", &shield))
    }
}

/// The value of `--set` that appends loss to one direction.
pub(crate) fn loss(way: &str, probability: Share) -> String {
    let mut loss = stage("loss");
    loss.insert("probability".to_owned(), probability.get().into());
    append(way, &loss)
}

fn stage(kind: &str) -> Table {
    [("kind".to_owned(), Value::from(kind))].into_iter().collect()
}

fn append(way: &str, stage: &Table) -> String {
    format!("{way}.+={}", Value::Table(stage.clone()))
}

/// Refuses a rule that netem would not understand.
fn check(rule: &str, netem: &Table) -> Result<(), Failure> {
    let path = [("forward".to_owned(), Value::Array(vec![Value::Table(netem.clone())]))].into_iter().collect();
    Profile::from_table("netem", path).map(drop).map_err(|error: InputError| {
        let message = error.to_string();
        let message = message.rsplit_once("rule: ").map_or(message.as_str(), |(_, message)| message);
        Failure::Usage(format!("--netem '{rule}': {}", message.trim_end_matches(" (netem stage)")))
    })
}
