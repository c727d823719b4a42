//! Worked examples of Lee, Park and Choi's sender.

use reknit_testkit::{TestSender, config, variant, vector};
use reknit_variants::{Composition, threshold::lpc_sender};

fn four_paths(isn: u32) -> TestSender {
    let paths = lpc_sender::PathsConfig { paths: 4, ..lpc_sender::PathsConfig::default() };
    let composition = Composition { dup_thresh: paths.into(), ..variant("lpc-sender") };
    let mut s = TestSender::new(isn, &composition, config(12), 100);
    assert_eq!(s.sent().len(), 12);
    s
}

vector!(eight_duplicates_are_not_enough_on_four_paths, |isn| {
    let mut s = four_paths(isn);
    assert!(!s.pass_late(8).contains(&1));
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
});

vector!(the_ninth_duplicate_retransmits, |isn| {
    let mut s = four_paths(isn);
    assert!(!s.pass_all(2..=9).contains(&1));
    assert_eq!(s.pass(10), [1]);
});
