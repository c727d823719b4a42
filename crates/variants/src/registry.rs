//! The list of all variants, by family, and the lookup by name.

use std::fmt;

use crate::variant::Variant;

impl Variant {
    /// Its place in the list.
    fn place(&self) -> &'static Place {
        let at = VARIANTS.iter().position(|variant| variant.name == self.name);
        &PLACES[at.expect("every variant is in the list")]
    }

    /// The file that defines it, relative to `crates/variants/src`, and the text of the file; the header describes the
    /// variant.
    pub fn file(&self) -> (&'static str, &'static str) {
        (self.place().file, self.place().text)
    }

    /// True if only a simulator can run it, because the sender needs to know which packets the network lost.
    pub fn is_simulated_only(&self) -> bool {
        self.family() == Family::Limit
    }

    /// What it does about reordering: the family whose folder contains its file.
    pub fn family(&self) -> Family {
        self.place().family
    }
}

/// The place of a variant in the list.
struct Place {
    family: Family,
    file: &'static str,
    text: &'static str,
}

/// The file of a variant, from the parts of its path: the folder of the family, possibly a folder inside it, the file,
/// the constant.
macro_rules! file {
    ($folder:ident $file:ident $name:ident) => {
        concat!(stringify!($folder), "/", stringify!($file), ".rs")
    };
    ($folder:ident $inner:ident $file:ident $name:ident) => {
        concat!(stringify!($folder), "/", stringify!($inner), "/", stringify!($file), ".rs")
    };
}

/// Lists the families with their folders, and the variants in each.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident, $folder:ident, $title:literal { $($($part:ident)::+,)+ })+) => {
        /// What a variant does about reordering, in the order of lists. Each family has a folder.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Family {
            $($(#[$doc])* $family,)+
        }

        impl Family {
            /// All families, in the order of lists.
            pub const ALL: &[Family] = &[$(Family::$family),+];

            /// Its name where variants are selected: the name of its folder.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Family::$family => stringify!($folder),)+
                }
            }

            /// A one-line description for lists.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Family::$family => $title,)+
                }
            }
        }

        /// All variants, in the order in which they are listed.
        pub const VARIANTS: &[Variant] = &[$($(crate::$folder$(::$part)+,)+)+];

        /// The place of each variant.
        const PLACES: &[Place] = &[$($(Place {
            family: Family::$family,
            file: file!($folder $($part)+),
            text: include_str!(file!($folder $($part)+)),
        },)+)+];
    };
}

families! {
    /// Nothing.
    Base, base, "do nothing about reordering" {
        reno::VARIANT,
        reno_nt4::VARIANT,
        newreno::VARIANT,
        sack::VARIANT,
        counted_pipe::VARIANT,
    }
    /// It detects spurious reductions and undoes them.
    Undo, undo, "detect a spurious reduction and undo it" {
        dsack_ss::VARIANT,
        dsack_r::VARIANT,
        dsack_repeat::VARIANT,
        ba_r::VARIANT,
        eifel::EIFEL,
        eifel::EIFEL_RTX,
        frto::FRTO_2002,
        frto::FRTO_2002_DSACK,
        frto::FRTO,
        frto::FRTO_SACK,
        door::VARIANT,
        rto_adaptk::VARIANT,
    }
    /// It adapts the number of duplicate ACKs that indicate a loss.
    Threshold, threshold, "adapt the threshold" {
        lpc_sender::VARIANT,
        blanton_allman::INC,
        blanton_allman::AVG,
        blanton_allman::EWMA,
        rr::variants::FA,
        rr::variants::FA_RTX,
        rr::variants::FAES,
        rr::variants::TA,
        rr::variants::TA_RTX,
        rr::variants::TAES,
        rr::variants::TAES_RTX,
        rr::variants::HG,
        rr::share::VARIANT,
        rr::receiver::VARIANT,
        leung_ma::VARIANT,
        leung_ma::PORT,
        ncr::CAREFUL,
        ncr::AGGRESSIVE,
        rn::VARIANT,
    }
    /// It waits before a fast retransmit.
    Wait, wait, "wait before retransmitting" {
        time_delayed::TIMEDEL,
        time_delayed::TIMEINC,
        paxson_snd::VARIANT,
    }
    /// It detects losses by time instead of by counting duplicate ACKs.
    Time, time, "detect losses by time instead of by counting duplicate ACKs" {
        dcr::VARIANT,
        pr::VARIANT,
        rack::VARIANT,
    }
    /// It controls the rate by a model of the path, not by losses.
    Model, bbr, "control the rate by a model of the path instead of by losses" {
        v1::variant::VARIANT,
        v3::variant::VARIANT,
    }
    /// It behaves as an operating system does.
    System, linux, "behave as an operating system does" {
        variant::VARIANT,
    }
    /// The receiver hides reordering.
    Receiver, receiver, "hide reordering at the receiver" {
        yang::VARIANT,
        paxson_rcv::VARIANT,
        lpc_receiver::VARIANT,
    }
    /// This project's own: it learns how late segments arrive.
    Ours, reknit, "learn how late segments arrive, and wait that long" {
        variant::REKNIT,
        variant::REKNIT_RENO,
    }
    /// It has information that no real sender can have.
    Limit, limit, "an upper bound, in simulation only" {
        oracle::ORACLE,
        oracle::ORACLE_RENO,
        oracle::ORACLE_BBR,
        oracle::ORACLE_BBR1,
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// An unknown variant name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown variant `{name}`; `reknit variants` lists all{}", reknit_config::did_you_mean(.name, VARIANTS.iter().map(|v| v.name)))]
pub struct UnknownVariant {
    /// The name that was requested.
    pub name: String,
}

/// The variant called `name`; case is ignored.
///
/// # Errors
/// If there is none; the message suggests similar names.
pub fn find(name: &str) -> Result<&'static Variant, UnknownVariant> {
    let matches = |known: &str| known.eq_ignore_ascii_case(name.trim());
    VARIANTS
        .iter()
        .find(|v| matches(v.name) || v.aliases.iter().any(|alias| matches(alias)))
        .ok_or_else(|| UnknownVariant { name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        let names: Vec<_> = VARIANTS.iter().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} twice");
            assert_eq!(name.to_lowercase(), **name);
        }
    }

    #[test]
    fn variants_are_found_by_alias_and_in_any_case() {
        assert_eq!(find("RACK-TLP").unwrap().name, "rack");
        let error = find("tahoe").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `tahoe`; `reknit variants` lists all"), "{error}");
    }
}
