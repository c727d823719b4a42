//! Times in which every packet was lost: the path was down. It is down for another sender at the same times, so outages are a
//! property of the path and not of single packets. They are no drops of a queue either: a full queue accepts a packet for each
//! that leaves.

use std::ops::Range;

use super::{Nanos, PathPacket, rate};

/// Packets in a row that must be lost, and the least time from the first to the last, in transmission times.
const MIN_PACKETS: usize = 8;
const MIN_TIME: f64 = 8.0;

/// The outages among `packets`, which are in the order of sending; packets that may have arrived end one.
pub(super) fn outages(packets: &[PathPacket], rate: f64) -> Vec<Range<usize>> {
    let mut outages = Vec::new();
    let mut start = 0;
    for run in packets.chunk_by(|a, b| a.is_lost == b.is_lost) {
        let range = start..start + run.len();
        start = range.end;
        let lasted: Nanos = run[run.len() - 1].sent - run[0].sent;
        let is_long = lasted as f64 >= MIN_TIME * rate::time_for(run[0].size, rate);
        if run[0].is_lost && run.len() >= MIN_PACKETS && is_long {
            outages.push(range);
        }
    }
    outages
}

/// Whether each packet was sent outside of the outages.
pub(super) fn outside(packets: &[PathPacket], outages: &[Range<usize>]) -> Vec<bool> {
    let mut is_up = vec![true; packets.len()];
    for outage in outages {
        is_up[outage.clone()].fill(false);
    }
    is_up
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    #[test]
    fn a_time_without_arrivals_is_an_outage_and_a_burst_of_losses_is_not() {
        // A packet each millisecond, on a link of one per millisecond.
        let packet = |i: i64, is_lost: bool| travelled(i * 1_000_000, (!is_lost).then_some((i + 10) * 1_000_000));
        let down: Vec<PathPacket> = (0..100).map(|i| packet(i, (40..60).contains(&i) || i % 10 == 5)).collect();
        assert_eq!(outages(&down, 12e6), vec![40..60]);
        // Ten packets at once, which a full queue drops.
        let mut burst: Vec<PathPacket> = (0..100).map(|i| packet(i, (40..50).contains(&i))).collect();
        burst[40..50].iter_mut().for_each(|packet| packet.sent = 40_000_000);
        assert_eq!(outages(&burst, 12e6), Vec::<Range<usize>>::new());
    }
}
