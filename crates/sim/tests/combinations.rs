//! Random combinations of algorithms that the rules allow, at either end, over random networks: they must have the
//! properties that every variant has.
//!
//! A composition is a variant with parts of other variants. The cases are drawn from a fixed seed; `COMBINATION_CASES`
//! sets their number, `COMBINATION_SEED` another seed.

use proptest::prelude::*;
use proptest::test_runner::{Config as Runner, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use reknit_tcp::Config;
use reknit_tcp::experiment::{AckOrdinal, Dropped, ExperimentalOption};
use reknit_tcp::seams::Seam;
use reknit_tcp::segment::{Flags, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Segment, SeqNum, State};
use reknit_testkit::mixed_composition::{MixedComposition, live};
use reknit_testkit::network::{Case, Model, Polling, case};
use reknit_testkit::peer::Peer;
use reknit_units::{Bytes, Capacity, Segments};
use reknit_variants::Composition;

fn mixed_composition() -> impl Strategy<Value = MixedComposition> {
    let part = (0..Seam::ALL.len(), 0..live().len());
    (0..live().len(), prop::collection::vec(part, 0..10)).prop_map(|(base, parts)| MixedComposition { base, parts })
}

/// A random network, which may also mark packets.
fn any_case() -> impl Strategy<Value = Case> {
    (case(), prop_oneof![2 => Just(0.0), 1 => 0.0..0.2f64, 1 => 0.0..1.0f64]).prop_map(|(mut case, marking)| {
        case.network.marking = marking;
        case
    })
}

fn describe(composition: &Composition) -> String {
    let names = Seam::ALL.map(|seam| {
        let parts = composition.parts(seam);
        let names: Vec<_> = parts.iter().map(|part| format!("{} {}", part.algorithm, part.parameters)).collect();
        format!("    {seam} = [{}]\n", names.join("; ").replace('\n', " "))
    });
    format!("{}    sack = {}, timestamps = {:?}", names.concat(), composition.sack, composition.timestamps)
}

fn play(case: &Case, compositions: [&Composition; 2]) -> Result<bool, String> {
    let mut model = Model::new(case, compositions, Polling::Merged, ());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.play()));
    result.unwrap_or_else(|_| Err("panic".to_owned()))?;
    model.verify()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

