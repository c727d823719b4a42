//! Which logs are of the same connection.

use super::end::{End, Vantage};

/// A connection: what its client and its server logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection<'a> {
    pub(super) ends: [Option<&'a End>; 2],
}

/// Pairs the logs of clients with those of servers of the same group; if there is only one of each, they belong together unless they
/// contradict each other.
pub(super) fn connections(ends: Vec<&End>) -> Vec<Connection<'_>> {
    let mut connections: Vec<Connection<'_>> = Vec::new();
    let are_alone = is_single(&ends, Vantage::Client) && is_single(&ends, Vantage::Server) && ends.len() == 2;
    for end in ends {
        let side = usize::from(end.vantage == Vantage::Server);
        let is_other = |connection: &&mut Connection<'_>| {
            let [mine, theirs] = [connection.ends[side], connection.ends[1 - side]];
            let Some(theirs) = theirs.filter(|theirs| mine.is_none() && theirs.vantage != Vantage::Other) else {
                return false;
            };
            let is_same = end.group.is_some() && end.group == theirs.group;
            end.vantage != Vantage::Other && (is_same || are_alone && agree(end, theirs) && agree(theirs, end))
        };
        if let Some(connection) = connections.iter_mut().find(is_other) {
            connection.ends[side] = Some(end);
        } else {
            let mut ends = [None; 2];
            ends[side] = Some(end);
            connections.push(Connection { ends });
        }
    }
    connections
}

fn is_single(ends: &[&End], vantage: Vantage) -> bool {
    ends.iter().filter(|end| end.vantage == vantage).count() == 1
}

/// True unless one received what the other did not send.
fn agree(receiver: &End, sender: &End) -> bool {
    receiver.inbound.spaces.iter().all(|((_, space), arrived)| {
        let sent = sender.outbound.largest_sent(*space);
        sent.is_none() || arrived.numbers.largest() <= sent
    })
}
