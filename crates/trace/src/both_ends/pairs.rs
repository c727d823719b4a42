//! Matches the packets of one capture with those of the other.

use super::clock::Clock;
use super::flows::Sides;
use super::passage::{Captured, Passage};

/// How many packets that look the same are considered before and after the expected one.
const NEAR: usize = 32;

/// For each packet of both captures, the same one in the other.
#[derive(Debug)]
pub(super) struct Pairs {
    pub(super) of_a: Vec<Option<u32>>,
    pub(super) of_b: Vec<Option<u32>>,
    /// Packets of each capture that are copies of one that has its match.
    pub(super) copies: [Vec<bool>; 2],
    /// Groups of packets that look the same and cannot all be distinguished: those of both captures, in their order.
    open: Vec<[Vec<u32>; 2]>,
}

impl Pairs {
    fn join(&mut self, a: u32, b: u32) {
        self.of_a[a as usize] = Some(b);
        self.of_b[b as usize] = Some(a);
    }
}

/// Matches packets that are unique, or that their identification makes unique.
pub(super) fn unambiguous(captures: &[Captured; 2]) -> Pairs {
    let [a, b] = captures.each_ref().map(|captured| &captured.passages[..]);
    let cut = captures[0].cut.max(captures[1].cut);
    let mut pairs = Pairs {
        of_a: vec![None; a.len()],
        of_b: vec![None; b.len()],
        copies: [a, b].map(|passages| vec![false; passages.len()]),
        open: Vec::new(),
    };
    let all = |passages: &[Passage], side: u8| -> Vec<(u64, u8, u32)> {
        passages.iter().zip(0..).map(|(passage, number)| (passage.prints[cut], side, number)).collect()
    };
    let mut all = [all(a, 0), all(b, 1)].concat();
    all.sort_unstable();
    for group in all.chunk_by(|one, next| one.0 == next.0) {
        let (of_a, of_b) = group.split_at(group.partition_point(|(_, side, _)| *side == 0));
        match (of_a, of_b) {
            ([], _) | (_, []) => {}
            ([(.., a)], [(.., b)]) => pairs.join(*a, *b),
            _ => by_id(a, b, [of_a, of_b].map(|side| side.iter().map(|(.., number)| *number).collect()), &mut pairs),
        }
    }
    pairs
}

/// Packets that look the same, but may have different identifications.
fn by_id(a: &[Passage], b: &[Passage], [of_a, of_b]: [Vec<u32>; 2], pairs: &mut Pairs) {
    let ids = |passages: &[Passage], numbers: &[u32]| -> Vec<(u16, u32)> {
        let mut ids: Vec<_> = numbers.iter().map(|number| (passages[*number as usize].id, *number)).collect();
        ids.sort_unstable();
        ids
    };
    let [in_a, in_b] = [ids(a, &of_a), ids(b, &of_b)];
    let mut others = in_b.chunk_by(|one, next| one.0 == next.0).peekable();
    for same in in_a.chunk_by(|one, next| one.0 == next.0) {
        let id = same[0].0;
        while others.next_if(|other| other[0].0 < id).is_some() {}
        let Some(other) = others.next_if(|other| other[0].0 == id).filter(|_| id != 0) else { continue };
        // The same number in both, or copies were made on the way: matched in order.
        let common = same.len().min(other.len());
        if same.len() == other.len() || common == 1 {
            same.iter().zip(other).for_each(|((_, a), (_, b))| pairs.join(*a, *b));
            for (copies, all) in pairs.copies.iter_mut().zip([same, other]) {
                all[common..].iter().for_each(|(_, copy)| copies[*copy as usize] = true);
            }
        }
    }
    let of = [(&pairs.of_a, of_a), (&pairs.of_b, of_b)];
    let mut copies = pairs.copies.iter();
    let open = of.map(|(known, mut numbers)| {
        let copies = copies.next().expect("both sides");
        numbers.retain(|number| known[*number as usize].is_none() && !copies[*number as usize]);
        numbers
    });
    if open.iter().all(|side| !side.is_empty()) {
        pairs.open.push(open);
    }
}

/// Matches the other packets by their times: each one that arrives with the one whose delay is closest to the usual one.
pub(super) fn ambiguous(captures: &[Captured; 2], mut pairs: Pairs, sides: &Sides, clock: &Clock) -> Pairs {
    for open in std::mem::take(&mut pairs.open) {
        let passage = |side: usize, number: u32| &captures[side].passages[number as usize];
        let near = sides.near(0, passage(0, open[0][0]).flow);
        let (sent, arrived) = (&open[near], &open[1 - near]);
        let (mut is_free, mut left) = (vec![true; sent.len()], sent.len());
        let usual = clock.usual(near);
        for number in arrived {
            let at = passage(1 - near, *number).at;
            // The packets that were sent about when this one must have been.
            let delay = |candidate: usize| clock.delay(passage(near, sent[candidate]).at, at, near);
            let middle = sent.partition_point(|candidate| clock.delay(passage(near, *candidate).at, at, near) > usual);
            let around = middle.saturating_sub(NEAR)..(middle + NEAR).min(sent.len());
            let free = around.filter(|candidate| is_free[*candidate]);
            let possible = free.filter(|candidate| delay(*candidate) >= 0 || sent.len() == 1);
            let best = possible.min_by_key(|candidate| delay(*candidate).abs_diff(usual));
            if let Some(best) = best {
                is_free[best] = false;
                let pair = [sent[best], *number];
                pairs.join(pair[near], pair[1 - near]);
                left -= 1;
            } else if left == 0 {
                pairs.copies[1 - near][*number as usize] = true;
            }
        }
    }
    pairs
}
