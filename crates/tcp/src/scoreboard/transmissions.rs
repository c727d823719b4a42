//! The open records (neither SACKed, nor lost without a retransmission), in the order of their last transmission, as a
//! doubly linked list through the records.
//!
//! Of segments that were sent at the same time, the one with the lower sequence number counts as the earlier (RFC 8985
//! §6.2).

use reknit_units::Instant;

use super::{Scoreboard, SegId, SegmentRecord};

/// No neighbour.
pub(super) const NIL: u32 = u32::MAX;

/// A neighbour as it is stored in a record.
pub(super) fn low(id: Option<SegId>) -> u32 {
    id.map_or(NIL, |id| id.0 as u32)
}

/// The id whose low half is `low`: the ids in a ring that begins with `front` span far less than 2^32.
pub(super) fn expand(front: u64, low: u32) -> Option<SegId> {
    (low != NIL).then(|| SegId(front + u64::from(low.wrapping_sub(front as u32))))
}

/// The ends of the list.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Ends {
    pub(super) newest: Option<SegId>,
    pub(super) oldest: Option<SegId>,
}

impl Scoreboard {
    /// The open segments (neither SACKed, nor lost without a retransmission), oldest transmission first.
    pub fn in_send_order(&self) -> impl Iterator<Item = (SegId, &SegmentRecord)> {
        let mut next = self.transmissions.oldest;
        std::iter::from_fn(move || {
            let id = next?;
            let record = self.get(id)?;
            next = self.expand(record.newer);
            Some((id, record))
        })
    }

    /// The open segment whose last transmission was the latest before that of `id`.
    ///
    /// A record keeps its link to its older neighbour when it leaves the list, so this also works for a segment that
    /// has just been delivered. It takes as many steps as neighbours left the list together with it.
    pub fn newest_open_before(&self, id: SegId) -> Option<SegId> {
        let mut older = self.expand(self.get(id)?.older);
        while let Some(candidate) = older {
            let record = self.get(candidate)?;
            if record.is_open() {
                break;
            }
            older = self.expand(record.older);
        }
        older
    }

    /// The id whose low half is `low`.
    fn expand(&self, low: u32) -> Option<SegId> {
        expand(self.front, low)
    }

    /// `id` has just been sent.
    pub(super) fn link_newest(&mut self, id: SegId) {
        self.link_from(id, self.transmissions.newest);
    }

    /// Puts `id` into the list, at the position of its last transmission, which is searched in both directions from
    /// `start`, a segment of the list.
    pub(super) fn link_from(&mut self, id: SegId, start: Option<SegId>) {
        let sent = self.key(id);
        let mut older = start;
        while let Some(next) = older.filter(|next| self.key(*next) > sent) {
            older = self.expand(self.at(next).older);
        }
        let after = |older: Option<SegId>| older.map_or(self.transmissions.oldest, |id| self.expand(self.at(id).newer));
        let mut newer = after(older);
        while newer.is_some_and(|next| self.key(next) < sent) {
            (older, newer) = (newer, after(newer));
        }
        self.link(id, older, newer);
    }

    /// The sort key of the list.
    fn key(&self, id: SegId) -> (Instant, SegId) {
        (self.at(id).last_sent, id)
    }

    fn link(&mut self, id: SegId, older: Option<SegId>, newer: Option<SegId>) {
        let record = self.at_mut(id);
        record.older = low(older);
        record.newer = low(newer);
        match older {
            Some(older) => self.at_mut(older).newer = low(Some(id)),
            None => self.transmissions.oldest = Some(id),
        }
        match newer {
            Some(newer) => self.at_mut(newer).older = low(Some(id)),
            None => self.transmissions.newest = Some(id),
        }
    }

    pub(super) fn unlink(&mut self, id: SegId) {
        let record = self.at(id);
        let (older, newer) = (self.expand(record.older), self.expand(record.newer));
        match older {
            Some(older) => self.at_mut(older).newer = low(newer),
            None => self.transmissions.oldest = newer,
        }
        match newer {
            Some(newer) => self.at_mut(newer).older = low(older),
            None => self.transmissions.newest = older,
        }
    }

    /// All transmissions before that of `oldest` leave the list.
    pub(super) fn cut_before(&mut self, oldest: Option<SegId>) {
        self.transmissions.oldest = oldest;
        match oldest {
            Some(oldest) => self.at_mut(oldest).older = NIL,
            None => self.transmissions.newest = None,
        }
    }

    fn at(&self, id: SegId) -> &SegmentRecord {
        self.visit(1);
        &self.records[(id.0 - self.front) as usize]
    }

    pub(super) fn at_mut(&mut self, id: SegId) -> &mut SegmentRecord {
        &mut self.records[(id.0 - self.front) as usize]
    }
}
