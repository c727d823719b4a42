//! What every plug-in can do: show numbers, and keep something for the next connection to the same peer.

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{AckAction, AckPolicy, DupThresh, Memory, Plugin, Postponement, RecoveryEntry, RxFacts};
use reknit_tcp::{Config, Connection, Identity};
use reknit_testkit::variant;
use reknit_units::{Instant, Segments};
use reknit_variants::{Composition, algorithms};

/// What a [`Counter`] keeps.
#[derive(Clone, PartialEq, Debug)]
struct Count(u32);

/// The n-th connection to a peer knows its number.
#[derive(Clone, Debug)]
struct Counter(u32);

impl Plugin for Counter {
    fn show(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("connection", f64::from(self.0));
        show("unknown", f64::NAN);
    }

    fn remember(&self, memory: &mut Memory) {
        memory.keep(Count(self.0));
    }

    fn recall(&mut self, _now: Instant, memory: &Memory) {
        self.0 += memory.get::<Count>().map_or(0, |count| count.0);
    }
}

impl DupThresh for Counter {
    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        Segments(3)
    }
}

/// A plug-in of two other seams, one of which takes many.
#[derive(Clone, Debug)]
struct Showing(&'static str);

impl Plugin for Showing {
    fn show(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show(self.0, -0.5);
    }
}

impl Postponement for Showing {
    fn may_enter(&mut self, _cx: &Context<'_>, _hole: reknit_tcp::scoreboard::SegId) -> RecoveryEntry {
        RecoveryEntry::Now
    }
}

impl AckPolicy for Showing {
    fn on_data(&mut self, _rx: &RxFacts<'_>) -> AckAction {
        AckAction::Now
    }

    fn on_ack_sent(&mut self) {}
}

fn connection() -> Connection {
    let composition = Composition {
        dup_thresh: algorithms::DupThresh::unlisted("counter", || Box::new(Counter(1))),
        postponements: ["first", "second"]
            .map(|name| algorithms::Postponement::unlisted(name, move || Box::new(Showing(name))))
            .into(),
        ack_policy: algorithms::AckPolicy::unlisted("policy", || Box::new(Showing("policy"))),
        ..variant("sack")
    };
    Connection::connect(Instant::ZERO, std::sync::Arc::new(Config::default()), composition.build(), Identity::default())
}

fn shown_by_sender(connection: &Connection) -> Vec<(String, f64)> {
    let mut shown = Vec::new();
    connection.show_sender(&mut |name, value| shown.push((name.to_string(), value)));
    shown
}

#[test]
fn a_number_has_the_name_of_its_seam() {
    let connection = connection();
    let expected = [("dup_thresh.connection", 1.0), ("postponements.first", -0.5), ("postponements.second", -0.5)];
    assert_eq!(shown_by_sender(&connection), expected.map(|(name, value)| (name.to_owned(), value)));
    let mut shown = Vec::new();
    connection.show_receiver(&mut |name, value| shown.push((name.to_string(), value)));
    assert_eq!(shown, [("ack_policy.policy".to_owned(), -0.5)]);
}

#[test]
fn a_plug_in_starts_with_what_the_last_connection_has_kept() {
    let mut memory = Memory::default();
    for number in 1..=3 {
        let mut connection = connection();
        connection.recall(Instant::ZERO, &memory);
        assert!((shown_by_sender(&connection)[0].1 - f64::from(number)).abs() < 1e-9);
        connection.remember(&mut memory);
    }
    assert_eq!(memory.get::<Count>(), Some(&Count(3)));
}
