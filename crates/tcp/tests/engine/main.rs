//! The engine's behavior: the protocol, loss recovery, measurements. All tests are one program, because linking takes
//! longer than running.

mod acknowledging;
mod closing;
mod ecn;
mod evidence;
mod limits;
mod nagle_and_keep_alive;
mod opening;
mod plugins;
mod recovery;
mod recovery_interplay;
mod reordering;
mod requirements;
mod resets_and_challenges;
mod spurious;
mod stream;
mod timestamps;
mod windows;
mod withholding;
