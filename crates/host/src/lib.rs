//! Everything in real time: the engine and the path models with TUN devices, network namespaces and the kernel.
//!
//! [`testbed`] connects two ends by a path model in real time. Each end is the engine, or the TCP of the running kernel
//! in a network namespace that is removed when the program ends. [`emulate`] runs any program with a path as its only
//! network connection. [`doctor`] checks what this machine can run.

mod capture;
mod clock;
pub mod doctor;
pub mod emulate;
mod kernel_script;
mod namespace;
mod packet;
mod packet_socket;
mod priority;
mod programs;
mod punctuality;
pub mod service;
pub mod testbed;

pub use kernel_script::{KernelRun, run_on_kernel};
pub use packet::tcp_header;
pub use packet_socket::{ANY, PacketSocket, Seen, instead_of};
pub use priority::RealTime;
pub use punctuality::{TimingAccuracy, TimingWarning};
pub use testbed::{
    Initiator, KernelCounters, KernelTcp, Spec, StopReason, Tcp, TcpError, TestbedError, TransferResult, run,
};

/// What made a live result: the version, the commit and a digest of the sources that it depends on.
pub const VERSION: &str = env!("REKNIT_VERSION");
