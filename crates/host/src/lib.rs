//! Everything in real time: the engine and the path models with TUN devices, network namespaces and the kernel.
//!
//! [`testbed`] connects two ends by a path model in real time. Each end is the engine, or the TCP of the running kernel
//! in a network namespace that is removed when the program ends. [`emulate`] runs any program with a path as its only
//! way out. [`doctor`] checks what this machine can run.

mod clock;
pub mod doctor;
pub mod emulate;
mod emulator;
mod end;
mod engine_end;
mod kernel_end;
mod kernel_script;
mod namespace;
mod observer;
mod outcome;
mod packet_socket;
mod punctuality;
#[cfg(test)]
mod replay;
mod stack;
pub mod testbed;
mod workload;

pub use kernel_end::KernelCounters;
pub use kernel_script::{KernelRun, run_on_kernel};
pub use outcome::{Ending, Outcome};
pub use packet_socket::{ANY, PacketSocket, Seen};
pub use punctuality::{Doubt, Punctuality};
pub use stack::{KernelTcp, Stack, StackError};
pub use testbed::{Opener, Spec, TestbedError, run};
