//! The stages of paths, one file each.

mod arq;
mod corruption;
mod delay;
mod diffserv;
mod displace;
mod duplicate;
mod engines;
mod flutter;
mod gilbert;
mod link;
mod loss;
mod lull;
mod manet;
mod mtu;
mod multipath;
mod netem;
mod outage;
mod rate_trace;
mod recorded;
mod script;
mod shield;
mod slow_path;
mod stall;
mod stripe;
mod varying;
mod wlan;

use std::fmt::{self, Debug};

use reknit_config::{KeyError, read};
use reknit_units::{Bytes, Instant, Rate};

pub use self::arq::Arq;
pub use self::corruption::Corruption;
pub use self::delay::Delay;
pub use self::diffserv::DiffServ;
pub use self::displace::Displace;
pub use self::duplicate::Duplicate;
pub use self::engines::Engines;
pub use self::flutter::Flutter;
pub use self::gilbert::Gilbert;
pub use self::link::{CoDel, FqCoDel, Link, Pie, Red, Server};
pub use self::loss::Loss;
pub use self::lull::Lull;
pub use self::manet::Manet;
pub use self::mtu::Mtu;
pub use self::multipath::{Branch, Choice, Multipath};
pub use self::netem::Netem;
pub use self::outage::Outage;
pub use self::rate_trace::RateTrace;
pub use self::recorded::Recorded;
pub use self::script::{Action, Rule, Script};
pub use self::shield::{Mode, Shield};
pub use self::slow_path::SlowPath;
pub use self::stall::Stall;
pub use self::stripe::Stripe;
pub use self::varying::Varying;
pub use self::wlan::Wlan;
use crate::random::StreamId;
use crate::resequencer::TcpHeader;

/// A packet as stages see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StagePacket {
    /// The index of the packet in the pipe.
    pub(crate) slot: u32,
    /// A value shared by the packets of its flow ([`Packet::flow`](crate::Packet::flow)), if any stage
    /// [reads](Stage::reads_flows) it.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: Bytes,
}

/// What a packet carries, for stages that distinguish packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentTag {
    /// The connection that it belongs to.
    pub flow: u32,
    /// The number of its data segment in the connection, in the order of first transmission, from 1; 0 if it has no
    /// data.
    pub segment: u64,
    /// The number of the transmission of that segment, from 1.
    pub transmission: u16,
}

/// What a gateway sees of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeenByGateway {
    /// Its TCP header. None if it is not TCP.
    pub header: Option<TcpHeader>,
    /// The branch by which it came, of the last stage with branches.
    pub branch: u16,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Dropped early by active queue management.
    Early,
    /// Random or scripted loss.
    Lost,
    /// It arrived corrupted, and the receiver's checksum detected it.
    Checksum,
    /// It was larger than the MTU of a link.
    TooBig {
        /// The MTU, if the sender is told.
        told: Option<u16>,
    },
}

impl DropReason {
    /// True if a queue dropped it.
    pub fn is_in_queue(self) -> bool {
        matches!(self, DropReason::QueueFull | DropReason::Early)
    }
}

/// What a stage does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageOutcome {
    /// It leaves at this time, and nothing else does.
    Departure(Instant),
    /// It is dropped.
    Drop(DropReason),
    /// See the [`Departures`], which may be empty.
    Listed,
}

/// Packets that leave a stage, in the order in which they leave, and those that it drops.
#[derive(Debug, Default)]
pub struct Departures {
    pub(crate) exits: Vec<(Instant, Departure)>,
    pub(crate) drops: Vec<Drop>,
}

/// A packet that is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drop {
    pub(crate) at: Instant,
    pub(crate) item: StagePacket,
    pub(crate) why: DropReason,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) item: StagePacket,
    /// A copy of the item leaves, not the item itself.
    pub(crate) copy: bool,
    /// A bit to flip.
    pub(crate) flip: Option<u64>,
}

impl Departures {
    /// True if nothing has left so far.
    pub fn is_empty(&self) -> bool {
        self.exits.is_empty()
    }

    /// `item`, which may have arrived earlier, is dropped at `at`.
    pub fn push_drop(&mut self, at: Instant, item: StagePacket, why: DropReason) {
        self.drops.push(Drop { at, item, why });
    }

