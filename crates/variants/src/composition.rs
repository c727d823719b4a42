//! The parts of a variant, one for each seam.

use reknit_tcp::Config;
use reknit_tcp::seams::{Plugins, ReceiverPlugins, SenderPlugins};

use crate::part::{Face, Shared};
use crate::seam::Seam;
use crate::slot::{Build, Slot};

/// The type of the field for a seam that `one` part fills, or `many` parts may fill.
macro_rules! parts {
    (one $seam:ident) => { Shared<dyn reknit_tcp::seams::$seam> };
    (many $seam:ident) => { Vec<Shared<dyn reknit_tcp::seams::$seam>> };
}

macro_rules! composition {
    (
        sender { $($field:ident: $count:ident $seam:ident, $decides:literal;)+ }
        receiver { $($rcv_field:ident: $rcv_count:ident $rcv_seam:ident, $rcv_decides:literal;)+ }
    ) => {
        /// One part for each seam, and the options of the connection that the variant requires.
        #[derive(Clone, Debug)]
        pub struct Composition {
            $(
                #[doc = concat!("Decides ", $decides, ".")]
                pub $field: parts!($count $seam),
            )+
            $(
                #[doc = concat!("Decides ", $rcv_decides, ".")]
                pub $rcv_field: parts!($rcv_count $rcv_seam),
            )+
            /// False for variants that do not use SACK.
            pub sack: bool,
            /// Whether timestamps are offered, overriding the connection's options; `None` does not override them.
            pub timestamps: Option<bool>,
            /// Replaces the plug-ins that need SACK if the peer does not support it; `None` if no plug-in needs it.
            pub without_sack: Option<fn(&mut SenderPlugins)>,
            /// Sets options of the connection that belong to the variant; they override all other settings.
            pub options: Option<fn(&mut Config)>,
        }

        impl Composition {
            /// The plug-ins of one connection.
            pub fn build(&self) -> Plugins {
                Plugins {
                    sender: SenderPlugins { $($field: self.$field.plugins(),)+ },
                    receiver: ReceiverPlugins { $($rcv_field: self.$rcv_field.plugins(),)+ },
                    without_sack: self.without_sack.filter(|_| self.sack),
                }
            }

            /// What fills `seam`.
            pub fn slot(&self, seam: Seam) -> &dyn Slot {
                match seam {
                    $(Seam::$seam => &self.$field,)+
                    $(Seam::$rcv_seam => &self.$rcv_field,)+
                }
            }

            /// What fills `seam`, for modification.
            pub fn slot_mut(&mut self, seam: Seam) -> &mut dyn Slot {
                match seam {
                    $(Seam::$seam => &mut self.$field,)+
                    $(Seam::$rcv_seam => &mut self.$rcv_field,)+
                }
            }
        }
    };
}

reknit_tcp::seams!(composition);

impl Composition {
    /// The options of the connection with the changes that this variant requires.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        if let Some(set) = self.options {
            set(&mut config);
        }
        config.sack &= self.sack;
        config.timestamps = self.timestamps.unwrap_or(config.timestamps);
        config.dsack &= config.sack;
        config
    }

    /// What fills `seam`, as users see it. Parts without a name are left out.
    pub fn faces(&self, seam: Seam) -> Vec<Face> {
        self.slot(seam).faces()
    }
}
