//! Two connections by hand, over a network that takes 20 ms and loses every 50th segment of the client.
//!
//! The caller owns the clock and the network: it passes segments and the time to the connections, and asks them what to send
//! and when they want to be called next.

use std::collections::VecDeque;
use std::sync::Arc;

use reknit_tcp::{Config, Connection, Identity, Output, Segment, SeqNum};
use reknit_units::{Bytes, Duration, Instant};

const DELAY: Duration = Duration::from_millis(20);
const LEN: u64 = 1_000_000;

/// Sends what `from` has to send, and returns when it wants to be called. Segments for which `is_lost` are lost.
fn send(
    from: &mut Connection,
    now: Instant,
    network: &mut VecDeque<(Instant, Segment)>,
    mut is_lost: impl FnMut() -> bool,
) -> Instant {
    loop {
        match from.poll(now) {
            Output::Send(_) if is_lost() => {}
            Output::Send(segment) => network.push_back((now + DELAY, segment)),
            Output::WakeAt(at) => return at,
            Output::Idle => return Instant::NEVER,
        }
    }
}

/// Passes the segments that have arrived by `now` to `to`.
fn deliver(to: &mut Connection, now: Instant, network: &mut VecDeque<(Instant, Segment)>) {
    while let Some((_, segment)) = network.pop_front_if(|(at, _)| *at <= now) {
        to.on_segment(now, &segment);
    }
    to.on_timer(now);
    to.read(now, to.readable());
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> Result<(), reknit_variants::UnknownVariant> {
    let variant = reknit_variants::find("rack")?;
    let connection = |open: fn(Instant, Arc<Config>, _, Identity) -> Connection, isn| {
        let identity = Identity { isn: SeqNum(isn), timestamp_offset: 0 };
        open(Instant::ZERO, Arc::new(Config::default()), (variant.compose)().build(), identity)
    };
    let mut server = connection(Connection::listen, 70_000);
    let mut client = connection(Connection::connect, 1);
    client.write(Bytes(LEN));

    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    let (mut now, mut sent) = (Instant::ZERO, 0);
    while client.acknowledged() < LEN {
        let is_lost = || {
            sent += 1;
            sent % 50 == 0
        };
        let client_wakes = send(&mut client, now, &mut there, is_lost);
        let server_wakes = send(&mut server, now, &mut back, || false);
        let arrivals = [there.front(), back.front()].into_iter().flatten().map(|(at, _)| *at);
        now = arrivals.chain([client_wakes, server_wakes]).min().unwrap_or(now);
        deliver(&mut server, now, &mut there);
        deliver(&mut client, now, &mut back);
    }
    let stats = client.send_stats();
    println!(
        "{LEN} bytes in {}, {} of {} segments retransmitted",
        now.since(Instant::ZERO),
        stats.sent.retransmissions(),
        sent
    );
    Ok(())
}