    /// `item` leaves at `at`.
    pub fn push(&mut self, at: Instant, item: StagePacket) {
        self.exits.push((at, Departure { item, copy: false, flip: None }));
    }

    /// A copy of `item` leaves at `at`.
    pub fn push_copy(&mut self, at: Instant, item: StagePacket) {
        self.exits.push((at, Departure { item, copy: true, flip: None }));
    }

    /// The last item that was pushed leaves with a flipped bit: number `bit`, modulo the number of bits.
    pub fn damage(&mut self, bit: u64) {
        if let Some((_, exit)) = self.exits.last_mut() {
            exit.flip = Some(bit);
        }
    }
}

/// A stage in operation. Packets arrive in order of time, but may leave in another order.
pub trait Stage: Debug + Send {
    /// `item` arrives at `at`. This may be before the latest reading of the clock, so a stage with timers first handles
    /// those that were due by then.
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome;

    /// The same for a stage that [reads labels](Stage::reads_labels). None if the packet has no label.
    fn on_labelled(
        &mut self,
        at: Instant,
        item: StagePacket,
        _label: Option<SegmentTag>,
        exits: &mut Departures,
    ) -> StageOutcome {
        self.on_packet(at, item, exits)
    }

    /// True if it distinguishes packets by what they carry.
    fn reads_labels(&self) -> bool {
        false
    }

    /// The same for a stage that [is a gateway](Stage::is_gateway).
    fn on_gateway(
        &mut self,
        at: Instant,
        item: StagePacket,
        _seen: SeenByGateway,
        exits: &mut Departures,
    ) -> StageOutcome {
        self.on_packet(at, item, exits)
    }

    /// True if it reads TCP headers, or knows by which branch of the path a packet has come.
    fn is_gateway(&self) -> bool {
        false
    }

    /// The branch that the last packet took, for stages with parallel branches.
    fn branch(&self) -> Option<u16> {
        None
    }

    /// Packets that it has delayed so far while it let others pass.
    fn delayed(&self) -> u64 {
        0
    }

    /// True if packets may leave in another order than they arrived.
    fn reorders(&self) -> bool {
        false
    }

    /// True if it uses [`StagePacket::flow`].
    fn reads_flows(&self) -> bool {
        false
    }

    /// True if it may let a packet out when none arrives.
    fn has_timers(&self) -> bool {
        false
    }

    /// When to call [`Stage::on_timer`] if no packet arrives before.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline, `now`, has been reached. The next deadline must be later.
    fn on_timer(&mut self, _now: Instant, _exits: &mut Departures) {}
}

/// The parameters of a stage. `Display` describes the stage.
pub(crate) trait Parameters: fmt::Display + Sized {
    /// The stage in operation.
    type Running: Stage;

    /// Checks what the types cannot.
    fn checked(self) -> Result<Self, KeyError> {
        Ok(self)
    }

    /// Builds the stage.
    fn build(&self, id: StreamId) -> Self::Running;

    /// True if packets always pass as if the stage were not there, so that a pipe does not need it.
    fn is_idle(&self) -> bool {
        false
    }

    /// The stage without reordering and random delays; None if nothing remains.
    fn in_order(&self) -> Option<Spec>;

    /// The highest rate that it lets through, if it has a limit.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// The number of parallel branches; 1 if it has none.
    fn branches(&self) -> u16 {
        1
    }
}

