//! A loss detector that learns how late packets arrive, for QUIC, SCTP, SRT and other transports.
//!
//! When a packet is missing, the sender cannot know whether it is lost or late. RFC 9002 declares it lost when a packet three
//! higher has been acknowledged, or after 9/8 of a round trip. On a path that reorders more than that, the sender reduces its
//! window again and again although nothing is lost. [`Recovery`] begins as RFC 9002 does. When a packet that it has declared
//! lost is acknowledged after all, it knows that the packet was only late, and how late:
//!
//! * it undoes the reduction that this packet has caused, and only this one;
//! * from then on it waits longer: as long as 99.9 % of the late packets took.
//!
//! It takes 1 kB, allocates nothing, and keeps no record per packet. The same code decides for the TCP variant `reknit`.
//!
//! # States of a packet
//!
//! ```text
//!             acknowledged                    missing for longer than late packets take
//!   sent ─────────────────────▶ done       ┌────────────────────────────────────────────▶ lost: sent again
//!     │                           ▲        │                                                │     │
//!     │ a higher packet           │        │                                                │     │
//!     │ is acknowledged           │ acknowledged: learn how late                            │     │
//!     └───────────────────────▶ missing ───┘                                                │     │
//!                                                                                           │     │
//!                  acknowledged after all: learn how late                                   │     │
//!   only late ◀─────────────────────────────────────────────────────────────────────────────┘     │
//!       │  ▲                                                                                      │
//!       │  │ acknowledged after all: learn how late, undo                                         │
//!       ▼  └──────────────────────────────────── window reduced, once per congestion event ◀──────┘
//!     done                                             at once if nothing was ever late, if most of the last losses
//!                                                      were real, or if more than 10 are undecided;
//!                                                      otherwise when it has been missing for 1.5 times the wait
//! ```
//!
//! # What to call
//!
//! | when | call |
//! |---|---|
//! | a packet is sent, whether it elicits an ACK or not | [`on_sent`](Recovery::on_sent) |
//! | an ACK arrives: for each of its ranges | [`on_acked_range`](Recovery::on_acked_range) |
//! | for each outstanding packet that it acknowledges | [`on_acked`](Recovery::on_acked) |
//! | if it gave a sample of the RTT | [`on_rtt`](Recovery::on_rtt) |
//! | if it reports new ECN-CE marks | [`on_marked`](Recovery::on_marked) |
//! | then, and when a timer expires: for outstanding packets in order, until one is not lost yet | [`loss_time`](Recovery::loss_time); [`on_lost`](Recovery::on_lost) if the packet elicits an ACK |
//! | if these losses are persistent congestion | [`settle`](Recovery::settle) |
//! | then, also if an ACK acknowledged nothing that was outstanding | [`decide`](Recovery::decide) |
//! | to pause slow start | [`is_undecided`](Recovery::is_undecided) |
//! | the connection migrates | [`on_new_path`](Recovery::on_new_path) |
//!
//! The timer expires at the first `loss_time` in the future or at [`Decision::next`], whichever is earlier. Numbers grow with
//! each transmission, and are not used again. [`ALGORITHM.md`][algorithm] has the rules for packet number spaces, paths and
//! undo, the whole algorithm in pseudocode with all constants, and vectors to test another implementation with.
//!
//! What changes in the transport:
//!
//! * The congestion control can undo one reduction. A mark (ECN-CE) asks the detector whether to reduce the window.
//! * The wait may be longer than the probe timeout. So the probe timer runs while packets are missing, although RFC 9002 §6.2.1 says
//!   that it MUST NOT be set then. A probe makes the peer acknowledge; it declares nothing lost.
//! * The wait ends after 16 smoothed round-trip times, or what [`Config::max_wait`] says.
//!
//! # Example
//!
//! The RTT is 20 ms, and a packet leaves each millisecond. Packet 4 takes a path that is 30 ms longer.
//!
//! ```
//! use reknit_recovery::{Nanos, Recovery, Rtt};
//!
//! let ms = Nanos::from_millis;
//! let mut recovery = Recovery::new();
//! let ack = |recovery: &mut Recovery, at: u64, number: u64| {
//!     recovery.on_acked_range(ms(at), number, number);
//!     if number != 4 { // no longer outstanding when its acknowledgment arrives
//!         recovery.on_acked(ms(at), number);
//!     }
//!     recovery.on_rtt(Rtt { smoothed: ms(20), latest: ms(20) });
//! };
//! for number in 0..30 {
//!     recovery.on_sent(number);
//! }
//! for number in 0..4 {
//!     ack(&mut recovery, 20 + number, number);
//! }
//! assert_eq!(recovery.loss_time(4, ms(4)), Nanos::NEVER); // nothing above it is acknowledged
//!
//! ack(&mut recovery, 25, 5); // it is missing since 25 ms
//! assert_eq!(recovery.loss_time(4, ms(4)), ms(4) + ms(20) * 9 / 8); // as in RFC 9002
//! ack(&mut recovery, 26, 6);
//! ack(&mut recovery, 27, 7); // a packet three higher
//! assert_eq!(recovery.loss_time(4, ms(4)), Nanos::ZERO); // lost
//! recovery.on_lost(ms(27), 4);
//! assert_eq!(recovery.decide(ms(27)).reduce, Some(4)); // nothing was ever late: reduced at once
//!
//! ack(&mut recovery, 54, 4); // it arrives after all, 54 - 25 = 29 ms late
//! assert_eq!(recovery.decide(ms(54)).undone(), [4]);
//! assert_eq!(recovery.wait(), Some(Nanos::from_micros(65_536))); // twice that, because it was only one
//!
//! ack(&mut recovery, 55, 15); // packet 14 is missing now, and others are above it
//! ack(&mut recovery, 60, 20);
//! assert_eq!(recovery.loss_time(14, ms(14)), ms(55) + Nanos::from_micros(65_536));
//! # assert!(size_of::<Recovery>() <= 1024);
//! ```
//!
//! # Parts
//!
//! [`Recovery`] is for transports that never reuse a packet number. For others, such as TCP, there are its parts: [`Decisions`]
//! with [`Lateness`] and [`Repairs`], and [`Rounds`]. [The detector of the variant `reknit`][tcp] shows how TCP uses them.
//!
//! For C, there is the crate `reknit-recovery-capi`.
//!
//! [algorithm]: https://github.com/reknit/reknit/blob/main/crates/recovery/ALGORITHM.md
//! [tcp]: https://github.com/reknit/reknit/blob/main/crates/variants/src/reknit/detector.rs
#![no_std]

mod advances;
mod decisions;
mod lateness;
mod list;
mod nanos;
mod queue;
mod recovery;
mod reductions;
mod repairs;
mod rounds;

pub use decisions::{Decided, Decisions, Terms};
pub use lateness::{FROM_1_MS, FROM_1_US, Lateness};
pub use nanos::Nanos;
pub use recovery::{Config, Decision, Recovery, Rtt};
pub use reductions::Reductions;
pub use repairs::{Arrival, Outcomes, Repair, Repairs};
pub use rounds::Rounds;
