//! Variants in which the receiver hides reordering: it delays or withholds duplicate ACKs.

pub mod lpc_receiver;
pub mod paxson_rcv;
pub mod yang;
