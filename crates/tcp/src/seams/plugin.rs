//! What all plug-ins have in common, and the set of plug-ins that makes a connection a variant.

use std::fmt::Debug;

use crate::facts::{Context, Turn};

/// A plug-in of any seam.
pub trait Plugin: Debug + Send {
    /// A change in the sender's recovery. Resets state that belongs to a single episode. Not called for plug-ins of a
    /// receiver.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}

    /// Bytes that it has allocated on the heap.
    fn heap_size(&self) -> usize {
        0
    }
}

/// The contents of a seam: one plug-in, or a list of them.
pub(crate) trait Slot {
    /// Bytes that it occupies, itself included.
    fn size(&self) -> usize;

    /// Tells it about a change in the sender's recovery.
    fn tell(&mut self, cx: &Context<'_>, turn: Turn);
}

impl<P: Plugin + ?Sized> Slot for Box<P> {
    fn size(&self) -> usize {
        size_of_val(&**self) + self.heap_size()
    }

    fn tell(&mut self, cx: &Context<'_>, turn: Turn) {
        self.on_turn(cx, turn);
    }
}

impl<P: Plugin + ?Sized> Slot for Vec<Box<P>> {
    fn size(&self) -> usize {
        self.iter().map(Slot::size).sum()
    }

    fn tell(&mut self, cx: &Context<'_>, turn: Turn) {
        for plugin in self {
            plugin.on_turn(cx, turn);
        }
    }
}

/// The type of the field for a seam that `one` plug-in fills, or `many`.
macro_rules! plugin {
    (one $seam:ident) => { Box<dyn crate::seams::$seam> };
    (many $seam:ident) => { Vec<Box<dyn crate::seams::$seam>> };
}

macro_rules! plugins {
    (
        sender { $($field:ident: $count:ident $seam:ident, $decides:literal;)+ }
        receiver { $($rcv_field:ident: $rcv_count:ident $rcv_seam:ident, $rcv_decides:literal;)+ }
    ) => {
        /// One algorithm for each seam; they make a connection a variant.
        #[derive(Debug)]
        pub struct Plugins {
            /// The sender's plug-ins.
            pub sender: SenderPlugins,
            /// Replaces the sender's plug-ins that need SACK, if the peer does not support it; none if no plug-in needs
            /// it.
            pub without_sack: Option<fn(&mut SenderPlugins)>,
            $(
                #[doc = concat!("Decides ", $rcv_decides, ".")]
                pub $rcv_field: plugin!($rcv_count $rcv_seam),
            )+
        }

        /// One algorithm for each seam of the sender.
        #[derive(Debug)]
        pub struct SenderPlugins {
            $(
                #[doc = concat!("Decides ", $decides, ".")]
                pub $field: plugin!($count $seam),
            )+
        }

        impl SenderPlugins {
            /// Bytes that the plug-ins occupy.
            pub(crate) fn state_size(&self) -> usize {
                0 $(+ self.$field.size())+
            }

            /// Tells every plug-in about a change in the sender's recovery.
            pub(crate) fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
                $(self.$field.tell(cx, turn);)+
            }
        }
    };
}

crate::seams!(plugins);
