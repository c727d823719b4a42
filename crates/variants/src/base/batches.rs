//! Segments that leave together, as segmentation offload in Linux makes them.
//!
//! Two segments or more leave together, as many as the pacing rate allows in a 1024th of a second
//! (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`), but no more than fit a packet of 64 KiB (`sk_gso_max_size`). With
//! room for fewer, and for less than a third of the window (`tcp_tso_win_divisor`), nothing is sent until the next ACK;
//! but not in recovery, if the last transmission is a millisecond ago, or if the first segment in flight was sent less
//! than half a round trip ago (observed: where ACKs are less than a millisecond apart, every second one of them lets two
//! segments be sent). The last segment has PSH, so that the receiver does not wait for more data to merge with it. The
//! peer's window may cut it, but not if another short segment is in flight (observed).

use reknit_tcp::facts::{Context, Phase};
use reknit_tcp::seams::Batch;
use reknit_units::{Duration, Segments};

/// Fewer than this never wait for more.
const SMALLEST_BATCH: u64 = 2;
/// `sk_gso_max_size`: 64 KiB without the room for headers.
const LARGEST_BATCH: u64 = 65_215;
/// A sender that was silent for this long does not wait.
const RECENT: Duration = Duration::from_millis(1);
/// The pacing rate, in percent of a window per round trip: below half of ssthresh (`tcp_pacing_ss_ratio`), and above it
/// (`tcp_pacing_ca_ratio`).
const PACING: (u64, u64) = (200, 120);

/// The segments that the pacing rate allows in a 1024th of a second, and a packet of segmentation offload holds.
fn batch_size(cx: &Context<'_>, srtt: Duration) -> u64 {
    let window = cx.snd.cwnd.max(cx.snd.flight_size()).0 / cx.snd.smss.0;
    let percent = if cx.snd.cwnd.0 < cx.snd.ssthresh.0 / 2 { PACING.0 } else { PACING.1 };
    let by_rate = window * percent * 10_000_000 / 1024 / srtt.as_nanos().max(1);
    by_rate.min(LARGEST_BATCH / cx.snd.smss.0).max(SMALLEST_BATCH)
}

/// How many segments leave together; `since` is the time since the last transmission.
pub(crate) fn of_linux(cx: &Context<'_>, since: Duration) -> Option<Batch> {
    let srtt = cx.snd.srtt?;
    let most = batch_size(cx, srtt);
    let head = cx.board.get(cx.board.first());
    let in_episode = matches!(cx.snd.phase, Phase::Recovery | Phase::Loss);
    let at_once = in_episode || since > RECENT || head.is_none_or(|head| cx.now.since(head.last_sent) < srtt / 2);
    let third = cx.snd.cwnd.0 / cx.snd.smss.0 / 3;
    let least = if at_once { 0 } else { most.min(third).max(1) };
    Some(Batch { least: Segments(least as u32), most: Segments(most as u32) })
}

#[cfg(test)]
mod tests {
    use reknit_tcp::config::Config;
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_units::{Bytes, Instant};

    use super::*;

    #[test]
    fn a_batch_fits_a_packet_of_64_kib_however_short_the_round_trip() {
        let (config, board) = (Config::default(), Scoreboard::default());
        let mut snd = SendState::new(&config);
        (snd.smss, snd.cwnd, snd.ssthresh) = (Bytes(1448), Bytes(1448 * 1000), Bytes(1448));
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        // 1.2 windows in each round trip, for 1/1024 s.
        let cases =
            [(Duration::from_micros(100), 45), (Duration::from_millis(10), 45), (Duration::from_millis(50), 23)];
        for (srtt, segments) in cases {
            assert_eq!(batch_size(&cx, srtt), segments, "{srtt}");
        }
    }
}
