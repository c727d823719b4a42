//! The header bit that distinguishes a retransmission from the original (`rr-*-rtx`), between two ends that both
//! support it.

use std::sync::Arc;

use reknit_tcp::experiment::Features;
use reknit_tcp::{Config, Connection, Identity, Output, Segment, SeqNum};
use reknit_testkit::config;
use reknit_units::{Bytes, Duration, Instant, Segments};

use crate::rr::{lengths_of, sharing};

/// Two connected ends, and the segments that the sender has sent, in order.
struct Pair {
    now: Instant,
    sender: Connection,
    receiver: Connection,
    sent: Vec<Segment>,
}

fn poll(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| match connection.poll(now) {
        Output::Send(segment) => Some(segment),
        Output::WakeAt(_) | Output::Idle => None,
    })
    .collect()
}

impl Pair {
    fn new(name: &str, isn: u32) -> Pair {
        let config = Arc::new(Config { ack_every: Segments(1), ..config(9) });
        let now = Instant::ZERO + Duration::from_secs(10);
        let identity = |isn: u32| Identity { isn: SeqNum(isn), timestamp_offset: 0 };
        let composition = sharing(name);
        let mut sender = Connection::connect(now, config.clone(), composition.build(), identity(isn));
        let mut receiver = Connection::listen(now, config, composition.build(), identity(7));
        receiver.read_at_once();
        for _ in 0..2 {
            for segment in poll(&mut sender, now) {
                receiver.on_segment(now, &segment);
            }
            for segment in poll(&mut receiver, now) {
                sender.on_segment(now, &segment);
            }
        }
        sender.write(Bytes(1 << 30));
        let sent = poll(&mut sender, now);
        Pair { now, sender, receiver, sent }
    }

    /// The `i`th transmission reaches the receiver, its ACK the sender.
    fn pass(&mut self, i: usize) {
        self.now = self.now + Duration::from_millis(1);
        self.receiver.on_segment(self.now, &self.sent[i - 1]);
        for ack in poll(&mut self.receiver, self.now) {
            self.sender.on_segment(self.now, &ack);
        }
        self.sender.check().unwrap();
        self.sent.extend(poll(&mut self.sender, self.now));
    }

    /// The index of the transmission that retransmitted the first segment.
    fn copy_of_first(&self) -> usize {
        1 + self.sent.iter().rposition(|segment| segment.seq == self.sent[0].seq).unwrap()
    }

    fn lengths(&self) -> Vec<u32> {
        lengths_of(&self.sender)
    }
}

/// 2, 3 and 4 arrive, the first segment is retransmitted, then 5 and the original of 1 arrive.
fn late_original(name: &str, isn: u32) -> Pair {
    let mut pair = Pair::new(name, isn);
    for i in 2..=4 {
        pair.pass(i);
    }
    assert!(pair.copy_of_first() > 9, "the first was not retransmitted");
    pair.pass(5);
    pair.pass(1);
    pair
}

#[test]
fn the_length_of_the_original_is_used_at_once() {
    for isn in reknit_testkit::ISNS {
        for name in ["rr-fa-rtx", "rr-ta-rtx", "rr-taes-rtx"] {
            let mut pair = late_original(name, isn);
            assert_eq!(pair.sender.info(pair.now).features, Features::RESENT);
            assert_eq!(pair.lengths(), [4], "{name}");
            for i in 6..=9 {
                pair.pass(i);
            }
            pair.pass(pair.copy_of_first());
            // Not the mean of both copies, although the DSACK has arrived.
            assert_eq!((pair.lengths(), pair.sender.send_stats().spurious_cuts), (vec![4], 1), "{name}");
        }
    }
}

#[test]
fn without_the_bit_both_copies_count_when_the_dsack_arrives() {
    for isn in reknit_testkit::ISNS {
        let mut pair = late_original("rr-ta", isn);
        assert_eq!(pair.lengths(), [0; 0]);
        for i in 6..=9 {
            pair.pass(i);
        }
        pair.pass(pair.copy_of_first());
        assert_eq!(pair.lengths(), [6]);
    }
}

#[test]
fn the_length_of_the_copy_is_not_used() {
    for isn in reknit_testkit::ISNS {
        let mut pair = Pair::new("rr-ta-rtx", isn);
        for i in 2..=4 {
            pair.pass(i);
        }
        let copy = pair.copy_of_first();
        pair.pass(5);
        pair.pass(copy);
        assert_eq!(pair.lengths(), [0; 0]);
    }
}

#[test]
fn the_original_counts_if_it_comes_after_its_copy() {
    for isn in reknit_testkit::ISNS {
        let mut pair = Pair::new("rr-fa-rtx", isn);
        for i in 2..=4 {
            pair.pass(i);
        }
        let copy = pair.copy_of_first();
        pair.pass(copy);
        for i in 5..=9 {
            pair.pass(i);
        }
        assert_eq!(pair.lengths(), [0; 0]);
        pair.pass(1);
        assert_eq!(pair.lengths(), [8]);
    }
}
