//! Worked examples of the receiver that withholds duplicate ACKs.

use reknit_tcp::Config;
use reknit_testkit::peer::{Peer, data, fin, plain};
use reknit_testkit::variant;
use reknit_units::Segments;
use reknit_variants::{Composition, receiver::yang};

const SMSS: u32 = 1000;
/// When the first segment arrives, after the handshake.
const BEGIN: u64 = 1000;

/// A receiver with these parameters and options.
fn receiver(parameters: yang::YangConfig, config: Config) -> Peer {
    let composition = Composition { ack_policy: parameters.into(), ..variant("yang") };
    Peer::established_as(&composition, config)
}

fn every_segment() -> Config {
    Config { ack_every: Segments(1), sack: false, ..plain() }
}

fn segment(n: u32) -> reknit_tcp::Segment {
    data(1 + (n - 1) * SMSS, 1, SMSS as u16)
}

/// The segments `numbers` arrive, the first at `begin`, the others `spacing` milliseconds apart.
fn train(peer: &mut Peer, begin: u64, spacing: u64, numbers: &[u32]) -> u64 {
    let mut at = begin;
    for n in numbers {
        peer.at(at).send(segment(*n));
        at += spacing;
    }
    at
}

/// The ACKs since the last call: when they were sent, relative to `begin`, and which segment they expect.
fn acks(peer: &mut Peer, begin: u64) -> Vec<(u64, u32)> {
    let parse = |text: &str| -> u32 {
        let ack = text.split(" ack ").nth(1).unwrap().split(' ').next().unwrap();
        1 + (ack.parse::<u32>().unwrap() - 1) / SMSS
    };
    peer.take_sent_timed().iter().map(|(at, text)| (at - begin, parse(text))).collect()
}

/// Segments 1 to 5 have arrived, `spacing` milliseconds apart. Returns the current time.
fn five_in_order(peer: &mut Peer, spacing: u64) -> u64 {
    let now = train(peer, BEGIN, spacing, &[1, 2, 3, 4, 5]);
    peer.take_sent();
    now
}

#[test]
fn the_late_segment_releases_in_order_acks() {
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10, 6]);
    peer.at(begin + 1000);
    let expected = [(0, 6), (10, 6), (40, 7), (48, 8), (56, 9), (64, 10), (72, 11)];
    assert_eq!(acks(&mut peer, begin), expected);
}

#[test]
fn half_as_many_if_acks_are_delayed() {
    let config = Config { sack: false, ..plain() };
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, config);
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10, 6]);
    peer.at(begin + 1000);
    // They are a third of 40 ms apart.
    assert_eq!(acks(&mut peer, begin), [(0, 6), (10, 6), (40, 7), (53, 9), (66, 11)]);
}

#[test]
fn more_arrivals_than_the_threshold_release_the_duplicates() {
    let mut peer = receiver(yang::YangConfig::default(), every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10]);
    peer.at(begin + 1000);
    // The third duplicate, which lets the sender retransmit, is sent at once; the fourth a quarter of 30 ms later.
    assert_eq!(acks(&mut peer, begin), [(0, 6), (10, 6), (30, 6), (37, 6)]);
}

#[test]
fn all_of_them_if_none_was_sent_at_once() {
    let mut peer = receiver(yang::YangConfig { imm: 0, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10]);
    peer.at(begin + 1000);
    assert_eq!(acks(&mut peer, begin), [(30, 6), (37, 6), (45, 6), (52, 6)]);
}

#[test]
fn a_gap_of_more_than_a_round_trip_was_a_loss() {
    // The round trip of the handshake is 10 ms.
    for (late, thresh) in [(26, 3), (8, 6)] {
        let mut peer = receiver(yang::YangConfig { imm: 0, thr0: 3, ..yang::YangConfig::default() }, every_segment());
        let begin = five_in_order(&mut peer, 10);
        for n in [9, 10, 11] {
            peer.at(begin).send(segment(n)); // strides of 4, 5 and 6
        }
        for n in [7, 8, 6] {
            peer.at(begin + late).send(segment(n));
        }
        peer.at(begin + 1000).take_sent();
        let again = begin + 2000;
        for n in 0..thresh {
            peer.at(again).send(segment(13 + n));
        }
        assert_eq!(acks(&mut peer, again), [], "{late} ms late: {thresh} are withheld");
        peer.send(segment(13 + thresh));
        assert_eq!(acks(&mut peer, again)[0], (0, 12), "{late} ms late: one more is not");
    }
}

