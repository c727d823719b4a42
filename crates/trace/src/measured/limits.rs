//! What limited the data in flight, other than the congestion window: the receiver's window, and the sender's buffer.

use super::{Nanos, PathPacket};
use crate::DirectionReport;

/// A window that was full or closed for this share of the time has limited the transfer.
const OFTEN_FULL: f64 = 0.1;
/// A sender that reaches the largest flight in this share of the round trips is limited by its buffer, if it hardly ever
/// retransmits: a congestion window would have grown.
const OFTEN_REACHED: f64 = 0.5;
const FEW: f64 = 0.001;
/// Packets by which the largest flight may be missed.
const NEARLY: u64 = 2;
/// Fewer round trips decide nothing.
const MIN_ROUNDS: usize = 10;

/// The receive window that limited the transfer, bytes.
pub(super) fn receive_window(direction: &DirectionReport) -> Option<u32> {
    let is_full = direction.limited_by_receiver_s >= OFTEN_FULL * direction.duration_s;
    direction.largest_window_bytes.filter(|_| is_full && direction.duration_s > 0.0)
}

/// The most packets in flight, if the sender's buffer limits them. Only a capture at the sender shows that.
pub(super) fn flight(packets: &[PathPacket], round_trip: Nanos) -> Option<u64> {
    let again = packets.iter().filter(|packet| packet.is_retransmission || packet.is_lost).count();
    if again as f64 > FEW * packets.len() as f64 || round_trip <= 0 {
        return None;
    }
    // The largest flight of each round trip.
    let mut settled: Vec<Nanos> = packets.iter().map(|packet| packet.settled).collect();
    settled.sort_unstable();
    let (mut most, mut rounds, mut ends, mut gone) = (0, Vec::new(), packets.first()?.sent + round_trip, 0);
    for (sent, packet) in packets.iter().enumerate() {
        while packet.sent >= ends {
            rounds.push(std::mem::take(&mut most));
            ends += round_trip.max((packet.sent - ends) / 2);
        }
        while settled.get(gone).is_some_and(|at| *at <= packet.sent) {
            gone += 1;
        }
        most = most.max((sent + 1).saturating_sub(gone) as u64);
    }
    let largest = *rounds.iter().max()?;
    let reached = rounds.iter().filter(|most| **most + NEARLY >= largest).count();
    let is_limit = rounds.len() >= MIN_ROUNDS && reached as f64 >= OFTEN_REACHED * rounds.len() as f64;
    is_limit.then_some(largest)
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Packets on a path of 40 ms with so many in flight in each round trip.
    fn rounds(flights: impl Iterator<Item = i64>) -> Vec<PathPacket> {
        let packet = |round: i64, i: i64| {
            let sent = round * 40 * MS + i * MS / 10;
            PathPacket { settled: sent + 40 * MS, ..travelled(sent, Some(sent + 20 * MS)) }
        };
        (0..).zip(flights).flat_map(|(round, flight)| (0..flight).map(move |i| packet(round, i))).collect()
    }

    #[test]
    fn a_flight_that_stays_the_same_without_losses_is_a_limit() {
        let flight = |packets: &[PathPacket]| flight(packets, 40 * MS);
        let slow_start = || [10, 20, 40, 80];
        assert_eq!(flight(&rounds(slow_start().into_iter().chain([100; 40]))), Some(100));
        assert_eq!(flight(&rounds((10..60).map(|round| 2 * round))), None, "a window that grows");
        assert_eq!(flight(&rounds(slow_start().into_iter())), None, "a short transfer");
        let mut lost = rounds(slow_start().into_iter().chain([100; 40]));
        lost.iter_mut().step_by(100).for_each(|packet| packet.is_lost = true);
        assert_eq!(flight(&lost), None, "a window that is reduced");
    }
}
