//! Workloads: they end properly, are counted, and are deterministic.

use std::num::NonZeroU32;
use std::sync::Arc;

use reknit_path::{Profile, Variate};
use reknit_sim::{FlowSpec, HashTracer, RunResult, Scenario, Transaction, Transactions, Workload, run, run_traced};
use reknit_units::{Bytes, Duration, Instant};

fn scenario(path: &str, workload: Workload, flows: u32, seconds: u64) -> Scenario {
    let profile = Arc::new(Profile::load(path, &[]).unwrap());
    // As servers with persistent connections do. Otherwise the last segment waits for the client's delayed ACK.
    let tcp = reknit_tcp::Config { nagle: false, ..reknit_sim::tcp_config(&profile).unwrap() };
    let variant = (reknit_variants::find("sack").unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, variant, Duration::from_secs(seconds), 3);
    let flow = FlowSpec { workload, ..scenario.flows[0].clone() };
    scenario.flows = vec![flow; flows as usize];
    scenario
}

fn requests() -> Transactions {
    Transactions {
        request: Bytes(300),
        response: Bytes(20_000),
        think: Variate::Exponential(Duration::from_millis(100)),
        per_connection: NonZeroU32::new(4),
        count: None,
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[test]
fn each_file_has_a_new_connection() {
    let result = run(&scenario("clean", Workload::Transactions(Transactions::files(Bytes(100_000))), 1, 20));
    let stats = &result.transactions[0];
    // 5 round trips of 10 ms: the handshake, then 10, 20 and 40 segments of 100 kB; plus 8 ms of transmission time.
    assert!((38.0..60.0).contains(&ms(stats.mean())), "{}", ms(stats.mean()));
    assert_eq!(stats.completed(), result.flows[0].transactions);
    assert!((330..530).contains(&stats.completed()), "{}", stats.completed());
    // The transfer in progress at the end has a connection too.
    assert_eq!(u64::from(result.connections), stats.completed() + 1);
    assert!(result.flows[0].delivered.0 >= stats.completed() * 100_000);
    assert!((stats.goodput() - 800_000.0 / stats.mean().as_secs_f64()).abs() < 0.01 * stats.goodput());
}

#[test]
fn requests_are_answered() {
    let result = run(&scenario("clean", Workload::Transactions(requests()), 10, 30));
    let stats = &result.transactions[0];
    // 20 kB are at most two windows of ten segments; every fourth transaction includes a handshake.
    assert!((10.0..45.0).contains(&ms(stats.quantile(0.5))), "{}", ms(stats.quantile(0.5)));
    assert!(stats.quantile(0.5) <= stats.quantile(0.9) && stats.quantile(0.9) <= stats.quantile(0.99));
    assert_eq!(stats.failed(), 0);
    let each = stats.completed() as f64 / f64::from(result.connections);
    assert!((3.8..=4.0).contains(&each), "{each} transactions on a connection");
    assert!(result.flows.iter().all(|flow| flow.transactions > 100));
}

#[test]
fn a_limited_number_of_transactions_ends_the_run() {
    let workload = Workload::Transactions(Transactions { count: Some(10), ..requests() });
    let result = run(&scenario("lossy", workload, 5, 1000));
    assert!(result.flows.iter().all(|flow| flow.transactions == 10 && flow.completed.is_some()));
    // Four, four and two.
    assert_eq!((result.connections, result.transactions[0].completed()), (15, 50));
}

#[test]
fn a_transfer_is_a_transaction() {
    let result = run(&scenario("clean", Workload::Transfer(Bytes(1_000_000)), 1, 60));
    let flow = &result.flows[0];
    assert_eq!((flow.transactions, flow.delivered), (1, Bytes(1_000_000)));
    assert_eq!(flow.completed, Some(Instant::ZERO + flow.elapsed));
    assert!((ms(result.transactions[0].quantile(0.5)) / ms(flow.elapsed) - 1.0).abs() < 0.001);
}

#[test]
fn in_an_exchange_the_receiver_sends_meanwhile() {
    let one_way = run(&scenario("clean", Workload::Transfer(Bytes(1_000_000)), 1, 60));
    let exchange = Workload::Exchange { size: Bytes(1_000_000), back: Bytes(400_000) };
    let both = run(&scenario("clean", exchange, 1, 60));
    assert_eq!(both.flows[0].delivered, one_way.flows[0].delivered);
    assert_eq!(both.flows[0].transactions, 1);
    // 274 segments of data, of which some take the place of ACKs.
    assert!(both.packets > one_way.packets + 150, "{} and {}", both.packets, one_way.packets);
}

/// If nothing gets through, connections are aborted and new ones are tried, but only one at a time.
#[test]
fn failures_are_counted_and_retried() {
    let mut scenario = scenario("clean", Workload::Transactions(requests()), 3, 1000);
    let text = "[[forward]]\nkind = \"loss\"\nprobability = 1\n";
    scenario.profile = Arc::new(Profile::parse("nothing", text).unwrap());
    let result = run(&scenario);
    let stats = &result.transactions[0];
    assert_eq!(stats.completed(), 0);
    assert!(stats.failed() >= 6, "{}", stats.failed());
    assert_eq!(u64::from(result.connections), stats.failed() + 3);
}

#[test]
fn groups_have_separate_statistics() {
    let mut scenario = scenario("clean", Workload::Bulk, 3, 10);
    scenario.flows[1] = FlowSpec { workload: Workload::Transfer(Bytes(50_000)), group: 2, ..scenario.flows[1].clone() };
    let result = run(&scenario);
    let completed: Vec<u64> = result.transactions.iter().map(reknit_sim::TransactionStats::completed).collect();
    assert_eq!(completed, [0, 0, 1]);
    assert_eq!(result.flows[1].group, 2);
}

#[test]
fn options_of_a_flow_replace_those_of_the_scenario() {
    let mut scenario = scenario("clean", Workload::Bulk, 1, 20);
    let small = reknit_tcp::Config { receive_buffer: "20 packets".parse().unwrap(), ..scenario.tcp.clone() };
    scenario.flows[0].tcp = Some(Arc::new(small));
    // 20 segments per round trip of 10 ms.
    let goodput = run(&scenario).flows[0].goodput() / 1e6;
    assert!((15.0..24.0).contains(&goodput), "{goodput}");
}

#[derive(Default)]
struct Log(Vec<Transaction>);

impl reknit_sim::Tracer for Log {
    fn on_packet(&mut self, _: Instant, _: reknit_sim::TraceEvent, _: &reknit_sim::Datagram) {}

    fn on_transaction(&mut self, transaction: &Transaction) {
        self.0.push(*transaction);
    }
}

#[test]
fn each_transaction_is_reported() {
    let workload = Workload::Transactions(requests());
    let (result, Log(told)) = run_traced(&scenario("random-delay", workload, 4, 20), Log::default());
    assert_eq!(told.len() as u64, result.transactions[0].completed());
    assert!(told.iter().all(|t| t.began < t.ended && t.response == Bytes(20_000) && t.flow < 4));
    let thought = |flow: u32| {
        let of_flow: Vec<&Transaction> = told.iter().filter(|t| t.flow == flow).collect();
        of_flow.windows(2).map(|pair| pair[1].began.since(pair[0].ended)).collect::<Vec<_>>()
    };
    assert_ne!(thought(0)[..5], thought(1)[..5], "two clients have the same think times");
}

#[test]
fn the_same_seed_gives_the_same_transactions() {
    let scenario = scenario("reordered-and-lossy", Workload::Transactions(requests()), 20, 30);
    let hash = |scenario: &Scenario| -> (u64, RunResult) {
        let (result, tracer) = run_traced(scenario, HashTracer::default());
        (tracer.hash(), result)
    };
    let (first, again) = (hash(&scenario), hash(&scenario));
    assert_eq!(first.0, again.0);
    assert_eq!(first.1.transactions[0].mean(), again.1.transactions[0].mean());
    assert_ne!(first.0, hash(&Scenario { seed: 4, ..scenario }).0);
}
