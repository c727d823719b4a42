//! Whether everything that was written has arrived.

use reknit_stack::{Error, Event, ListenOptions, Shutdown, SocketOptions, Undelivered};
use reknit_tcp::CloseReason;
use reknit_units::Duration;

use crate::pair::{CALM, CLIENT, Pair, SERVER, Verdict, WILD, bytes};

const LEN: usize = 200_000;

/// Writes everything, while the server reads and keeps it.
fn write_all(pair: &mut Pair, client: reknit_stack::SocketId, server: reknit_stack::SocketId) -> Vec<u8> {
    let (data, mut written, mut read) = (bytes(0, 0..LEN), 0, Vec::new());
    while written < LEN {
        written += pair.client().write(client, &data[written..]).unwrap_or(0);
        pair.run_for(Duration::from_millis(10));
        read.extend(pair.read_all(SERVER, server).0);
    }
    read
}

#[test]
fn delivered_means_that_everything_and_the_end_are_acknowledged() {
    let mut pair = Pair::new(WILD, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    assert_eq!(pair.client().delivered(client), Ok(()), "nothing was written");
    let mut read = write_all(&mut pair, client, server);
    let now = pair.now;
    pair.client().shutdown(now, client, Shutdown::Write).unwrap();
    assert_eq!(pair.client().delivered(client), Err(Error::WouldBlock));
    while !pair.has(CLIENT, Event::Delivered(client)) {
        assert!(pair.client().undelivered().connections == 1 && pair.client().is_delivering());
        pair.run_for(Duration::from_millis(5));
        read.extend(pair.read_all(SERVER, server).0);
    }
    assert!(read == bytes(0, 0..LEN));
    assert_eq!(pair.client().delivered(client), Ok(()));
    assert!(pair.client().undelivered().is_empty() && !pair.client().is_delivering());
}

#[test]
fn what_a_dead_peer_does_not_acknowledge_is_counted() {
    let mut pair = Pair::new(CALM, 1);
    let (client, _) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.filter = Box::new(|_, _| Verdict::Drop);
    assert_eq!(pair.client().write(client, &[7; 3000]), Ok(3000));
    let lost = Undelivered { connections: 1, bytes: 3000 };
    assert_eq!(pair.client().undelivered(), lost);
    assert_eq!(lost.to_string(), "3000 bytes on 1 connection were not acknowledged");
    pair.client().close(now, client);
    pair.run_for(Duration::from_secs(3000));
    assert_eq!(pair.client().counters().undelivered, lost);
    assert!(pair.client().undelivered().is_empty(), "the socket is gone");
}

#[test]
fn a_reset_says_that_data_is_lost() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.server().abort(now, server);
    assert_eq!(pair.client().write(client, &[7; 3000]), Ok(3000));
    assert_eq!(pair.client().delivered(client), Err(Error::WouldBlock));
    pair.run_for(Duration::from_secs(1));
    assert!(pair.has(CLIENT, Event::Delivered(client)));
    assert_eq!(pair.client().delivered(client), Err(Error::Ended(CloseReason::Reset)));
    assert_eq!(pair.client().undelivered().bytes, 3000);
    assert!(!pair.client().is_delivering());
}

#[test]
fn all_connections_finish_at_once_and_what_is_left_is_reset() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let listener = pair.listen(&ListenOptions::default());
    let waiting = pair.connect();
    pair.run_for(Duration::from_secs(1));
    let now = pair.now;
    assert_eq!(pair.server().write(server, &[1; 5000]), Ok(5000));
    pair.server().finish_all(now);
    assert_eq!(pair.server().listening_on(listener), None);
    pair.run_for(Duration::from_secs(1));
    assert!(!pair.server().is_delivering());
    assert_eq!(pair.read_all(CLIENT, client), (vec![1; 5000], Ok(())));
    let refused = pair.client().failure(waiting);
    assert_eq!(refused, Some(Error::Ended(CloseReason::Reset)), "nobody had accepted it");
    assert_eq!(pair.client().write(client, &[2; 1000]), Ok(1000));
    pair.filter = Box::new(|end, _| if end == CLIENT { Verdict::Drop } else { Verdict::Pass });
    pair.flush();
    let now = pair.now;
    pair.client().abort_undelivered(now);
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Aborted)));
    assert!(pair.client().undelivered().bytes == 1000 && !pair.client().is_delivering());
}

#[test]
fn the_unspecified_address_of_ipv6_is_for_both_families() {
    let mut pair = Pair::new(CALM, 1);
    let both = pair.server().listen("[::]:80".parse().unwrap(), &ListenOptions::default()).unwrap();
    let options = SocketOptions::default();
    for remote in ["10.0.0.2:80", "[fd00::2]:80"] {
        let now = pair.now;
        pair.client().connect(now, None, remote.parse().unwrap(), &options).unwrap();
        pair.run_for(Duration::from_secs(1));
        let accepted = pair.server().accept(both).expect(remote);
        assert_eq!(pair.server().addresses(accepted).unwrap().0, remote.parse().unwrap());
    }
    let only = pair.listen(&ListenOptions::default());
    let now = pair.now;
    pair.client().connect(now, None, "10.0.0.2:80".parse().unwrap(), &options).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server().accept(only).is_some() && pair.server().accept(both).is_none());
}
