//! An experiment: a congestion controller for the published crate that decides by itself when a packet is lost, with
//! `reknit-recovery`.
//!
//! quinn tells a controller of an acknowledgment only while it has not declared the packet lost. So its own thresholds must be
//! long: then it learns how late packets are, reduces the window when they are later, and undoes reductions for late ones. The data
//! of a lost packet is still sent again only when quinn declares it lost.
//!
//! It works in the simulator, and shows what a controller can know. Not to be used elsewhere:
//!
//! * quinn tells of the packets that it sends only once for each batch (GSO). Here a batch has one packet.
//! * It takes packets of more than 100 bytes for ones that elicit ACKs. An ACK of 64 ranges is longer, and would count as lost.
//! * A packet that is never acknowledged stays in the list for 10 s, and every ACK searches the list from its beginning.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use reknit_recovery::{Nanos, Recovery, Rtt};

use super::undo::Undoing;

/// Packets with less are ACKs, which are not acknowledged.
const SMALLEST: u64 = 100;
/// Lost packets are remembered for this long.
const REMEMBERED: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outstanding,
    Lost,
    Acked,
}

#[derive(Clone, Copy)]
struct Packet {
    sent: Instant,
    state: State,
}

/// The controller.
pub struct Judging {
    window: Undoing,
    recovery: Recovery,
    epoch: Instant,
    /// The packets from `first` on, by a count of their own: a controller does not know the numbers that are acknowledged.
    packets: VecDeque<Packet>,
    first: u64,
    rtt: Option<Rtt>,
}

impl Judging {
    fn new(window: Undoing, epoch: Instant) -> Judging {
        Judging { window, recovery: Recovery::new(), epoch, packets: VecDeque::new(), first: 0, rtt: None }
    }

    fn nanos(&self, at: Instant) -> Nanos {
        at.saturating_duration_since(self.epoch).into()
    }

    /// Declares packets lost, and forgets those of which nothing is expected any more.
    fn detect(&mut self, now: Instant) {
        let at = self.nanos(now);
        for i in 0..self.packets.len() {
            let Packet { sent, state } = self.packets[i];
            if state == State::Outstanding {
                let number = self.first + i as u64;
                if self.recovery.loss_time(number, self.nanos(sent)) > at {
                    break;
                }
                self.packets[i].state = State::Lost;
                self.recovery.on_lost(at, number);
            }
        }
        while let Some(oldest) = self.packets.front()
            && (oldest.state == State::Acked || now.saturating_duration_since(oldest.sent) > REMEMBERED)
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

impl Controller for Judging {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.window.on_sent(now, bytes, last);
        if bytes >= SMALLEST {
            self.packets.push_back(Packet { sent: now, state: State::Outstanding });
            self.recovery.on_sent(self.first + self.packets.len() as u64 - 1);
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.window.on_ack(now, sent, bytes, app_limited, rtt);
        let same = self.packets.partition_point(|packet| packet.sent < sent);
        let found = self.packets.range(same..).take_while(|packet| packet.sent == sent);
        let Some(i) = found.clone().position(|packet| packet.state != State::Acked).map(|i| same + i) else { return };
        let (at, number) = (self.nanos(now), self.first + i as u64);
        match self.packets[i].state {
            State::Lost => self.recovery.on_acked_range(at, number, number),
            _ => self.recovery.on_acked(at, number),
        }
        self.packets[i].state = State::Acked;
        let latest = now.saturating_duration_since(sent);
        self.rtt = Some(Rtt { smoothed: rtt.get().into(), latest: latest.into() });
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.window.on_end_acks(now, in_flight, app_limited, largest);
        if let Some(rtt) = self.rtt.take() {
            self.recovery.on_rtt(rtt);
        }
        self.detect(now);
        let decision = self.recovery.decide(self.nanos(now));
        for &event in decision.undone() {
            self.window.undo(event);
        }
        if let Some(event) = decision.reduce {
            self.window.reduce(now, event);
        }
    }

    /// Most of these losses have been responded to already, and then change nothing.
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        self.window.on_congestion_event(now, sent, is_persistent, lost);
    }

    #[cfg(feature = "seam")]
    fn undos(&self) -> u64 {
        self.window.undos()
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.window.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    /// For another path, on which nothing has been sent.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Judging::new(self.window.copy(), self.epoch))
    }

    fn initial_window(&self) -> u64 {
        self.window.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes them, from quinn's CUBIC.
#[derive(Default)]
pub struct JudgingConfig {
    inner: Arc<CubicConfig>,
}

impl ControllerFactory for JudgingConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Judging::new(Undoing::new(Arc::clone(&self.inner).build(now, mtu)), now))
    }
}
