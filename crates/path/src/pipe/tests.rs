//! What pipes do to packets.

use reknit_units::Duration;

use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered(u32);

impl Packet for Numbered {
    fn size(&self) -> Bytes {
        Bytes(1000)
    }

    fn copy(&self) -> Numbered {
        *self
    }

    fn flow(&self) -> u32 {
        self.0 % 50
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn pipe(toml: &str) -> Pipe<Numbered> {
    let profile = Profile::parse("test", &format!("description = \"test\"\n{toml}")).unwrap();
    Pipe::new(&profile, Direction::Forward, 1, Phases::Fixed)
}

/// Sends 1 to `n`, one every `gap` milliseconds. Returns what comes out, with the time in milliseconds.
fn train(pipe: &mut Pipe<Numbered>, n: u32, gap: u64) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    let mut take = |pipe: &mut Pipe<Numbered>, until| {
        while let Some((at, packet)) = pipe.pop(until) {
            out.push((at.as_nanos() / 1_000_000, packet.0));
        }
    };
    for i in 0..n {
        let now = at(u64::from(i) * gap);
        take(pipe, now);
        pipe.push(now, Numbered(i + 1));
    }
    take(pipe, at(1_000_000));
    assert!(pipe.is_empty());
    assert_eq!(pipe.next_at(), Instant::NEVER);
    out
}

#[test]
fn nothing_goes_on_for_ever_at_the_end_of_time() {
    for name in crate::builtin::NAMES {
        let profile = Profile::load(name, &[]).unwrap();
        let mut pipe = Pipe::new(&profile, Direction::Forward, 1, Phases::Fixed);
        assert!(pipe.pop(Instant::NEVER).is_none());
        (1..=20).for_each(|i| pipe.push(at(u64::from(i)), Numbered(i)));
        while pipe.pop(Instant::NEVER).is_some() {}
        pipe.push(Instant::NEVER, Numbered(30));
        while pipe.pop(Instant::NEVER).is_some() {}
        assert!(pipe.len() <= 20, "{name}: {}", pipe.len());
    }
    let mut slow = pipe(
        "[[forward]]\nkind = \"link\"\nrate = \"1 bit/s\"\n[[forward]]\nkind = \"outage\"\n\
                         up = \"constant(1 s)\"\ndown = \"constant(1 s)\"\n",
    );
    slow.push(Instant::from_nanos(u64::MAX - 1), Numbered(1));
    assert!(slow.pop(Instant::NEVER).is_none() && slow.is_empty());
}

#[test]
fn links_in_series_add_up() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[forward]]\nkind = \"link\"\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n",
    );
    // 1 ms on the first link, 2 ms on the second, which is the bottleneck.
    assert_eq!(train(&mut pipe, 3, 0), [(33, 1), (35, 2), (37, 3)]);
}

#[test]
fn alternating_paths_reorder() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\n\
         paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n",
    );
    assert_eq!(train(&mut pipe, 4, 10), [(35, 2), (50, 1), (55, 4), (70, 3)]);
}

#[test]
fn a_link_after_a_delay_serves_in_the_order_of_arrival() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\n\
         paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n\
         [[forward]]\nkind = \"link\"\nrate = \"0.8 Mbit/s\"\n",
    );
    // Arrivals at the link: 2 at 35, 1 at 50, 4 at 55, 3 at 70; 10 ms each.
    assert_eq!(train(&mut pipe, 4, 10), [(45, 2), (60, 1), (70, 4), (80, 3)]);
}

#[test]
fn skip_two_reorder_four() {
    // Laor and Gendel's "skip N = 2, reorder M = 4": the third packet after the sixth.
    let mut pipe = pipe("[[forward]]\nkind = \"displace\"\npositions = 3\nevery = 6\n");
    let order: Vec<u32> = train(&mut pipe, 7, 1).into_iter().map(|(_, n)| n).collect();
    assert_eq!(order, [1, 2, 4, 5, 6, 3, 7]);
}

