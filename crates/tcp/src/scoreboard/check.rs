//! Checks the sums of the scoreboard.

use std::ops::Add;

use super::{Scoreboard, SegmentCount, SegmentRecord};

impl Scoreboard {
    /// Recomputes all sums from the records.
    ///
    /// # Errors
    /// Names the sum that differs, which is a bug of the engine.
    pub fn check(&self) -> Result<(), String> {
        let visited = self.visited.0.get();
        let checked = self.check_sums();
        self.visited.0.set(visited); // the check itself is no work of the sender
        checked
    }

    fn check_sums(&self) -> Result<(), String> {
        let live = self.records.iter().skip(self.acked);
        let count = |keep: fn(&SegmentRecord) -> bool| {
            live.clone().filter(|r| keep(r)).map(SegmentCount::one).fold(SegmentCount::default(), SegmentCount::add)
        };
        let terms = [
            ("sent", self.sent, count(|_| true)),
            ("sacked", self.sacked, count(SegmentRecord::is_sacked)),
            ("lost", self.lost, count(SegmentRecord::is_lost)),
            ("retransmitted", self.retransmitted, count(SegmentRecord::is_retransmitted)),
        ];
        for (term, kept, counted) in terms {
            if kept != counted {
                return Err(format!("{term}: kept {kept:?}, counted {counted:?}"));
            }
        }
        let mut runs = 0;
        let mut previous = false;
        for record in live.clone() {
            runs += u32::from(record.is_sacked() && !previous);
            previous = record.is_sacked();
        }
        if runs != self.runs {
            return Err(format!("runs: kept {}, counted {runs}", self.runs));
        }
        let open = live.clone().filter(|r| r.is_open()).count();
        let listed = self.in_send_order().take(self.records.len() + 1).count();
        if open != listed {
            return Err(format!("transmissions: {listed} listed, {open} open"));
        }
        let later = self.in_send_order().skip(1);
        if !self.in_send_order().zip(later).all(|((a, x), (b, y))| (x.last_sent, a) < (y.last_sent, b)) {
            return Err("transmissions are out of order".to_owned());
        }
        Ok(())
    }
}
