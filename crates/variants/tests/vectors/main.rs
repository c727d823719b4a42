//! Worked examples of the algorithms, one file for each. They are one program, because linking takes longer than
//! running.

mod bbr;
mod bbr1;
mod blanton_allman;
mod dcr;
mod door;
mod dsack;
mod dsack_repeat;
mod eifel;
mod frto;
mod leung_ma;
mod lpc_receiver;
mod lpc_sender;
mod ncr;
mod paxson_rcv;
mod pr;
mod rack;
mod reknit;
mod rn;
mod rr;
mod rr_rcv;
mod rr_rtx;
mod rto_adaptk;
mod template;
mod time_delayed;
mod yang;
