//! Advice as text.

use std::fmt;

use reknit_units::grouped;
use serde::{Serialize, Serializer};

use super::{Advice, Change, Gain, RUN, SINGLE, SOME};
use crate::CapturePoint;

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Advice::Set { change, gain } => write!(f, "{change}: {gain}"),
            Advice::NoSetting { gain } => write!(
                f,
                "no setting of the sender will help: in a replay of this path the best other one reaches {} Mbit/s, this \
                 transfer {}",
                number(gain.with),
                number(gain.without)
            ),
            Advice::Full { share } => write!(
                f,
                "nothing will make it much faster: it uses {:.0} % of what the bottleneck carries",
                100.0 * share
            ),
            Advice::Tolerate { late_ms } => write!(
                f,
                "use a sender that waits for packets that are {late_ms:.0} ms late before it retransmits them: it must \
                 detect losses by time (RACK, RFC 8985), not by counting duplicate ACKs"
            ),
            Advice::UseModel { late_ms } => write!(
                f,
                "packets are late by up to {late_ms:.0} ms, more than a round trip, and no sender waits that long; BBR (Linux: \
                 {BBR}) may be faster, because it does not slow down for each retransmission; `reknit replay` compares senders \
                 on this path"
            ),
            Advice::KeepOrder { buffer, gain } => write_keep_order(f, buffer, gain),
            Advice::FindLosses { lost, packets, run, gain } => write_losses(f, (lost, packets), run, gain),
            Advice::LowerMtu { mtu: Some(mtu), headers } => write!(
                f,
                "a link of the path carries packets of up to {mtu} bytes, and larger ones were sent: set this MTU at the sender, \
                 or limit the MSS to {} (at a router: clamp it to the path MTU)",
                mtu.saturating_sub(headers)
            ),
            Advice::LowerMtu { mtu: None, .. } => f.write_str(
                "a router says that packets are too big, but not how big they may be: lower the MTU of the sender, or limit the \
                 MSS",
            ),
            Advice::ReadFaster { limited_s } => write!(
                f,
                "the receiver held the transfer back for {limited_s:.1} s: its application did not read, or its receive buffer \
                 is too small (Linux: net.ipv4.tcp_rmem)"
            ),
            Advice::CaptureAt { place, has_handshake } => write!(
                f,
                "some events could not be decided: also capture at the {}{}",
                if place == CapturePoint::Sender { "sender" } else { "receiver" },
                if has_handshake { "" } else { ", including the handshake" }
            ),
            Advice::Thresholds { packets, round_trips, set } => write_thresholds(f, packets, round_trips, set),
            other => f.write_str(other.fixed()),
        }
    }
}

impl Advice {
    /// True if it says that nothing need be done.
    pub(super) const fn is_nothing(self) -> bool {
        matches!(self, Advice::Nothing | Advice::FewLosses)
    }

    /// The text of advice without numbers; empty for other advice.
    const fn fixed(self) -> &'static str {
        match self {
            Advice::DetectSpuriousTimeouts => {
                "the sender's timer expired while packets were only delayed: look for stalls or full queues on the path, and use a \
                 sender with F-RTO (RFC 5682), as Linux is by default"
            }
            Advice::EnableSack => {
                "enable SACK at both ends (Linux: net.ipv4.tcp_sack=1): without it, the sender learns of one missing packet \
                 per round trip"
            }
            Advice::EnableTimestamps => {
                "enable timestamps at both ends (Linux: net.ipv4.tcp_timestamps=1): the sender can then undo false \
                 reductions"
            }
            Advice::FindCopies => {
                "the network duplicates packets, or the capture contains them twice: look for a mirror port, a loop or a \
                 tunnel that sends twice"
            }
            Advice::FewLosses => "nothing: the few lost packets hardly slow the transfer down",
            Advice::Nothing => "nothing: the sender copes with this reordering",
            Advice::FindMtu => {
                "full-sized packets vanish and smaller ones arrive: look for a link or tunnel with a smaller MTU that sends no \
                 ICMP messages; lower the MTU, limit the MSS to it, or set net.ipv4.tcp_mtu_probing=1 (Linux)"
            }
            Advice::FindSilence => {
                "nothing came back: look for a host that is down, and for a firewall or NAT that drops the packets or has \
                 forgotten the connection"
            }
            Advice::KeepOutOfOrder => {
                "the receiver keeps nothing that arrives out of order, so everything behind a lost packet has to be sent again: \
                 use a receiver that buffers out-of-order data and supports SACK"
            }
            Advice::CaptureAll => {
                "packets are missing from the capture: if it was saved through a display filter, save all packets of the connection; \
                 else use a larger buffer (tcpdump -B 65536), or capture only the headers (-s 128)"
            }
            Advice::CaptureBoth => {
                "capture both directions: this capture has only the acknowledgments of the data, so what was lost or late is not known"
            }
            Advice::CaptureUncompressed => {
                "packets with compressed headers or payloads cannot be read: capture before the link compresses them, or turn its \
                 compression off"
            }
            Advice::FindDrops => {
                "packets that were captured near the receiver did not reach its TCP: look for a firewall between them, for \
                 bad checksums and for drops in the host (`ethtool -S`, `nstat`)"
            }
            Advice::RememberLonger => {
                "make the receiver remember more packet numbers: it takes packets that are too late for duplicates and discards them \
                 (docs/guide/quic.md)"
            }
            Advice::LogAcks => {
                "log at the receiver too, or log the frames of packets: without ACK frames, this log does not show which of the packets \
                 that were declared lost were late"
            }
            Advice::LogSender => {
                "log at the sender too: this log shows which packets were late, but not which of them the sender declared lost, nor \
                 its window"
            }
            _ => "",
        }
    }
}

