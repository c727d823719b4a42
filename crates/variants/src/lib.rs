//! Published TCP algorithms, one file each, written so that a reader can hold the file beside its paper.
//!
//! A **variant** is a named combination of plug-ins for the seams of [`reknit_tcp`]: [`registry`] lists them, and
//! [`composition`] says how one is put together. [`base`] holds the parts that most of them share.
//!
//! [`file`](mod@file) reads variants that a user has put together, [`rules`] says which parts do not go together, and
//! [`parts`] and [`header`] tell people what there is.

mod ba_r;
pub mod base;
pub mod blanton_allman;
pub mod composition;
pub mod dcr;
pub mod door;
pub mod dsack_det;
mod dsack_r;
pub mod dsack_repeat;
mod dsack_ss;
pub mod eifel;
pub mod enhanced_sampling;
pub mod file;
pub mod frto;
pub mod header;
pub mod leung_ma;
pub mod lpc_receiver;
pub mod lpc_sender;
pub mod ncr;
pub mod newreno;
mod order_statistic;
pub mod parts;
pub mod paxson_rcv;
pub mod paxson_snd;
pub mod pr;
pub mod pr_envelope;
pub mod rack;
pub mod registry;
pub mod reno;
mod reno_nt4;
pub mod retransmitted;
pub mod rn;
pub mod rr;
mod rr_costs;
mod rr_histogram;
mod rr_ratio;
pub mod rr_rcv;
pub mod rr_share;
mod rr_tcp;
pub mod rto_adaptk;
pub mod rtt_histogram;
pub mod rules;
pub mod sack;
pub mod time_delayed;
pub mod yang;

pub use composition::Composition;
pub use file::Custom;
pub use registry::{Family, Side, Status, UnknownVariant, Variant, find};

/// Lists variants as `file::CONST`, and keeps the texts of their files beside them.
macro_rules! variants {
    ($($file:ident::$name:ident),* $(,)?) => {
        /// All variants, in the order in which they are listed.
        pub const VARIANTS: &[Variant] = &[$($file::$name),*];

        /// For each variant the file that states it: its name, and its text.
        const FILES: &[(&str, &str)] =
            &[$((concat!(stringify!($file), ".rs"), include_str!(concat!(stringify!($file), ".rs")))),*];
    };
}

variants! {
    reno::VARIANT,
    reno_nt4::VARIANT,
    newreno::VARIANT,
    sack::VARIANT,
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
    lpc_sender::VARIANT,
    blanton_allman::INC,
    blanton_allman::AVG,
    blanton_allman::EWMA,
    rr_tcp::FA,
    rr_tcp::FA_RTX,
    rr_tcp::FAES,
    rr_tcp::TA,
    rr_tcp::TA_RTX,
    rr_tcp::TAES,
    rr_tcp::TAES_RTX,
    rr_tcp::HG,
    rr_share::VARIANT,
    rr_rcv::VARIANT,
    leung_ma::VARIANT,
    ncr::CAREFUL,
    ncr::AGGRESSIVE,
    rn::VARIANT,
    time_delayed::TIMEDEL,
    time_delayed::TIMEINC,
    paxson_snd::VARIANT,
    dcr::VARIANT,
    pr::VARIANT,
    yang::VARIANT,
    paxson_rcv::VARIANT,
    lpc_receiver::VARIANT,
    rack::VARIANT,
}
