//! What interrupts a transfer: a window that is closed or withdrawn, and another connection between the same ports. Called by
//! `Direction`.

use super::super::clock::Clock;
use super::super::ranges::{Delivery, Range};
use super::super::stall::StallDetector;
use super::Data;

impl Data {
    /// Another connection begins: called after `finish`, before its first packet.
    #[cold]
    pub(in crate::stream) fn begin_again(&mut self) {
        self.clock = Clock::default();
        self.stall_detector = StallDetector::default();
        self.downstream.begin_again();
    }

    /// The window is closed at `edge`, which explains a stall. The receiver has cut off the part of a segment beyond it. Called before
    /// `on_ack` of the same packet.
    pub(in crate::stream) fn on_closed_window(&mut self, edge: u64) {
        self.stall_detector.on_closed_window();
        let index = self.ranges.locate(edge);
        let is_cut = |range: &Range| range.start < edge && range.again.is_empty() && range.delivery == Delivery::Open;
        if self.ranges.at(index).is_some_and(is_cut) {
            let index = self.ranges.split(index, edge);
            if let Some(rest) = self.ranges.at_mut(index) {
                rest.delivery = Delivery::Refused;
            }
        }
    }

    /// The window opens. Called before `on_ack` of the same packet.
    pub(in crate::stream) fn on_opened_window(&mut self) {
        self.stall_detector.on_opened_window();
    }

    /// The receiver has shrunk the window (RFC 9293 §3.8.6) and refuses the data from `edge` on. Called before `on_ack` of the
    /// same packet.
    #[cold]
    pub(in crate::stream) fn on_window_shrunk(&mut self, edge: u64) {
        let mut index = self.ranges.locate(edge);
        while let Some(range) = self.ranges.at_mut(index) {
            if range.start >= edge && range.delivery == Delivery::Open {
                range.delivery = Delivery::Refused;
            }
            index += 1;
        }
    }
}
