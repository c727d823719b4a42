//! A sender and a receiver without a network between them, and a clock.

use std::sync::Arc;
use std::time::Instant as Watch;

use reknit_tcp::segment::{Flags, Timestamps};
use reknit_tcp::{Config, Connection, Identity, Output, Segment, SeqNum};
use reknit_units::{Bytes, Instant, Segments};
use reknit_variants::Composition;

/// The receiver's initial sequence number.
const RECEIVER_ISN: SeqNum = SeqNum(9);

/// Options of both ends that allow `flight` segments in flight, with an ACK for each.
pub(crate) fn config(flight: u32) -> Config {
    Config {
        initial_window: Segments(flight),
        max_window: Some(Segments(flight)),
        max_burst: None,
        timestamps: false,
        ack_every: Segments(1),
        receive_buffer: reknit_units::Capacity::Bytes(Bytes(1 << 30)),
        ..Config::default()
    }
}

/// A sender with unlimited data.
pub(crate) fn sender(composition: &Composition, config: Config) -> Connection {
    let config = Arc::new(composition.configure(config));
    let mut connection = Connection::connect(Instant::ZERO, config, composition.build(), Identity::default());
    connection.write(Bytes(1 << 50));
    connection
}

/// A receiver whose application reads at once.
pub(crate) fn receiver(composition: &Composition, config: Config) -> Connection {
    let config = Arc::new(composition.configure(config));
    let identity = Identity { isn: RECEIVER_ISN, ..Identity::default() };
    let mut connection = Connection::listen(Instant::ZERO, config, composition.build(), identity);
    connection.read_at_once();
    connection
}

/// All segments that the connection has to send.
pub(crate) fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    let mut out = Vec::new();
    while let Output::Send(segment) = connection.poll(now) {
        out.push(segment);
    }
    out
}

/// The handshake; afterwards the first flight of data has been sent.
pub(crate) fn open(sender: &mut Connection, receiver: &mut Connection, now: Instant) -> Vec<Segment> {
    for segment in drain(sender, now) {
        receiver.on_segment(now, &segment);
    }
    for segment in drain(receiver, now) {
        sender.on_segment(now, &segment);
    }
    // The window in a SYN is not scaled; an update opens it.
    let mut data = Vec::new();
    loop {
        let sent = drain(sender, now);
        if sent.is_empty() {
            return data;
        }
        let stamps = sent[0].options.timestamps.map(|stamps| Timestamps { val: stamps.ecr, ecr: stamps.val });
        for segment in sent {
            if segment.len == 0 {
                receiver.on_segment(now, &segment);
            } else {
                data.push(segment);
            }
        }
        let mut update = Segment { window: u16::MAX, ..Segment::default() };
        update.seq = RECEIVER_ISN.plus(1);
        update.ack = SeqNum(1);
        update.flags = Flags::ACK;
        update.options.timestamps = stamps;
        sender.on_segment(now, &update);
    }
}

/// How many nanoseconds it takes to read the clock twice.
pub(crate) fn overhead() -> f64 {
    (0..1000).map(|_| watch().elapsed().as_nanos()).sum::<u128>() as f64 / 1000.0
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn watch() -> Watch {
    Watch::now()
}
