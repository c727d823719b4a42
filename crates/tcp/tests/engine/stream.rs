//! The data of a connection: what the send buffer keeps, and for how long.

use std::sync::Arc;

use reknit_tcp::{Buffers, Config, Identity, Output, Segment, Stream};
use reknit_testkit::peer::{MSS, ack, data, plain, syn_ack};
use reknit_testkit::variant;
use reknit_units::{Bytes, Duration, Instant};

const LIMIT: Bytes = Bytes(1 << 16);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1000 + ms)
}

/// Each byte depends on its position.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn established() -> Stream {
    let config = Arc::new(Config { nagle: false, ..plain() });
    let mut stream = Stream::connect(at(0), &config, variant("sack").build(), Identity::default(), LIMIT);
    sent(&mut stream, at(0));
    stream.on_segment(at(0), &syn_ack(), &[]);
    sent(&mut stream, at(0));
    stream
}

/// What the stream sends now, with its payload.
fn sent(stream: &mut Stream, now: Instant) -> Vec<(Segment, Vec<u8>)> {
    let mut all = Vec::new();
    let mut payload = Vec::new();
    while let Output::Send(segment) = stream.poll(now, &mut payload) {
        all.push((segment, std::mem::take(&mut payload)));
    }
    all
}

#[test]
fn a_queued_retransmission_keeps_its_bytes_although_they_are_acknowledged() {
    let mut stream = established();
    let written = bytes(3 * usize::from(MSS));
    assert_eq!(stream.write(&written), written.len());
    assert_eq!(sent(&mut stream, at(0)).len(), 3);
    stream.on_timer(stream.connection().deadline());
    assert!(stream.connection().has_output());
    stream.on_segment(at(2000), &ack(1, 1 + 3 * u32::from(MSS)), &[]);
    let again = sent(&mut stream, at(2000));
    assert_eq!(again[0].1, written[..usize::from(MSS)]);
    assert_eq!(stream.writable() as u64, LIMIT.0);
}

#[test]
fn acknowledged_bytes_are_released_after_a_burst() {
    let mut stream = established();
    let written = bytes(LIMIT.0 as usize);
    assert_eq!(stream.write(&written), written.len());
    assert_eq!((stream.write(&[0]), stream.writable()), (0, 0));
    let mut received = Vec::new();
    while received.len() < written.len() {
        let burst = sent(&mut stream, at(10));
        assert!(!burst.is_empty());
        received.extend(burst.into_iter().flat_map(|(_, payload)| payload));
        stream.on_segment(at(10), &ack(1, 1 + received.len() as u32), &[]);
    }
    sent(&mut stream, at(10));
    assert!(received == written);
    assert_eq!(stream.writable() as u64, LIMIT.0);
}

#[test]
fn what_was_read_and_acknowledged_leaves_a_stream_that_goes_on() {
    let (mut stream, mut buffers) = (established(), Buffers::default());
    for round in 0..2 {
        let (n, now) = (u32::from(MSS), at(round * 100));
        let first = 1 + round as u32 * n;
        stream.on_segment(now, &data(first, first, MSS), &bytes(usize::from(MSS)));
        let mut read = vec![0; 2000];
        assert_eq!(stream.read(now, &mut read), usize::from(MSS));
        assert_eq!(stream.write(&bytes(usize::from(MSS))), usize::from(MSS));
        assert!(sent(&mut stream, now).iter().any(|(_, payload)| *payload == bytes(usize::from(MSS))));
        stream.on_segment(now, &ack(first + n, first + n), &[]);
        sent(&mut stream, now);
        stream.give_back(&mut buffers);
        assert!(!stream.holds_memory());
        stream.lend(&mut buffers);
        assert!(stream.holds_memory());
        stream.shrink(now);
        assert!(!stream.holds_memory());
    }
}
