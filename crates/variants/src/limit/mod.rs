//! What no sender can do, as a bound for those that can be built.

pub mod oracle;
