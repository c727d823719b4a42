//! Limits of the work that one event can cause, counted in records visited: `docs/reference/limits.md`.

use reknit_tcp::facts::Spurious;
use reknit_testkit::peer::{Peer, data, plain};
use reknit_testkit::{Ack, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Capacity, Segments};
use reknit_variants::Composition;

use crate::spurious::declared;

/// The records visited by `event`.
fn work(s: &mut TestSender, event: impl FnOnce(&mut TestSender)) -> u64 {
    let before = s.connection.records_visited();
    event(s);
    s.connection.records_visited() - before
}

/// A flight of `n` segments, of which every other one was retransmitted.
fn mixed_flight(isn: u32, composition: &Composition, n: u32) -> TestSender {
    let mut s = TestSender::new(isn, composition, config(n), 100);
    s.sent();
    s.at(200).pass_all((1..=n / 2).map(|i| 2 * i));
    s
}

/// Of a number of records: an event may visit each of them a few times.
fn linear(n: u32) -> u64 {
    u64::from(n) * 30
}

vector!(a_timeout_after_reneging_visits_each_segment_a_few_times, |isn| {
    // The receiver has SACKed everything, and acknowledges nothing. Originals and retransmissions alternate.
    for n in [200, 800] {
        let mut s = mixed_flight(isn, &variant("sack"), n);
        s.deliver(&Ack { cum: 0, blocks: vec![(1, n)], ..Ack::default() });
        let timeouts = s.connection.send_stats().timeouts;
        let visited = work(&mut s, |s| _ = s.at(1900));
        assert!(s.connection.send_stats().timeouts > timeouts);
        assert!(visited < linear(n), "{visited} of {n}");
    }
});

vector!(an_undone_timeout_visits_each_segment_a_few_times, |isn| {
    // Originals and retransmissions alternate, all are marked lost by the timeout, and open again after the undo.
    for n in [200, 800] {
        let composition = declared("dsack-r", Spurious::LateTimeout);
        let mut s = mixed_flight(isn, &composition, n);
        s.deliver(&Ack { cum: 0, blocks: vec![(1, n)], ..Ack::default() });
        s.at(1900);
        assert!(s.connection.send_stats().timeouts > 0);
        let next = s.arrive(1);
        let visited = work(&mut s, |s| s.deliver(&next));
        assert_eq!(s.connection.send_stats().undos, 1);
        assert!(visited < linear(n), "{visited} of {n}");
    }
});

vector!(a_claim_that_everything_is_a_duplicate_costs_no_more_than_one_packet, |isn| {
    // Two equal blocks: the first is a DSACK (RFC 2883 section 4). No receiver gets more than a packet twice at once.
    for n in [500, 2000] {
        let mut s = TestSender::new(isn, &variant("sack"), config(n), 100);
        s.sent();
        let claim = Ack { cum: 0, blocks: vec![(2, n), (2, n)], ..Ack::default() };
        s.at(200).deliver(&claim);
        s.sent();
        let visited = work(&mut s, |s| s.deliver(&claim));
        assert!(visited < 50, "{visited} of {n}");
        assert_eq!(s.connection.send_stats().network_duplicates, 0);
        // The longest that is believed: 44 segments.
        let claim = Ack { cum: 0, blocks: vec![(2, 45), (2, n)], ..Ack::default() };
        s.deliver(&claim);
        let visited = work(&mut s, |s| s.deliver(&claim));
        assert!(visited < 150, "{visited} of {n}");
        assert_eq!(s.connection.send_stats().network_duplicates, 2 * 44);
    }
});

/// The most records that one event visits while `s` works off what `first` has begun, and the number of events.
fn parts(s: &mut TestSender, first: impl FnOnce(&mut TestSender)) -> (u64, usize) {
    let (mut most, mut events) = (work(s, first), 1);
    while s.connection.deadline() <= s.now() {
        most = most.max(work(s, |s| s.on_timer(s.now())));
        s.take();
        events += 1;
    }
    (most, events)
}

/// How many segments each of the next events at the same time sends.
fn sent_in_parts(s: &mut TestSender) -> Vec<u32> {
    let mut parts = vec![s.sent().len() as u32];
    while s.connection.deadline() <= s.now() {
        s.connection.on_timer(s.now());
        parts.push(s.sent().len() as u32);
    }
    parts
}

/// Of the segments that one event acknowledges or marks: it may visit each of them some times.
const MAX_VISITS: u64 = 2048 * 30;

vector!(an_ack_of_everything_is_processed_in_parts, |isn| {
    let n = 20_000;
    let mut s =
        TestSender::new(isn, &variant("sack"), reknit_tcp::Config { max_burst: Some(Segments(4)), ..config(n) }, 100);
    s.at(200);
    let acked = sent_in_parts(&mut s).into_iter().sum();
    assert_eq!(acked, n);
    let (most, events) = parts(&mut s, |s| s.deliver(&Ack { cum: acked, ..Ack::default() }));
    assert_eq!(s.info().acknowledged, u64::from(n) * SMSS);
    assert!(most < MAX_VISITS && events == 10, "{most} in {events}");
});

