//! The stages of which paths are built, one file each.

mod delay;
mod displace;
mod duplicate;
mod flutter;
mod link;
mod loss;
mod multipath;

use std::fmt::Debug;

use reknit_units::{Bytes, Instant};

pub use self::delay::Delay;
pub use self::displace::Displace;
pub use self::duplicate::Duplicate;
pub use self::flutter::Flutter;
pub use self::link::{Link, Server};
pub use self::loss::Loss;
pub use self::multipath::{Branch, Choice, Multipath};
use crate::random::StreamId;

/// A packet as a stage sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Which packet of the pipe.
    pub(crate) slot: u32,
    /// Octets on the wire.
    pub size: Bytes,
}

/// Why a packet did not come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// The queue was full.
    QueueFull,
    /// Random or scripted loss.
    Lost,
}

/// What a stage does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
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
pub(crate) enum Exit {
    Packet(Item),
    CopyOf(Item),
}

impl Exits {
    /// True if nothing has left so far.
    pub fn is_empty(&self) -> bool {
        self.exits.is_empty()
    }

    /// `item` leaves at `at`.
    pub fn push(&mut self, at: Instant, item: Item) {
        self.exits.push((at, Exit::Packet(item)));
    }

    /// A copy of `item` leaves at `at`.
    pub fn push_copy(&mut self, at: Instant, item: Item) {
        self.exits.push((at, Exit::CopyOf(item)));
    }
}

/// A stage at work. Packets arrive in the order of time; what leaves need not.
pub trait Stage: Debug + Send {
    /// `item` arrives at `at`.
    fn on_packet(&mut self, at: Instant, item: Item, exits: &mut Exits) -> Fate;

    /// True if packets may leave in another order than they came.
    fn reorders(&self) -> bool {
        false
    }

    /// When [`Stage::on_timer`] has something to do although no packet arrives.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline has come.
    fn on_timer(&mut self, _now: Instant, _exits: &mut Exits) {}
}

/// The parameters of a stage, as they stand in a profile.
#[derive(Clone, PartialEq, Debug)]
pub enum Spec {
    /// Rate, propagation delay, queue.
    Link(Link),
    /// Random or scripted loss.
    Loss(Loss),
    /// An extra delay for some of the packets.
    Delay(Delay),
    /// Copies of some of the packets.
    Duplicate(Duplicate),
    /// Several parallel paths, chosen packet by packet.
    Multipath(Multipath),
    /// Some packets are held until others have passed.
    Displace(Displace),
    /// One route for all packets, another from time to time.
    Flutter(Flutter),
}

/// The kinds of stages and how each reads its table.
pub(crate) const KINDS: &[(&str, ReadSpec)] = &[
    ("link", |table| crate::profile::read(table).map(Spec::Link)),
    ("loss", |table| crate::profile::read(table).and_then(Loss::checked).map(Spec::Loss)),
    ("delay", |table| crate::profile::read(table).map(Spec::Delay)),
    ("duplicate", |table| crate::profile::read(table).map(Spec::Duplicate)),
    ("multipath", |table| crate::profile::read(table).and_then(Multipath::checked).map(Spec::Multipath)),
    ("displace", |table| crate::profile::read(table).and_then(Displace::checked).map(Spec::Displace)),
    ("flutter", |table| crate::profile::read(table).map(Spec::Flutter)),
];

/// Reads a stage's table, without its `kind` and `name`.
pub(crate) type ReadSpec = fn(toml::Table) -> Result<Spec, crate::profile::KeyError>;

/// The stage in words, for people.
impl std::fmt::Display for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spec::Link(link) => write!(f, "{link}"),
            Spec::Loss(loss) => write!(f, "{loss}"),
            Spec::Delay(delay) => write!(f, "{} of packets wait a further {}", delay.probability, delay.extra),
            Spec::Duplicate(d) => write!(f, "{} of packets are copied, the copy {} later", d.probability, d.extra),
            Spec::Multipath(multipath) => write!(f, "{multipath}"),
            Spec::Displace(displace) => write!(f, "{displace}"),
            Spec::Flutter(flutter) => write!(
                f,
                "the route changes every {}, to a delay of {}, at least {}",
                flutter.interval, flutter.delay, flutter.minimum
            ),
        }
    }
}

impl Spec {
    /// The stage at work.
    pub fn build(&self, id: StreamId) -> Box<dyn Stage> {
        match self {
            Spec::Link(link) => link.build(),
            Spec::Loss(loss) => loss.build(id),
            Spec::Delay(delay) => delay.build(id),
            Spec::Duplicate(duplicate) => duplicate.build(id),
            Spec::Multipath(multipath) => multipath.build(id),
            Spec::Displace(displace) => displace.build(id),
            Spec::Flutter(flutter) => flutter.build(id),
        }
    }

    /// True if the stage may let a packet out although none arrives.
    pub(crate) fn has_timers(&self) -> bool {
        matches!(self, Spec::Displace(_))
    }

    /// The stage without what changes the order of packets; None if nothing is left of it.
    pub fn in_order(&self) -> Option<Spec> {
        match self {
            Spec::Link(_) | Spec::Loss(_) => Some(self.clone()),
            Spec::Multipath(multipath) => Some(multipath.first_path()),
            Spec::Flutter(flutter) => Some(Spec::Link(Link { delay: flutter.minimum, ..Link::default() })),
            Spec::Delay(_) | Spec::Duplicate(_) | Spec::Displace(_) => None,
        }
    }
}
