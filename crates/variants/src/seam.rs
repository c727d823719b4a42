//! The seams: the decisions that parts make.

use std::fmt;

macro_rules! seam {
    (
        sender { $($field:ident: $count:ident $seam:ident, $decides:literal;)+ }
        receiver { $($rcv_field:ident: $rcv_count:ident $rcv_seam:ident, $rcv_decides:literal;)+ }
    ) => {
        seam!(@all $($field: $count $seam, $decides;)+ $($rcv_field: $rcv_count $rcv_seam, $rcv_decides;)+);
    };
    (@all $($field:ident: $count:ident $seam:ident, $decides:literal;)+) => {
        /// A decision that parts make. In a variant file each seam is a table with its name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Seam {
            $(
                #[doc = concat!("Decides ", $decides, ".")]
                $seam,
            )+
        }

        impl Seam {
            /// All of them, the sender's first.
            pub const ALL: [Seam; [$(Seam::$seam),+].len()] = [$(Seam::$seam),+];

            /// Its name in variant files.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Seam::$seam => stringify!($field),)+
                }
            }

            /// What it decides.
            pub const fn question(self) -> &'static str {
                match self {
                    $(Seam::$seam => $decides,)+
                }
            }

            /// True if any number of parts may fill it, including none.
            pub const fn takes_many(self) -> bool {
                match self {
                    $(Seam::$seam => seam!(@takes_many $count),)+
                }
            }
        }
    };
    (@takes_many one) => { false };
    (@takes_many many) => { true };
}

reknit_tcp::seams!(seam);

impl fmt::Display for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}
