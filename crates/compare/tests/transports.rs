//! Another transport beside the variants: its row in a comparison, and what it cannot do.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reknit_compare::{CompareOptions, Comparison, Error, PreparedComparison, ScenarioOptions};
use reknit_sim::{Counters, Endpoint, Ends, Opening, PathSource, Plan, Transmit, Transport, Transports};
use reknit_units::{Bytes, Duration, Instant};

/// Sends 1000 bytes of data every millisecond, without ACKs.
#[derive(Debug, Default)]
struct Steady {
    next: Option<Instant>,
    sent: u64,
    received: u64,
}

impl Endpoint for Steady {
    fn write(&mut self, now: Instant, _: u64) {
        self.next = Some(now);
    }

    fn handle(&mut self, _: Instant, packet: &[u8]) {
        self.received += packet.len() as u64;
    }

    fn on_deadline(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.next = Some(self.next.filter(|next| *next <= now)? + Duration::from_millis(1));
        let start = self.sent;
        self.sent += 1000;
        Some(Transmit { packet: vec![0; 1000], size: Bytes(1040), data: std::iter::once(start..self.sent).collect() })
    }

    fn deadline(&mut self, _: Instant) -> Instant {
        self.next.unwrap_or(Instant::NEVER)
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[derive(Debug)]
struct SteadyTransport;

impl Transport for SteadyTransport {
    fn name(&self) -> &'static str {
        "steady"
    }

    fn about(&self) -> &'static str {
        "8 Mbit/s"
    }

    fn open(&self, _: &Opening) -> Ends {
        Ends { sender: Box::<Steady>::default(), receiver: Box::<Steady>::default() }
    }
}

fn prepare(plan: Plan, set: &[&str], variants: &[&str]) -> Result<PreparedComparison, Error> {
    let scenario = ScenarioOptions {
        path: Some(PathSource::Given("clean".to_owned())),
        duration: Some(Duration::from_secs(2)),
        set: set.iter().map(|set| (*set).to_owned()).collect(),
        transports: Transports::new(vec![Arc::new(SteadyTransport)]),
        ..ScenarioOptions::of(plan)
    };
    let variants = variants.iter().map(|name| (*name).to_owned()).collect();
    PreparedComparison::new(&CompareOptions { scenario, variants, seeds: Some(2), oracle: true })
}

fn run(comparison: &PreparedComparison) -> Comparison {
    let stop = AtomicBool::new(false);
    comparison.run(|job| Ok::<_, Error>(job.simulate(&stop))).unwrap()
}

#[test]
fn a_transport_has_a_row_beside_the_variants() {
    let found = run(&prepare(Plan::bulk(1), &[], &["steady", "sack"]).unwrap());
    let [steady, sack] = &found.variants[..] else { panic!("{found:?}") };
    assert!((steady.goodput_mbit_s.mean - 8.0).abs() < 0.1, "{:?}", steady.goodput_mbit_s);
    assert!(steady.of_in_order < sack.of_in_order && steady.of_oracle < sack.of_oracle);
    assert!((1890..=2000).contains(&steady.runs[0].segments_sent), "{}", steady.runs[0].segments_sent);
    assert_eq!(steady.runs[0].retransmissions.total, 0);
    assert_eq!(steady.runs[0].unreported, ["causes", "window_cuts", "undos", "timeouts"]);
    assert!(sack.runs[0].unreported.is_empty() && steady.fell_back.is_empty());
    let json = serde_json::to_string(&sack.runs[0]).unwrap();
    assert!(!json.contains("unreported"), "{json}");
}

#[test]
fn what_a_transport_cannot_do_is_refused() {
    let web = "[[flows]]\nworkload = { kind = \"files\", size = \"10 kB\" }\n";
    let rival = "[[flows]]\nworkload = \"bulk\"\n[[flows]]\nvariant = \"sack\"\nworkload = \"bulk\"\n";
    let plan = |text: &str| Plan::parse("plan.toml", text).unwrap();
    let refused = |plan, set: &[&str], name: &str| prepare(plan, set, &[name]).unwrap_err().to_string();
    for (message, says) in [
        (refused(plan(web), &[], "steady"), "the workload must be `bulk` or a transfer of a size"),
        (refused(plan(rival), &[], "steady"), "all flows must be of the compared variant"),
        (refused(Plan::bulk(1), &["variant.loss_detector.tlp=false"], "steady"), "its parameters cannot be set"),
        (refused(Plan::bulk(1), &[], "steddy"), "unknown variant `steddy`"),
        (refused(Plan::bulk(1), &[], "steddy"), "the transports are steady"),
    ] {
        assert!(message.contains(says), "{message:?} does not contain {says:?}");
    }
}
