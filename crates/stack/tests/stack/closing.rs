//! The ends of connections, as users know them from other systems.

use reknit_stack::{Error, Event, Linger, ListenOptions, Shutdown, SocketOptions};
use reknit_tcp::segment::{Flags, Segment};
use reknit_tcp::{CloseReason, State};
use reknit_units::Duration;
use reknit_wire::{Decoded, Endpoints};

use crate::pair::{CALM, CLIENT, Pair, SERVER, Verdict};

const SOON: Duration = Duration::from_secs(1);

#[test]
fn each_half_closes_separately() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    assert_eq!(pair.client().write(client, b"question"), Ok(8));
    pair.client().shutdown(now, client, Shutdown::Write).unwrap();
    assert_eq!(pair.client().write(client, b"more"), Err(Error::ShutDown));
    pair.run_for(SOON);
    assert_eq!(pair.read_all(SERVER, server), (b"question".to_vec(), Ok(())));
    assert_eq!(pair.server().write(server, b"answer"), Ok(6));
    pair.run_for(SOON);
    assert_eq!(pair.read_all(CLIENT, client), (b"answer".to_vec(), Err(Error::WouldBlock)));
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON);
    assert_eq!(pair.read_all(CLIENT, client), (Vec::new(), Ok(())));
    assert_eq!(pair.client().state(client), Some(State::TimeWait));
    assert_eq!(pair.server().sockets(), 0);
    let now = pair.now;
    pair.client().close(now, client);
    pair.run_for(Duration::from_secs(59));
    assert_eq!(pair.client().sockets(), 1, "it is in TIME-WAIT");
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.client().sockets(), 0);
}

#[test]
fn unread_data_at_close_resets() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    pair.client().write(client, b"nobody reads this").unwrap();
    pair.run_for(SOON);
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON);
    assert!(pair.has(CLIENT, Event::Closed(client)));
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Reset)));
    assert_eq!(pair.server().sockets(), 0);
}

#[test]
fn data_after_close_resets() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON);
    assert_eq!(pair.read_all(CLIENT, client), (Vec::new(), Ok(())), "the end of the stream");
    pair.client().write(client, b"too late").unwrap();
    pair.run_for(SOON);
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Reset)));
    assert_eq!(pair.server().sockets(), 0);
}

#[test]
fn what_was_written_before_close_arrives() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let sent = vec![7; 60_000];
    assert_eq!(pair.client().write(client, &sent), Ok(60_000));
    let now = pair.now;
    pair.client().close(now, client);
    assert_eq!(pair.client().write(client, b"x"), Err(Error::ShutDown));
    pair.run_for(SOON);
    assert_eq!(pair.read_all(SERVER, server), (sent, Ok(())));
}

#[test]
fn lingering_ends() {
    for (linger, left) in [(Linger::Send, 1), (Linger::AtMost(SOON * 2), 0), (Linger::AtMost(Duration::ZERO), 0)] {
        let mut pair = Pair::new(CALM, 1);
        let (client, server) = pair.connected(&SocketOptions { linger, ..SocketOptions::default() });
        // The peer does not read, so that its window fills.
        let mut written = 0;
        for _ in 0..20 {
            written += pair.client().write(client, &vec![1; 100_000]).unwrap_or(0);
            pair.run_for(Duration::from_millis(100));
        }
        assert!(written > 200_000);
        let now = pair.now;
        pair.client().close(now, client);
        pair.run_for(SOON * 4);
        assert_eq!(pair.client().sockets(), left, "{linger:?}");
        let failed = pair.server().failure(server) == Some(Error::Ended(CloseReason::Reset));
        assert_eq!(failed, left == 0, "{linger:?}");
    }
}

#[test]
fn a_shut_down_reader_does_not_stop_the_writer() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.server().shutdown(now, server, Shutdown::Read).unwrap();
    let mut written = 0;
    for _ in 0..200 {
        written += pair.client().write(client, &vec![1; 100_000]).unwrap_or(0);
        pair.run_for(Duration::from_millis(100));
    }
    assert!(written > 6_000_000, "{written}: more than any window");
    assert_eq!(pair.client().failure(client), None);
}

#[test]
fn closing_a_listener_resets_what_nobody_has_accepted() {
    let mut pair = Pair::new(CALM, 1);
    let listener = pair.listen(&ListenOptions::default());
    let client = pair.connect();
    pair.run_for(SOON);
    assert!(pair.has(CLIENT, Event::Connected(client)));
    let now = pair.now;
    pair.server().unlisten(now, listener);
    pair.run_for(SOON);
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Reset)));
    assert_eq!(pair.server().sockets(), 0);
    let again = pair.connect();
    pair.run_for(SOON);
    assert_eq!(pair.client().failure(again), Some(Error::Ended(CloseReason::Refused)));
}

#[test]
fn a_closed_socket_waits_for_the_end_of_its_peer() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON * 30);
    assert_eq!((pair.server().sockets(), pair.server().is_finished()), (1, false));
    assert_eq!(pair.client().state(client), Some(State::CloseWait));
    let now = pair.now;
    pair.client().close(now, client);
    pair.run_for(SOON);
    assert_eq!((pair.client().sockets(), pair.server().sockets()), (0, 1), "the end was acknowledged");
    assert!(pair.server().is_finished(), "it is in TIME-WAIT");
    pair.run_for(SOON * 58);
    assert_eq!(pair.server().sockets(), 1);
    pair.run_for(SOON * 3);
    assert_eq!(pair.server().sockets(), 0);
}

#[test]
fn a_peer_that_does_not_close_is_forgotten() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON * 59);
    assert_eq!(pair.server().sockets(), 1);
    pair.run_for(SOON * 3);
    assert_eq!(pair.server().sockets(), 0);
    pair.client().write(client, b"too late").unwrap();
    pair.run_for(SOON);
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Reset)));
}

#[test]
fn only_the_peer_ends_a_wait_for_its_end() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let (local, remote) = pair.server().addresses(server).unwrap();
    let last = std::rc::Rc::new(std::cell::Cell::new(Segment::default()));
    let seen = last.clone();
    pair.filter = Box::new(move |from, packet| {
        if from == CLIENT {
            seen.set(Decoded::read(packet).unwrap().segment);
        }
        Verdict::Pass
    });
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON);
    let ack = last.get();
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..ack };
    let forged = [
        Segment { flags: Flags::RST, seq: ack.seq.plus(1), ..ack },
        Segment { flags: Flags::SYN, ..ack },
        Segment { flags: Flags::FIN, ..fin },
        Segment { seq: ack.seq.plus(1), ..fin },
        Segment { ack: ack.ack.plus(1), ..fin },
        Segment { ack: ack.ack.plus(1), len: 3, ..ack },
        Segment { seq: ack.seq.plus(2), len: 3, ..ack },
    ];
    for segment in forged {
        let endpoints = Endpoints { source: remote, destination: local };
        let payload = &b"xxx"[..segment.len.into()];
        let now = pair.now;
        pair.server().on_segment(now, &Decoded { endpoints, hop_limit: 64, segment, payload });
        pair.run_for(SOON);
        assert_eq!((pair.server().sockets(), pair.server().is_finished()), (1, false), "{segment:?}");
    }
    let now = pair.now;
    pair.client().abort(now, client);
    pair.run_for(SOON);
    assert_eq!(pair.server().sockets(), 0);
}
