//! The stages of which paths are built, one file each.

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
mod multipath;
mod netem;
mod outage;
mod recorded;
mod script;
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
pub use self::link::{Link, Red, Server};
pub use self::loss::Loss;
pub use self::lull::Lull;
pub use self::manet::Manet;
pub use self::multipath::{Branch, Choice, Multipath};
pub use self::netem::Netem;
pub use self::outage::Outage;
pub use self::recorded::Recorded;
pub use self::script::{Action, Rule, Script};
pub use self::slow_path::SlowPath;
pub use self::stall::Stall;
pub use self::stripe::Stripe;
pub use self::varying::Varying;
pub use self::wlan::Wlan;
use crate::random::StreamId;

/// A packet as a stage sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Which packet of the pipe.
    pub(crate) slot: u32,
    /// What the packets of its flow have in common ([`Packet::flow`](crate::Packet::flow)), if some stage
    /// [reads](Stage::reads_flows) it.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: Bytes,
}

/// What a packet carries, for stages that tell packets apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label {
    /// Which connection it belongs to.
    pub flow: u32,
    /// Which of its connection's data segments it carries, in the order of first transmission, from 1; 0 if none.
    pub segment: u64,
    /// Which transmission of that segment, from 1.
    pub transmission: u16,
}

/// Why a packet did not come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// The queue was full.
    QueueFull,
    /// Dropped early by an active queue management.
    Early,
    /// Random or scripted loss.
    Lost,
    /// It arrived damaged: the receiver's checksum refused it.
    Checksum,
}

/// What a stage does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It leaves then, and nothing else does.
    Exit(Instant),
    /// It is gone.
    Drop(Drop),
    /// Whatever was put into the [`Exits`]; perhaps nothing yet.
    SeeExits,
}

/// Packets that leave a stage, in the order in which they leave.
#[derive(Debug, Default)]
pub struct Exits {
    pub(crate) exits: Vec<(Instant, Exit)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) item: Item,
    /// A copy of the item leaves, not itself.
    pub(crate) copy: bool,
    /// With this bit flipped.
    pub(crate) flip: Option<u64>,
}

impl Exits {
    /// True if nothing has left so far.
    pub fn is_empty(&self) -> bool {
        self.exits.is_empty()
    }

    /// `item` leaves at `at`.
    pub fn push(&mut self, at: Instant, item: Item) {
        self.exits.push((at, Exit { item, copy: false, flip: None }));
    }

    /// A copy of `item` leaves at `at`.
    pub fn push_copy(&mut self, at: Instant, item: Item) {
        self.exits.push((at, Exit { item, copy: true, flip: None }));
    }

    /// What was pushed last leaves with a bit flipped: this one, counted round and round.
    pub fn damage(&mut self, bit: u64) {
        if let Some((_, exit)) = self.exits.last_mut() {
            exit.flip = Some(bit);
        }
    }
}

/// A stage at work. Packets arrive in the order of time; what leaves need not.
pub trait Stage: Debug + Send {
    /// `item` arrives at `at`, perhaps before anybody looked at the clock: a stage with timers first does what was due until
    /// then.
    fn on_packet(&mut self, at: Instant, item: Item, exits: &mut Exits) -> Outcome;

    /// The same, for a stage that [reads labels](Stage::reads_labels); no label if the packet has none.
    fn on_labelled(&mut self, at: Instant, item: Item, _label: Option<Label>, exits: &mut Exits) -> Outcome {
        self.on_packet(at, item, exits)
    }

    /// True if it tells packets apart by what they carry.
    fn reads_labels(&self) -> bool {
        false
    }

    /// Packets that it has held up so far, while it let others through at once.
    fn delayed(&self) -> u64 {
        0
    }

    /// True if packets may leave in another order than they came.
    fn reorders(&self) -> bool {
        false
    }

    /// True if [`Item::flow`] matters to it.
    fn reads_flows(&self) -> bool {
        false
    }

