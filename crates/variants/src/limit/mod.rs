//! An upper bound for senders: variants that get information which no real sender has.

pub mod oracle;
