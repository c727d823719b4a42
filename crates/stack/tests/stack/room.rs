//! What a full stack does.

use reknit_stack::{ListenOptions, Options, Stack};
use reknit_units::Duration;

use crate::pair::{CALM, Pair, SERVER, Verdict, addresses, bytes};

/// A pair whose server may have this many sockets, and has a listener with this backlog of half-open connections.
fn limited(max_sockets: usize, syn_backlog: usize) -> (Pair, reknit_stack::ListenerId) {
    let mut pair = Pair::new(CALM, 1);
    let options = Options { addresses: vec![addresses(SERVER, false)], max_sockets, ..Options::default() };
    pair.stacks[SERVER] = Stack::new(pair.now, options, [9; 32]);
    let listener = pair.listen(&ListenOptions { syn_backlog, ..ListenOptions::default() });
    (pair, listener)
}

#[test]
fn the_dead_give_way_to_the_living() {
    let (mut pair, listener) = limited(2, 16);
    for i in 0..6 {
        let client = pair.connect();
        pair.run_for(Duration::from_millis(500));
        let server = pair.server().accept(listener).unwrap_or_else(|| panic!("connection {i}"));
        let now = pair.now;
        pair.server().close(now, server);
        pair.run_for(Duration::from_millis(500));
        if i % 2 == 0 {
            pair.client().close(now, client); // the server is in TIME-WAIT, else in FIN-WAIT-2
        }
        pair.run_for(Duration::from_millis(500));
        assert!(pair.server().sockets() <= 2);
    }
}

#[test]
fn without_room_there_is_no_cookie() {
    for syn_backlog in [1, 16] {
        let (mut pair, listener) = limited(1, syn_backlog);
        pair.connect();
        pair.run_for(Duration::from_millis(500));
        assert!(pair.server().accept(listener).is_some());
        pair.connect();
        pair.run_for(Duration::from_millis(500));
        assert_eq!((pair.server().counters().cookies_sent, pair.server().counters().queue_overflows), (0, 1));
    }
}

#[test]
fn only_so_many_closed_sockets_still_send_those_that_have_waited_longest_give_way() {
    let mut pair = Pair::new(CALM, 1);
    let options = Options { addresses: vec![addresses(0, false)], max_orphans: 3, ..Options::default() };
    pair.stacks[0] = Stack::new(pair.now, options, [8; 32]);
    let listener = pair.listen(&ListenOptions::default());
    let is_cut = std::rc::Rc::new(std::cell::Cell::new(false));
    let cut = is_cut.clone();
    pair.filter = Box::new(move |_, _| if cut.get() { Verdict::Drop } else { Verdict::Pass });
    let servers = [1, 2, 3, 4, 5].map(|i| {
        is_cut.set(false);
        let client = pair.connect();
        pair.run_for(Duration::from_millis(50));
        let server = pair.server().accept(listener).unwrap();
        is_cut.set(true);
        pair.client().write(client, &bytes(i, 0..20_000)).unwrap();
        let now = pair.now;
        pair.client().close(now, client);
        pair.run_for(Duration::from_millis(300));
        assert_eq!(pair.client().sockets(), i.min(3));
        server
    });
    is_cut.set(false);
    pair.run_for(Duration::from_secs(30));
    for (i, server) in (1..).zip(servers) {
        let all = (bytes(i, 0..20_000), Ok(()));
        assert_eq!(pair.read_all(SERVER, server) == all, i > 2, "connection {i}");
    }
}
