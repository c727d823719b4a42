//! Variants that wait before a fast retransmit, in case the segment is only late.

pub mod paxson_snd;
pub mod time_delayed;
