//! A script: particular packets, or all packets at particular times, are dropped, delayed or duplicated.

use std::fmt;

use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, SegmentTag, Spec, Stage, StageOutcome, StagePacket};
use crate::random::StreamId;
use reknit_config::KeyError;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What happens to which packets. The first rule that matches a packet applies.
    pub rules: Vec<Rule>,
}

/// What happens to some packets. Exactly one of `packet`, `segment` and `from` selects them.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Their numbers among all packets that reach this stage.
    packet: Option<Ordinals>,
    /// The numbers of data segments in their connection, in the order of first transmission.
    segment: Option<Ordinals>,
    /// With `segment`: which of its transmissions.
    transmission: Option<Ordinals>,
    /// With `segment`: only this connection, counted from 0.
    flow: Option<u32>,
    /// All packets that arrive from this time on.
    from: Option<Duration>,
    /// With `from`: and before this time.
    to: Option<Duration>,
    /// What happens to them.
    action: Action,
    /// With `delay`: how much later they leave; with `duplicate`: how much later the copy leaves.
    by: Option<Duration>,
}

/// The action of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// They are lost.
    Drop,
    /// They leave later; others may overtake them.
    Delay,
    /// They are duplicated.
    Duplicate,
    /// They wait until the end of the rule's time, and then leave in the order of arrival.
    Hold,
}

/// One number, or all from the first to the last; the first packet is 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected a number, or [first, last]")]
enum Ordinals {
    One(u64),
    Range([u64; 2]),
}

impl Ordinals {
    fn bounds(self) -> [u64; 2] {
        match self {
            Ordinals::One(one) => [one, one],
            Ordinals::Range(bounds) => bounds,
        }
    }

    fn has(self, ordinal: u64) -> bool {
        let [first, last] = self.bounds();
        first <= ordinal && ordinal <= last
    }
}

impl Rule {
    fn check(&self) -> Result<(), KeyError> {
        let ordinals = [("packet", self.packet), ("segment", self.segment), ("transmission", self.transmission)];
        for (key, ordinals) in ordinals {
            let [first, last] = ordinals.map_or([1, 1], Ordinals::bounds);
            if first == 0 || last < first {
                return Err(KeyError::new(key, "must be a number of at least 1, or [first, last]"));
            }
        }
        let chosen = [self.packet.is_some(), self.segment.is_some(), self.from.is_some()];
        if chosen.into_iter().filter(|given| *given).count() != 1 {
            return Err(KeyError::new("", "give exactly one of `packet`, `segment` and `from`"));
        }
        let needs = |key: &str, other: &str, is_wrong: bool| {
            if is_wrong { Err(KeyError::new(key, format!("is allowed only with {other}"))) } else { Ok(()) }
        };
        needs("transmission", "`segment`", self.transmission.is_some() && self.segment.is_none())?;
        needs("flow", "`segment`", self.flow.is_some() && self.segment.is_none())?;
        needs("to", "`from`", self.to.is_some() && self.from.is_none())?;
        let takes_by = matches!(self.action, Action::Delay | Action::Duplicate);
        needs("by", "the actions `delay` and `duplicate`", self.by.is_some() && !takes_by)?;
        match (self.action, self.by, self.from, self.to) {
            (_, _, Some(from), Some(to)) if to <= from => Err(KeyError::new("to", "must be later than `from`")),
            (Action::Hold, _, _, None) => Err(KeyError::new("to", "missing; `hold` needs `from` and `to`")),
            (Action::Delay, None, ..) => Err(KeyError::new("by", "missing; `delay` needs it")),
            _ => Ok(()),
        }
    }

    fn fits(&self, at: Instant, ordinal: u64, label: Option<SegmentTag>) -> bool {
        let now = at.since(Instant::ZERO);
        let in_time = self.from.is_none_or(|from| from <= now) && self.to.is_none_or(|to| now < to);
        let is_packet = self.packet.is_none_or(|packet| packet.has(ordinal));
        let is_segment = self.segment.is_none_or(|segment| {
            label.is_some_and(|label| {
                segment.has(label.segment)
                    && self.transmission.unwrap_or(Ordinals::One(1)).has(u64::from(label.transmission))
                    && self.flow.is_none_or(|flow| flow == label.flow)
            })
        });
        in_time && is_packet && is_segment
    }