macro_rules! stages {
    ($($kind:literal => $name:ident: $doc:literal,)*) => {
        /// The parameters of a stage, as in a profile.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Spec {
            $(#[doc = $doc] $name($name),)*
        }

        /// The kinds of stages and how each reads its table.
        pub(crate) const KINDS: &[(&str, ReadSpec)] =
            &[$(($kind, |table| read(table).and_then($name::checked).map(Spec::$name)),)*];

        /// The schema of each kind of stage, without `kind` and `name`.
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
            vec![$(($kind, <$name as schemars::JsonSchema>::json_schema(generator)),)*]
        }

        /// The names of the kinds of stages.
        pub const KIND_NAMES: &[&str] = &[$($kind),*];

        /// A description of the stage.
        impl fmt::Display for Spec {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Spec::$name(stage) => fmt::Display::fmt(stage, f),)*
                }
            }
        }

        impl Spec {
            /// Its name in profiles.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Spec::$name(_) => $kind,)*
                }
            }

            /// Builds the stage.
            pub(crate) fn build(&self, id: StreamId) -> Running {
                match self {
                    $(Spec::$name(stage) => Running::$name(stage.build(id)),)*
                }
            }

            /// True if packets always pass as if the stage were not there.
            pub(crate) fn is_idle(&self) -> bool {
                match self {
                    $(Spec::$name(stage) => stage.is_idle(),)*
                }
            }

            /// The stage without reordering and random delays; None if nothing remains.
            pub fn in_order(&self) -> Option<Spec> {
                match self {
                    $(Spec::$name(stage) => stage.in_order(),)*
                }
            }

            /// The highest rate that it lets through, if it has a limit.
            pub fn rate(&self) -> Option<Rate> {
                match self {
                    $(Spec::$name(stage) => stage.rate(),)*
                }
            }

            /// The number of parallel branches; 1 if it has none.
            pub(crate) fn branches(&self) -> u16 {
                match self {
                    $(Spec::$name(stage) => stage.branches(),)*
                }
            }
        }

        /// A stage in operation. The list is closed, so packets pass stages without virtual calls.
        #[derive(Debug)]
        pub(crate) enum Running {
            $($name(<$name as Parameters>::Running),)*
        }

        impl Running {
            /// [`Stage::on_packet`].
            fn on_packet_of_any(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
                match self {
                    $(Running::$name(stage) => stage.on_packet(at, item, exits),)*
                }
            }

            /// The stage, for what does not happen to every packet.
            pub(crate) fn stage(&self) -> &dyn Stage {
                match self {
                    $(Running::$name(stage) => stage,)*
                }
            }

            /// The stage, to change it.
            pub(crate) fn stage_mut(&mut self) -> &mut dyn Stage {
                match self {
                    $(Running::$name(stage) => stage,)*
                }
            }
        }
    };
}

impl Running {
    /// [`Stage::on_packet`]. Most stages are links, so there is no call for these.
    #[inline]
    pub(crate) fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        match self {
            Running::Link(link) => link.on_packet(at, item, exits),
            _ => self.on_packet_of_any(at, item, exits),
        }
    }
}

/// Reads a stage's table, without its `kind` and `name`.
pub(crate) type ReadSpec = fn(toml::Table) -> Result<Spec, KeyError>;

stages! {
    "link" => Link: "Rate, propagation delay, queue.",
    "varying-link" => Varying: "A link whose rate drops from time to time.",
    "rate-trace" => RateTrace: "A link whose rate was recorded, as for mahimahi.",
    "loss" => Loss: "Loss at random, or of the packets in a list.",
    "gilbert" => Gilbert: "Loss in bursts of packets.",
    "outage" => Outage: "Periods in which everything is lost.",
    "mtu" => Mtu: "A link that carries only smaller packets.",
    "delay" => Delay: "An extra delay for some of the packets.",
    "stall" => Stall: "Sudden delays that keep the order.",
    "corruption" => Corruption: "Some packets arrive with a flipped bit.",
    "duplicate" => Duplicate: "Copies of some of the packets.",
    "multipath" => Multipath: "Several parallel paths, chosen for each packet.",
    "stripe" => Stripe: "Parallel links of a bundle, with cross traffic.",
    "engines" => Engines: "Parallel forwarding engines.",
    "slow-path" => SlowPath: "A route cache whose misses take the slow path.",
    "lull" => Lull: "Forwarding pauses; the backlog is mixed with new arrivals.",
    "arq" => Arq: "Retransmission by the link layer.",
    "wlan" => Wlan: "A chain of wireless hops with random back-off.",
    "manet" => Manet: "Routes of changing length through a mobile network.",
    "diffserv" => DiffServ: "Packets out of profile are demoted.",
    "displace" => Displace: "Some packets are held until others have passed.",
    "flutter" => Flutter: "One route for all packets, which changes from time to time.",
    "shield" => Shield: "A gateway that restores the order of TCP packets.",
    "netem" => Netem: "A rule in the syntax of Linux's netem.",
    "recorded" => Recorded: "Delays and losses that were measured packet by packet.",
    "script" => Script: "Actions on particular packets, or at particular times.",
}
