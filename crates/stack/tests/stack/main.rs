//! Two stacks back to back.

mod batches;
mod budget;
mod closing;
mod datagrams;
mod draining;
mod forwarding;
mod hostile;
mod icmp;
mod live;
mod many;
mod opening;
mod pair;
mod pressure;
mod room;
mod turns;
