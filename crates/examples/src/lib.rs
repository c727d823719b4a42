//! What the programs in `src/bin` share: a WireGuard tunnel that carries the packets of a network.

mod tunnel;

pub use tunnel::{key, tunnel};