/// How Linux is told to use BBR.
const BBR: &str = "`sysctl net.ipv4.tcp_congestion_control=bbr`";

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Bbr => write!(f, "use BBR at the sender (Linux: {BBR})"),
            Change::Cubic => {
                f.write_str("use CUBIC at the sender (Linux: `sysctl net.ipv4.tcp_congestion_control=cubic`)")
            }
            Change::Reno => {
                f.write_str("use Reno at the sender (Linux: `sysctl net.ipv4.tcp_congestion_control=reno`)")
            }
            Change::Rack => f.write_str(
                "use a sender that detects losses by time (RACK, RFC 8985) instead of counting duplicate ACKs, as Linux does",
            ),
            Change::MaxReordering(segments) => write!(
                f,
                "let the sender tolerate more reordering (Linux: `sysctl net.ipv4.tcp_max_reordering={segments}`)"
            ),
            Change::InOrder => f.write_str("keep each connection on one path"),
            Change::NoLoss => f.write_str("find what loses packets"),
        }
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_least { " or more" } else { "" };
        write!(f, "{}{more} instead of {} Mbit/s, in a replay of this path", number(self.with), number(self.without))
    }
}

/// Three digits.
fn number(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

fn write_gain(f: &mut fmt::Formatter<'_>, gain: Option<Gain>, condition: &str) -> fmt::Result {
    gain.map_or(Ok(()), |gain| write!(f, ": {gain} {condition}"))
}

fn write_keep_order(f: &mut fmt::Formatter<'_>, buffer: Option<u64>, gain: Option<Gain>) -> fmt::Result {
    f.write_str(
        "find what reorders (per-packet load balancing, bonded links, Wi-Fi, a tunnel with several threads) and make it keep \
         each connection on one path",
    )?;
    if let Some(packets) = buffer {
        let plural = if packets == 1 { "" } else { "s" };
        write!(f, ", or restore the order with a buffer of {packets} packet{plural}")?;
    }
    write_gain(f, gain, "without reordering")
}

fn write_thresholds(
    f: &mut fmt::Formatter<'_>,
    packets: [u64; 2],
    round_trips: [f64; 2],
    set: (Option<u64>, Option<f64>),
) -> fmt::Result {
    let thresholds = |packets: u64, round_trips: f64| {
        let round_trips = (round_trips * 100.0).ceil() / 100.0;
        format!("{} packets and {round_trips} round trips", grouped(packets))
    };
    let now = match set {
        (Some(packets), Some(round_trips)) => format!("now {}", thresholds(packets, round_trips)),
        _ => "usually 3 packets and 9/8 round trips".to_owned(),
    };
    let [most, all] = [0, 1].map(|i| thresholds(packets[i], round_trips[i]));
    write!(
        f,
        "raise the thresholds from which the sender declares packets lost (RFC 9002 section 6.1; {now}): {most} "
    )?;
    if most == all {
        f.write_str("cover all of the late packets")?;
    } else {
        write!(f, "cover 99 % of the late packets, {all} all of them")?;
    }
    f.write_str("; docs/guide/quic.md says how QUIC stacks set them, and what that costs")
}

fn write_losses(f: &mut fmt::Formatter<'_>, (lost, packets): (u64, u64), run: f64, gain: Option<Gain>) -> fmt::Result {
    if lost < SOME {
        let (were, have) = if lost == 1 { ("was", "a single loss has") } else { ("were", "two losses have") };
        write!(
            f,
            "{lost} of {} packets {were} lost: {have} no pattern; a longer capture may show one",
            grouped(packets)
        )?;
        return write_gain(f, gain, "without them");
    }
    let share = 100.0 * lost as f64 / packets.max(1) as f64;
    // As many digits as help: 57 %, 2.5 %, 0.04 %.
    let digits = if share >= 10.0 { 0 } else { 2 - usize::from(share >= 1.0) };
    let how = if run >= RUN {
        "mostly in runs: look for a queue that overflows, or a link that fails briefly"
    } else if run <= SINGLE {
        "mostly one by one: look for a noisy link, or a policer"
    } else {
        "one by one and in short runs: look for a noisy link, a policer, or a queue that overflows"
    };
    write!(f, "{share:.digits$} % of packets were lost, {how}")?;
    write_gain(f, gain, "without these losses")
}

impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
