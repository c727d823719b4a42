//! Hide reordering at the receiver, which delays or withholds duplicate ACKs.

pub mod lpc_receiver;
pub mod paxson_rcv;
pub mod yang;