    fn reorders(&self) -> bool {
        self.action == Action::Delay || self.by.is_some_and(|by| !by.is_zero())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a script of {} rule{}", self.rules.len(), if self.rules.len() == 1 { "" } else { "s" })
    }
}

impl Parameters for Script {
    type Running = Scripted;

    fn checked(self) -> Result<Script, KeyError> {
        for (i, rule) in self.rules.iter().enumerate() {
            rule.check().map_err(|error| error.inside(&format!("rules[{i}]")))?;
        }
        Ok(self)
    }

    fn build(&self, _id: StreamId) -> Scripted {
        Scripted { script: self.clone(), seen: 0, delayed: 0 }
    }

    fn in_order(&self) -> Option<Spec> {
        let drops: Vec<Rule> = self.rules.iter().filter(|rule| rule.action == Action::Drop).cloned().collect();
        (!drops.is_empty()).then_some(Spec::Script(Script { rules: drops }))
    }
}

#[derive(Debug)]
pub(crate) struct Scripted {
    script: Script,
    seen: u64,
    delayed: u64,
}

impl Stage for Scripted {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        self.on_labelled(at, item, None, exits)
    }

    fn on_labelled(
        &mut self,
        at: Instant,
        item: StagePacket,
        label: Option<SegmentTag>,
        exits: &mut Departures,
    ) -> StageOutcome {
        self.seen += 1;
        let rule = self.script.rules.iter().find(|rule| rule.fits(at, self.seen, label));
        let Some(Rule { action, by, to, .. }) = rule else { return StageOutcome::Departure(at) };
        let by = by.unwrap_or(Duration::ZERO);
        self.delayed += u64::from(matches!(action, Action::Delay | Action::Hold));
        match action {
            Action::Drop => StageOutcome::Drop(DropReason::Lost),
            Action::Delay => StageOutcome::Departure(at + by),
            Action::Hold => StageOutcome::Departure(Instant::ZERO + to.unwrap_or(Duration::ZERO)),
            Action::Duplicate => {
                exits.push(at, item);
                exits.push_copy(at + by, item);
                StageOutcome::Listed
            }
        }
    }

    fn reads_labels(&self) -> bool {
        self.script.rules.iter().any(|rule| rule.segment.is_some())
    }

    fn reorders(&self) -> bool {
        self.script.rules.iter().any(Rule::reorders)
    }

    fn delayed(&self) -> u64 {
        self.delayed
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;

    fn refusal(rule: &str) -> String {
        let text = format!("description = \"test\"\n[[forward]]\nkind = \"script\"\nrules = [{{ {rule} }}]\n");
        Profile::parse("s.toml", &text).unwrap_err().to_string()
    }

    #[test]
    fn incomplete_and_contradictory_rules_are_refused() {
        for (rule, says) in [
            ("action = \"drop\"", "forward[0].rules[0]: give exactly one of `packet`, `segment` and `from`"),
            ("packet = 1, segment = 1, action = \"drop\"", "rules[0]: give exactly one"),
            ("packet = 0, action = \"drop\"", "rules[0].packet: must be a number of at least 1, or [first, last]"),
            ("segment = [5, 4], action = \"drop\"", "rules[0].segment: must be a number of at least 1"),
            ("packet = \"x\", action = \"drop\"", "expected a number, or [first, last]"),
            ("packet = 1, transmission = 2, action = \"drop\"", "transmission: is allowed only with `segment`"),
            ("packet = 1, action = \"delay\"", "rules[0].by: missing"),
            (
                "packet = 1, action = \"drop\", by = \"1 s\"",
                "by: is allowed only with the actions `delay` and `duplicate`",
            ),
            ("from = \"1 s\", action = \"hold\"", "to: missing; `hold` needs `from` and `to`"),
            ("from = \"2 s\", to = \"1 s\", action = \"hold\"", "to: must be later than `from`"),
            ("packet = 1, action = \"lose\"", "unknown value `lose`; allowed are drop, delay"),
        ] {
            let refusal = refusal(rule);
            assert!(refusal.contains(says), "{refusal:?} does not contain {says:?}");
        }
    }
}