vector!(a_flight_without_a_burst_limit_is_sent_in_parts, |isn| {
    let n = 10_000;
    let config = config(n);
    let mut s = TestSender::idle(isn, variant("sack").build(), reknit_tcp::Config { nagle: false, ..config }, 100);
    s.connection.write(Bytes(u64::from(n) * SMSS));
    assert_eq!(sent_in_parts(&mut s), [2048, 2048, 2048, 2048, 1808]);
});

vector!(an_event_sends_no_more_than_its_owner_allows, |isn| {
    let n = 1000;
    let mut s = TestSender::new(isn, &variant("sack"), config(n), 100);
    s.sent();
    s.connection.limit_event(Segments(128));
    s.at(200).deliver(&Ack { cum: n, ..Ack::default() });
    assert!(s.connection.has_backlog(s.now()));
    let parts = sent_in_parts(&mut s);
    assert!(parts[..7] == [128; 7] && parts.iter().sum::<u32>() >= n, "{parts:?}");
    assert!(!s.connection.has_backlog(s.now()));
});

vector!(blocks_and_timeouts_are_processed_in_parts, |isn| {
    let n = 20_000;
    let mut s = TestSender::new(isn, &variant("sack"), config(n), 100);
    sent_in_parts(&mut s);
    s.at(200);
    let (most, events) = parts(&mut s, |s| s.deliver(&Ack { cum: 0, blocks: vec![(1, n)], ..Ack::default() }));
    assert!(most < MAX_VISITS && events > 4, "{most} in {events}");
    // The receiver has reneged: everything is lost, and the first segment is sent again.
    let expires = s.connection.deadline();
    let (most, events) = parts(&mut s, |s| s.on_timer(expires));
    assert_eq!((s.connection.send_stats().timeouts, s.info().pipe), (1, Bytes(SMSS)));
    assert!(most < MAX_VISITS && events > 4, "{most} in {events}");
});

vector!(an_undone_timeout_is_processed_in_parts, |isn| {
    // Originals and retransmissions alternate. Nothing is sent while a part of them still counts as lost.
    let n = 6000;
    let mut s = mixed_flight(isn, &declared("dsack-r", Spurious::LateTimeout), n);
    parts(&mut s, |s| s.deliver(&Ack { cum: 0, blocks: vec![(1, n)], ..Ack::default() }));
    let expires = s.connection.deadline();
    parts(&mut s, |s| s.on_timer(expires));
    assert_eq!(s.info().pipe, Bytes(SMSS));
    let next = s.arrive(1);
    let (mut events, mut sent) = (1, Vec::new());
    let mut most = work(&mut s, |s| s.deliver(&next));
    while s.connection.deadline() <= s.now() {
        sent.push(s.sent().len());
        most = most.max(work(&mut s, |s| s.on_timer(s.now())));
        events += 1;
    }
    assert_eq!(s.connection.send_stats().undos, 1);
    assert!(most < MAX_VISITS && events > 2, "{most} in {events}");
    assert!(sent.iter().all(|sent| *sent == 0), "{sent:?}");
    assert!(s.info().pipe >= Bytes(u64::from(n - 1) * SMSS), "{}", s.info().pipe);
});

vector!(what_a_recovery_has_marked_lost_is_cleared_in_parts_by_a_timeout, |isn| {
    // F-RTO retransmits the first segment only; the others are open again until it knows more.
    let n = 6000;
    let mut s = TestSender::new(isn, &variant("frto"), config(n), 100);
    s.at(200);
    sent_in_parts(&mut s);
    parts(&mut s, |s| s.deliver(&Ack { cum: 0, blocks: vec![(n - 2, n)], ..Ack::default() }));
    let expires = s.connection.deadline();
    let (most, events) = parts(&mut s, |s| s.on_timer(expires));
    assert_eq!(s.connection.send_stats().timeouts, 1);
    assert!(most < MAX_VISITS && events > 2, "{most} in {events}");
});

#[test]
fn a_buffer_takes_a_limited_number_of_pieces() {
    let buffer = Capacity::Bytes(Bytes(60_000));
    let mut peer = Peer::established(reknit_tcp::Config { receive_buffer: buffer, ..plain() });
    let taken: usize = (1..1000).map(|n| peer.send(data(1 + 2 * n, 1, 1))).sum();
    assert_eq!(taken, 60_000 / 536);
    // A refused piece is answered like any other, and the transfer goes on.
    peer.take_sent();
    let answer = peer.exchange(data(1901, 1, 1));
    assert!(answer.len() == 1 && answer[0].starts_with(". 1:1(0) ack 1 sack 223:224"), "{answer:?}");
    assert_eq!(peer.send(data(1, 1, 1000)), 1000);
    assert_eq!(peer.send(data(1001, 1, 1000)), 1000);
    assert_eq!((peer.connection.received(), peer.connection.has_gaps()), (2000, false));
}