#[test]
fn silence_releases_the_duplicates() {
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 5);
    train(&mut peer, begin, 5, &[7, 8, 9]);
    peer.at(begin + 1000);
    // The last arrival was at 10 ms; six times 5 ms later nothing else has arrived.
    assert_eq!(acks(&mut peer, begin), [(0, 6), (5, 6), (40, 6)]);
}

#[test]
fn arrivals_in_order_are_not_affected() {
    for config in [plain(), Config::default(), every_segment()] {
        let mut streams = Vec::new();
        for name in ["sack", "yang"] {
            let mut peer = Peer::established_as(&variant(name), Config { timestamps: false, ..config.clone() });
            for n in 1..100 {
                peer.at(BEGIN + u64::from(n * n)).send(segment(n));
            }
            peer.at(20_000).send(fin(1 + 99 * SMSS, 1));
            peer.at(30_000);
            streams.push(peer.take_sent_timed());
        }
        assert_eq!(streams[0], streams[1]);
    }
}

#[test]
fn with_sack_other_segments_do_not_report_what_is_withheld() {
    let mut peer = receiver(yang::YangConfig { imm: 0, ..yang::YangConfig::default() }, plain());
    peer.at(BEGIN).send(segment(1));
    peer.send(segment(3));
    peer.write(500);
    assert_eq!(peer.take_sent(), ["P. 1:501(500) ack 1001"]);
    peer.send(segment(4));
    peer.send(segment(5));
    // The fourth exceeds the threshold.
    assert_eq!(peer.exchange(segment(6)), [". 501:501(0) ack 1001 sack 2001:6001"; 4]);
}

#[test]
fn with_sack_a_duplicate_is_reported_at_once() {
    let mut peer = receiver(yang::YangConfig { imm: 0, ..yang::YangConfig::default() }, plain());
    peer.at(BEGIN).send(segment(1));
    peer.send(segment(3));
    peer.take_sent();
    assert_eq!(peer.exchange(segment(1)), [". 1:1(0) ack 1001 sack 1:1001 2001:3001"]);
}

#[test]
fn new_acks_are_queued_after_the_paced_ones() {
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10, 6]);
    acks(&mut peer, begin);
    peer.at(begin + 50).send(segment(11));
    peer.at(begin + 1000);
    assert_eq!(acks(&mut peer, begin), [(48, 8), (56, 9), (64, 10), (72, 11), (72, 12)]);
}

#[test]
fn a_delayed_ack_is_queued_after_the_paced_ones_too() {
    let mut peer =
        receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, Config { sack: false, ..plain() });
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10, 6]);
    peer.at(begin + 41).take_sent();
    peer.at(begin + 42).send(segment(11));
    peer.at(begin + 1000);
    assert_eq!(acks(&mut peer, begin), [(53, 9), (66, 11), (242, 12)]);
}

#[test]
fn data_does_not_acknowledge_more_than_the_paced_acks() {
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8, 9, 10, 6]);
    peer.at(begin + 50).take_sent();
    peer.write(100);
    assert_eq!(peer.take_sent(), ["P. 1:101(100) ack 7001"]);
}

#[test]
fn an_ack_number_is_the_end_of_a_segment() {
    // Three ACKs for 6000 bytes: 2000 is within a segment, so the first is left out; 4000 is the end of a segment.
    let config = Config { mss: 4000, ..every_segment() };
    let mut peer = receiver(yang::YangConfig { imm: 0, thr0: 9, ..yang::YangConfig::default() }, config);
    peer.at(BEGIN).send(data(3001, 1, 1000));
    peer.at(BEGIN + 10).send(data(4001, 1, 2000));
    peer.at(BEGIN + 30).send(data(1, 1, 3000));
    peer.at(BEGIN + 1000);
    let times = peer.take_sent_timed();
    let expected = [(BEGIN + 30, ". 1:1(0) ack 4001".to_owned()), (BEGIN + 40, ". 1:1(0) ack 6001".to_owned())];
    assert_eq!(times, expected);
}

#[test]
fn the_fin_releases_everything() {
    let mut peer = receiver(yang::YangConfig { thr0: 6, ..yang::YangConfig::default() }, every_segment());
    let begin = five_in_order(&mut peer, 10);
    train(&mut peer, begin, 10, &[7, 8]);
    peer.at(begin + 20).send(fin(8001, 1));
    peer.take_sent();
    peer.at(begin + 30);
    assert_eq!(peer.exchange(segment(6)), [". 1:1(0) ack 8002"]);
    assert_eq!(peer.at(begin + 5000).take_sent(), Vec::<String>::new());
}