#[test]
fn every_combination_that_the_rules_allow_works_as_a_tcp() {
    let cases = number("COMBINATION_CASES").unwrap_or(3000) as u32;
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number("COMBINATION_SEED").unwrap_or(0).to_le_bytes());
    let config = Runner { cases, failure_persistence: None, max_shrink_iters: 3000, ..Runner::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let whole = std::cell::Cell::new(0);
    let result = runner.run(&([mixed_composition(), mixed_composition()], any_case()), |(recipes, case)| {
        let compositions = recipes.each_ref().map(MixedComposition::composition);
        let arrived = play(&case, compositions.each_ref()).map_err(|error| {
            let [first, second] = compositions.each_ref().map(describe);
            TestCaseError::fail(format!("{error}\n  first\n{first}\n  second\n{second}\n"))
        })?;
        whole.set(whole.get() + u32::from(arrived));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(whole.get() >= cases * 95 / 100, "{} of {cases} whole", whole.get());
}

/// What a malicious or broken peer may send; numbers are relative to the correct ones.
#[derive(Clone, Debug)]
struct Word {
    wait_ms: u64,
    seq: i32,
    ack: i32,
    len: u16,
    window: u16,
    flags: u8,
    sack: Vec<(i32, u32)>,
    stamps: (i32, i32),
    experiment: [u8; 12],
    marked: bool,
}

fn word() -> impl Strategy<Value = Word> {
    let near = prop_oneof![4 => Just(0), 3 => -3000..3000i32, 1 => -200_000..200_000i32, 1 => any::<i32>()];
    let ack = prop_oneof![4 => -60_000..1i32, 3 => Just(0), 1 => -3000..3000i32, 1 => any::<i32>()];
    let edge = prop_oneof![4 => -20_000..0i32, 1 => -200_000..3000i32, 1 => any::<i32>()];
    let block = (edge, prop_oneof![3 => 1..5000u32, 1 => any::<u32>()]);
    let stamp = prop_oneof![3 => Just(0), 2 => -2000..50i32, 1 => any::<i32>()];
    let window = prop_oneof![3 => Just(60_000u16), 1 => Just(0), 1 => 0..3000u16, 1 => any::<u16>()];
    let wait = prop_oneof![3 => Just(0), 3 => 0..20u64, 2 => 0..400u64, 1 => 0..20_000u64];
    let len = prop_oneof![2 => Just(0u16), 1 => Just(1000), 1 => 0..1400u16];
    (
        (wait, near, ack, len, window, any::<u8>(), any::<bool>()),
        prop::collection::vec(block, 0..4),
        (stamp.clone(), stamp),
        any::<[u8; 12]>(),
    )
        .prop_map(|((wait_ms, seq, ack, len, window, flags, marked), sack, stamps, experiment)| Word {
            wait_ms,
            seq,
            ack,
            len,
            window,
            flags,
            sack,
            stamps,
            experiment,
            marked,
        })
}

/// The state of the peer: the next byte that each end will send.
struct Standing {
    peer: u32,
    own: u32,
    stamp: u32,
    clock: u32,
}

impl Word {
    fn segment(&self, at: &Standing) -> Segment {
        let bit = |n: u8| self.flags >> n & 1 == 1;
        let mut flags = Flags::ACK;
        if bit(0) && bit(1) {
            flags |= Flags::ECE;
        }
        if bit(2) && bit(3) {
            flags |= Flags::CWR;
        }
        if bit(4) && bit(5) && bit(6) && bit(7) {
            flags |= if bit(0) { Flags::FIN } else { Flags::SYN };
        }
        let any = self.experiment;
        let says = |n: usize| any[n] < 200;
        let number = |n: usize| {
            let [high, middle, low] = [any[n], any[n + 1], any[n + 2]];
            SeqNum(at.peer.wrapping_add(u32::from_be_bytes([high & 1, middle & low, middle, low])))
        };
        let experiment = ExperimentalOption {
            retransmitted: says(0).then_some(any[0] < 100),
            transmission: says(1).then_some(u16::from_be_bytes([any[1], any[10]])),
            ack_ordinal: says(2).then_some(AckOrdinal { repetition: any[10], overtaken: any[11] < 100 }),
            dropped: says(3).then_some(Dropped { lowest: number(4), highest: number(7) }),
            reordered: says(4).then_some(any[7] < 100),
            dup_thresh: says(5).then_some(any[8]),
            ..ExperimentalOption::default()
        };
        let mut sack = SackBlocks::EMPTY;
        for &(left, len) in &self.sack {
            let left = at.own.wrapping_add_signed(left);
            sack.push(SackBlock { left: SeqNum(left), right: SeqNum(left.wrapping_add(len)) });
        }
        let mut segment = Segment {
            seq: SeqNum(at.peer.wrapping_add_signed(self.seq)),
            ack: SeqNum(at.own.wrapping_add_signed(self.ack)),
            len: self.len,
            window: self.window,
            flags,
            ..Segment::default()
        };
        segment.options.sack = sack;
        segment.options.experiment = experiment;
        segment.options.timestamps = Some(Timestamps {
            val: at.stamp.wrapping_add_signed(self.stamps.0.min(50)),
            ecr: at.clock.wrapping_add_signed(self.stamps.1),
        });
        if self.marked {
            segment.ecn = reknit_tcp::segment::Ecn::Congested;
        }
        segment
    }
}

/// Plays the peer's segments, and checks the connection after each.
fn listen(composition: &Composition, config: Config, words: &[Word]) {
    let mut peer = Peer::established_as(composition, config);
    peer.write(1 << 30);
    let (mut ms, mut at) = (10, Standing { peer: 1, own: 1, stamp: 1000, clock: 10_000 });
    for word in words {
        ms += word.wait_ms;
        peer.at(ms);
        for sent in peer.take() {
            at.own = at.own.max(sent.seq.0.wrapping_add(u32::from(sent.len)));
            at.peer = sent.ack.0;
        }
        at.clock = 10_000 + ms as u32;
        at.stamp = 1000 + ms as u32;
        peer.send(word.segment(&at));
        if peer.connection.readable() > Bytes(20_000) {
            peer.read(1 << 20);
        }
        if peer.state() == State::Closed {
            return;
        }
    }
    peer.connection.close();
    peer.at(ms + 1000 * 1000); // until the end of the user timeout
}

#[test]
fn no_peer_can_break_a_connection() {
    let cases = number("COMBINATION_CASES").unwrap_or(3000) as u32;
    let mut seed = [9; 32];
    seed[..8].copy_from_slice(&number("COMBINATION_SEED").unwrap_or(0).to_le_bytes());
    let config = Runner { cases, failure_persistence: None, max_shrink_iters: 3000, ..Runner::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let options = (any::<[bool; 4]>(), 1..12u32, prop_oneof![2000..20_000u64, Just(1 << 20)]);
    let words = prop::collection::vec(word(), 1..80);
    let result =
        runner.run(&(mixed_composition(), options, words), |(mixed_composition, (flags, window, buffer), words)| {
            let composition = mixed_composition.composition();
            let [sack, timestamps, ecn, nagle] = flags;
            let config = Config {
                sack,
                dsack: sack,
                timestamps,
                ecn,
                nagle,
                initial_window: Segments(window),
                receive_buffer: Capacity::Bytes(Bytes(buffer)),
                ..Config::default()
            };
            let listens = std::panic::AssertUnwindSafe(|| listen(&composition, config, &words));
            std::panic::catch_unwind(listens).map_err(|panic| {
                let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                TestCaseError::fail(format!("{message}\n{}\n", describe(&composition)))
            })
        });
    if let Err(error) = result {
        panic!("{error}");
    }
}