    /// True if it may let a packet out although none arrives.
    fn has_timers(&self) -> bool {
        false
    }

    /// When [`Stage::on_timer`] has something to do although no packet arrives.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline, `now`, has come; it must move on.
    fn on_timer(&mut self, _now: Instant, _exits: &mut Exits) {}
}

/// The parameters of a stage. Printed, they say in words what it does.
trait Parameters: fmt::Display + Sized {
    /// Checks what the types cannot.
    fn checked(self) -> Result<Self, KeyError> {
        Ok(self)
    }

    /// The stage at work.
    fn build(&self, id: StreamId) -> Box<dyn Stage>;

    /// The stage without what changes the order of packets or holds them up; None if nothing is left of it.
    fn in_order(&self) -> Option<Spec>;

    /// The most that it lets through, if it has a limit.
    fn rate(&self) -> Option<Rate> {
        None
    }
}

macro_rules! stages {
    ($($kind:literal => $name:ident: $doc:literal,)*) => {
        /// The parameters of a stage, as they stand in a profile.
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

        /// The kinds of stages, as they stand in a profile.
        pub const KIND_NAMES: &[&str] = &[$($kind),*];

        /// The stage in words, for people.
        impl fmt::Display for Spec {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Spec::$name(stage) => fmt::Display::fmt(stage, f),)*
                }
            }
        }

        impl Spec {
            /// What a profile calls it.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Spec::$name(_) => $kind,)*
                }
            }

            /// The stage at work.
            pub fn build(&self, id: StreamId) -> Box<dyn Stage> {
                match self {
                    $(Spec::$name(stage) => stage.build(id),)*
                }
            }

            /// The stage without what changes the order of packets or holds them up; None if nothing is left of it.
            pub fn in_order(&self) -> Option<Spec> {
                match self {
                    $(Spec::$name(stage) => stage.in_order(),)*
                }
            }

            /// The most that it lets through, if it has a limit.
            pub fn rate(&self) -> Option<Rate> {
                match self {
                    $(Spec::$name(stage) => stage.rate(),)*
                }
            }
        }
    };
}

/// Reads a stage's table, without its `kind` and `name`.
pub(crate) type ReadSpec = fn(toml::Table) -> Result<Spec, KeyError>;

stages! {
    "link" => Link: "Rate, propagation delay, queue.",
    "varying-link" => Varying: "A link whose rate drops from time to time.",
    "loss" => Loss: "Random or scripted loss.",
    "gilbert" => Gilbert: "Loss in bursts of packets.",
    "outage" => Outage: "Periods in which everything is lost.",
    "delay" => Delay: "An extra delay for some of the packets.",
    "stall" => Stall: "Sudden delays that keep the order.",
    "corruption" => Corruption: "Some packets arrive with a flipped bit.",
    "duplicate" => Duplicate: "Copies of some of the packets.",
    "multipath" => Multipath: "Several parallel paths, chosen packet by packet.",
    "stripe" => Stripe: "Parallel links of a bundle, with cross traffic.",
    "engines" => Engines: "Parallel forwarding engines.",
    "slow-path" => SlowPath: "A route cache whose misses take the slow path.",
    "lull" => Lull: "Forwarding pauses, the backlog mixed with new arrivals.",
    "arq" => Arq: "Retransmission by the link layer.",
    "wlan" => Wlan: "A chain of wireless hops with random back-off.",
    "manet" => Manet: "Routes of changing length through a mobile network.",
    "diffserv" => DiffServ: "Packets out of profile are demoted.",
    "displace" => Displace: "Some packets are held until others have passed.",
    "flutter" => Flutter: "One route for all packets, another from time to time.",
    "netem" => Netem: "A rule in the words of Linux's netem.",
    "recorded" => Recorded: "Delays and losses that were measured packet by packet.",
    "script" => Script: "What happens to particular packets, or at particular times.",
}
