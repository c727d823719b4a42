//! Scripts apply to the packets that they select, and to no others.

use reknit_path::{Direction, Packet, Phases, Pipe, Profile, SegmentTag};
use reknit_units::{Bytes, Duration, Instant};

/// A transmission of a segment of a flow; segment 0 is a packet without data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent(u32, u64, u16);

impl Packet for Sent {
    fn size(&self) -> Bytes {
        Bytes(1000)
    }

    fn copy(&self) -> Sent {
        *self
    }

    fn label(&self) -> Option<SegmentTag> {
        let Sent(flow, segment, transmission) = *self;
        Some(SegmentTag { flow, segment, transmission })
    }

    fn flow(&self) -> u32 {
        0
    }
}

/// Sends `packets`, one every 10 ms, through a script. Returns what comes out, with the time in milliseconds, and the
/// pipe.
fn pass(rules: &str, packets: &[Sent]) -> (Vec<(u64, Sent)>, Pipe<Sent>) {
    let toml = format!("description = \"test\"\n[[forward]]\nkind = \"script\"\nrules = [{rules}]\n");
    let profile = Profile::parse("test", &toml).unwrap();
    let mut pipe = Pipe::new(&profile, Direction::Forward, 1, Phases::Fixed);
    pipe.count_runs(0);
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    for packet in packets {
        pipe.push(now, *packet);
        now = now + Duration::from_millis(10);
    }
    while let Some((at, packet)) = pipe.pop(Instant::ZERO + Duration::from_secs(10)) {
        out.push((at.as_nanos() / 1_000_000, packet));
    }
    assert!(pipe.is_empty());
    (out, pipe)
}

/// Segments 1 to `n` of flow 0.
fn segments(n: u64) -> Vec<Sent> {
    (1..=n).map(|segment| Sent(0, segment, 1)).collect()
}

#[test]
fn packets_by_number_and_by_time() {
    let rules = "{ packet = [2, 3], action = \"drop\" }, { packet = 5, action = \"delay\", by = \"15 ms\" }, \
                 { packet = 6, action = \"duplicate\", by = \"5 ms\" }, \
                 { from = \"80 ms\", to = \"105 ms\", action = \"hold\" }";
    let (out, pipe) = pass(rules, &segments(12));
    let order: Vec<(u64, u64)> = out.into_iter().map(|(at, Sent(_, segment, _))| (at, segment)).collect();
    let held = [(105, 9), (105, 10), (105, 11)];
    let before = [(0, 1), (30, 4), (50, 6), (55, 5), (55, 6), (60, 7), (70, 8)];
    assert_eq!(order, [&before[..], &held[..], &[(110, 12)]].concat());
    assert_eq!(pipe.delayed(), 4);
}

#[test]
fn segments_by_number_transmission_and_flow() {
    let train =
        [Sent(0, 0, 0), Sent(0, 1, 1), Sent(0, 2, 1), Sent(0, 2, 2), Sent(1, 2, 1), Sent(0, 2, 3), Sent(0, 3, 1)];
    let kept = |rules: &str| -> Vec<usize> {
        let (out, _) = pass(rules, &train);
        (0..train.len()).filter(|i| out.iter().any(|(_, packet)| *packet == train[*i])).collect()
    };
    assert_eq!(kept("{ segment = 2, action = \"drop\" }"), [0, 1, 3, 5, 6]);
    assert_eq!(kept("{ segment = 2, flow = 0, action = \"drop\" }"), [0, 1, 3, 4, 5, 6]);
    assert_eq!(kept("{ segment = [1, 2], transmission = [2, 3], action = \"drop\" }"), [0, 1, 2, 4, 6]);
}

#[test]
fn runs_count_only_data_packets() {
    let train = [Sent(0, 1, 1), Sent(0, 0, 0), Sent(0, 2, 1), Sent(1, 1, 1), Sent(1, 0, 0), Sent(0, 3, 1)];
    let (_, pipe) = pass("", &train);
    assert_eq!((pipe.run_lengths().packets, pipe.run_lengths().runs), (4, 3));
}