#[test]
fn a_displaced_packet_does_not_wait_forever() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"displace\"\npositions = 3\nevery = 4\nrelease = \"500 ms\"\n\
         [[forward]]\nkind = \"link\"\ndelay = \"1 ms\"\n",
    );
    assert_eq!(train(&mut pipe, 2, 1), [(2, 2), (501, 1)]);
}

#[test]
fn scripted_packets_are_lost_and_reported() {
    let mut pipe = pipe("[[forward]]\nkind = \"loss\"\npackets = [2, 3]\n");
    let out: Vec<u32> = train(&mut pipe, 4, 1).into_iter().map(|(_, n)| n).collect();
    assert_eq!(out, [1, 4]);
    let lost: Vec<u32> = std::iter::from_fn(|| pipe.pop_lost()).map(|lost| lost.packet.0).collect();
    assert_eq!(lost, [2, 3]);
}

/// A packet of a flow that asks for drop notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Told(u32, Option<DropRange>);

impl Packet for Told {
    fn size(&self) -> Bytes {
        Bytes(1000)
    }

    fn copy(&self) -> Told {
        *self
    }

    fn flow(&self) -> u32 {
        7
    }

    fn notice(&self) -> Option<DropNotice> {
        Some(DropNotice { flow: 7, number: self.0, dropped: self.1 })
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        self.1 = Some(dropped);
    }
}

#[test]
fn the_packet_after_dropped_ones_carries_the_notice() {
    for drop_notices in [true, false] {
        let toml = format!(
            "description = \"test\"\ndrop_notices = {drop_notices}\n\
             [[forward]]\nkind = \"loss\"\npackets = [2, 4]\n\
             [[forward]]\nkind = \"loss\"\npackets = [2]\n"
        );
        let mut pipe = Pipe::new(&Profile::parse("test", &toml).unwrap(), Direction::Forward, 1, Phases::Fixed);
        for n in 1..=6 {
            pipe.push(at(0), Told(n, None));
        }
        let out: Vec<Told> = std::iter::from_fn(|| pipe.pop(at(1))).map(|(_, packet)| packet).collect();
        // The first stage drops 2 and 4, and reports them in 3 and 5; the second stage drops that 3.
        let told = drop_notices.then_some(DropRange { lowest: 2, highest: 4 });
        assert_eq!(out, [Told(1, None), Told(5, told), Told(6, None)]);
    }
}

#[test]
fn copies_arrive_later() {
    let mut pipe = pipe("[[forward]]\nkind = \"duplicate\"\nprobability = 1\nextra = \"constant(5 ms)\"\n");
    assert_eq!(train(&mut pipe, 2, 1), [(0, 1), (1, 2), (5, 1), (6, 2)]);
}

#[test]
fn flows_keep_their_path() {
    let paths = "[[forward]]\nkind = \"multipath\"\nchoice = \"per-flow\"\n\
                 paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n";
    let far = |out: Vec<(u64, u32)>| -> Vec<u32> {
        let delay = |(at, n): &(u64, u32)| at - u64::from(n - 1);
        let mut far: Vec<u32> = out.iter().filter(|packet| delay(packet) == 50).map(|(_, n)| n % 50).collect();
        far.sort_unstable();
        far
    };
    let taken = far(train(&mut pipe(paths), 500, 1));
    // Of the ten packets of each flow, all or none.
    assert!(taken.chunks(10).all(|packets| packets.len() == 10 && packets.iter().all(|flow| *flow == packets[0])));
    // Half of 50 flows, by five standard errors.
    assert!((8..=42).contains(&(taken.len() / 10)), "{}", taken.len());
    assert_eq!(far(train(&mut pipe(paths), 500, 1)), taken);
    let profile = Profile::parse("test", &format!("description = \"test\"\n{paths}")).unwrap();
    assert_ne!(far(train(&mut Pipe::new(&profile, Direction::Forward, 2, Phases::Fixed), 500, 1)), taken);
}

