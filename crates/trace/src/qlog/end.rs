//! What one end of a connection logged.

use std::collections::BTreeSet;

use reknit_units::Instant;

use super::event::{Ack, Event, Packet};
use super::inbound::Inbound;
use super::outbound::Outbound;

/// The end that wrote a log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Vantage {
    Client,
    Server,
    /// Between the ends, or not known.
    Other,
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) vantage: Vantage,
    /// What both logs of a connection have in common.
    pub(super) group: Option<String>,
    pub(super) outbound: Outbound,
    pub(super) inbound: Inbound,
    pub(super) unnumbered: u64,
    /// Packets and round trips from which the sender declares a packet lost.
    pub(super) thresholds: (Option<u64>, Option<f64>),
    pub(super) last: Instant,
    /// When the logs of losses name a probe timeout.
    lost_by_timer: BTreeSet<Instant>,
    expired: u64,
}

impl End {
    pub(super) fn new(group: Option<String>) -> End {
        End {
            vantage: Vantage::Other,
            group,
            outbound: Outbound::default(),
            inbound: Inbound::default(),
            unnumbered: 0,
            thresholds: (None, None),
            last: Instant::ZERO,
            lost_by_timer: BTreeSet::new(),
            expired: 0,
        }
    }

    /// # Errors
    /// If there is too much to remember.
    pub(super) fn on_event(&mut self, event: Event, at: Instant) -> Result<(), String> {
        self.last = self.last.max(at);
        match event {
            Event::Sent(packet) => self.outbound.on_sent(&packet, at)?,
            Event::Received(packet, acks) => self.on_received(&packet, &acks, at),
            Event::Discarded(named) => self.inbound.on_discarded(named),
            Event::Unnumbered => self.unnumbered += 1,
            Event::Acked { path, space, mut numbers } => {
                numbers.sort_unstable();
                let ranges = numbers.into_iter().map(|number| (number, number)).collect();
                self.outbound.on_ack(path, space, &Ack { path: None, ranges }, at);
            }
            Event::Lost(named, reason) => {
                if reason == super::event::LossReason::ProbeTimeout {
                    self.lost_by_timer.insert(at);
                }
                self.outbound.on_lost(named, reason, at)?;
            }
            Event::LostSome(count) => {
                self.outbound.unnamed_losses = self.outbound.unnamed_losses.saturating_add(count);
            }
            Event::Spurious(named) => self.outbound.on_spurious(named, at),
            Event::Metrics { window, smoothed_rtt, latest_rtt, pto_count } => {
                self.outbound.on_metrics(window, [smoothed_rtt, latest_rtt], pto_count, at);
            }
            Event::Thresholds(packets, round_trips) => {
                let (known_packets, known_round_trips) = self.thresholds;
                self.thresholds = (known_packets.or(packets), known_round_trips.or(round_trips));
            }
            Event::State { is_recovery } => self.outbound.windows.on_state(is_recovery, at),
            Event::ProbeTimeout => self.expired += 1,
            Event::Other => {}
        }
        Ok(())
    }

    fn on_received(&mut self, packet: &Packet, acks: &[Ack], at: Instant) {
        self.inbound.on_packet(packet, at);
        for ack in acks {
            self.outbound.on_ack(packet.path, packet.space, ack, at);
        }
    }

    /// Probe timeouts. Stacks log some of: that the timer expired, a count, and that packets were lost by it.
    pub(super) fn timeouts(&self) -> u64 {
        self.expired.max(self.outbound.timers).max(self.lost_by_timer.len() as u64)
    }
}