#[test]
fn a_corrupted_packet_takes_time_and_is_lost_on_arrival() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"corruption\"\nprobability = 1\n\
         [[forward]]\nkind = \"duplicate\"\nprobability = 1\n\
         [[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n",
    );
    pipe.push(at(0), Numbered(1));
    assert_eq!((pipe.len(), pipe.pop_lost().is_none(), pipe.next_at()), (2, true, at(11)));
    assert_eq!(pipe.pop(at(11)), None);
    let lost = pipe.pop_lost().unwrap();
    assert_eq!((lost.packet, lost.stage, lost.why), (Numbered(1), 0, DropReason::Checksum));
    assert!(pipe.pop_lost().is_none());
    // The copy after it is also corrupted.
    assert_eq!((pipe.pop(at(12)), pipe.pop_lost().is_some(), pipe.is_empty()), (None, true, true));
}

#[test]
fn the_fate_of_a_packet_does_not_affect_its_copy() {
    let mut pipe =
        pipe("[[forward]]\nkind = \"duplicate\"\nprobability = 1\n[[forward]]\nkind = \"loss\"\npackets = [1]\n");
    assert_eq!(train(&mut pipe, 1, 1), [(0, 1)]);
}

#[test]
fn reading_late_gives_the_same_packets() {
    let paths = "[[forward]]\nkind = \"multipath\"\npaths = [{ delay = \"5 ms\" }, { delay = \"9 ms\" }]\n\
                 [[forward]]\nkind = \"displace\"\npositions = 2\nprobability = 0.3\nrelease = \"1.5 ms\"\n\
                 [[forward]]\nkind = \"lull\"\ninterval = \"constant(7 ms)\"\npause = \"constant(3 ms)\"\ndrain = \"100 us\"\n\
                 [[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\n";
    let often = train(&mut pipe(paths), 200, 1);
    let mut late = pipe(paths);
    (0..200).for_each(|i| late.push(at(i), Numbered(i as u32 + 1)));
    let seen = std::iter::from_fn(|| late.pop(at(1_000_000)));
    let seen: Vec<(u64, u32)> = seen.map(|(at, packet)| (at.as_nanos() / 1_000_000, packet.0)).collect();
    assert_eq!(seen, often);
    assert!(seen.iter().map(|(_, n)| *n).collect::<Vec<_>>() != (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_packet_can_be_read_before_it_comes_out() {
    let mut pipe = pipe(
        "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\n\
         paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n",
    );
    (0..4).for_each(|i| pipe.push(at(10 * i), Numbered(i as u32 + 1)));
    assert_eq!(pipe.peek(at(34)), None);
    assert_eq!(pipe.peek(at(35)), Some((at(35), &Numbered(2))));
    assert_eq!(pipe.len(), 4);
    pipe.remove_first();
    assert_eq!(pipe.len(), 3);
    assert_eq!(pipe.peek(at(35)), None);
    assert_eq!(pipe.pop(at(70)), Some((at(50), Numbered(1))));
    assert_eq!(pipe.peek(at(70)), Some((at(55), &Numbered(4))));
}

#[test]
fn idle_stages_change_nothing() {
    let stages = |idle: &str| {
        format!(
            "[[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\n{idle}\
             [[forward]]\nkind = \"delay\"\nprobability = 0.3\nextra = \"constant(5 ms)\"\n{idle}\
             [[forward]]\nkind = \"link\"\nrate = \"4 Mbit/s\"\nqueue = \"3 packets\"\n"
        )
    };
    let idle = "[[forward]]\nkind = \"loss\"\n[[forward]]\nkind = \"duplicate\"\nprobability = 0\n[[forward]]\nkind = \"link\"\n";
    let lost = |stages: &str| {
        let mut pipe = pipe(stages);
        let out = train(&mut pipe, 200, 1);
        (out.len(), std::iter::from_fn(|| pipe.pop_lost()).map(|lost| (lost.packet, lost.stage)).collect::<Vec<_>>())
    };
    let ((with, with_lost), (without, without_lost)) = (lost(&stages(idle)), lost(&stages("")));
    // The positions of the stages stay those of the profile. The random numbers of a stage depend on its position.
    assert!(with > 80 && without > 80 && !without_lost.is_empty());
    assert!(with_lost.iter().all(|(_, stage)| *stage == 8) && without_lost.iter().all(|(_, stage)| *stage == 2));
    assert_eq!(pipe(&stages(idle)).stages.len(), 3);
}
