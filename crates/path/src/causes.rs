//! The causes of reordering in the papers, each with the built-in path that shows it (`docs/reference/causes.md`).

/// A cause that the papers name.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// The name of the cause.
    pub what: &'static str,
    /// The papers that name it, by the letters of `docs/reference/causes.md`.
    pub named_by: &'static str,
    /// The stage that causes it.
    pub stage: &'static str,
    /// The built-in path that shows it.
    pub path: &'static str,
}

const fn cause(what: &'static str, named_by: &'static str, stage: &'static str, path: &'static str) -> Cause {
    Cause { what, named_by, stage, path }
}

/// C1, C2, ...
pub const CAUSES: [Cause; 20] = [
    cause("per-packet load balancing", "Y, R, S, L", "multipath", "two-paths-50ms"),
    cause("route fluttering", "R, S", "flutter", "survey"),
    cause("striping over parallel links", "Y, R, S, L", "stripe", "striping"),
    cause("parallel forwarding engines", "R, S, L", "engines", "switch-planes"),
    cause("route-cache misses", "Y", "slow-path", "route-cache"),
    cause("forwarding lulls", "R, S", "lull", "forwarding-lull"),
    cause("link-layer retransmission", "S", "arq", "wireless-arq"),
    cause("link-layer retransmission over a satellite", "R", "arq", "satellite-arq"),
    cause("handoffs and other sudden delays, in order", "F", "stall", "sudden-delays"),
    cause("outages", "F", "outage", "outages"),
    cause("competing traffic on a slow link", "F", "varying-link", "shared-slow-link"),
    cause("DiffServ marking", "R", "diffserv", "diffserv"),
    cause("mobile ad-hoc networks", "Y, S", "manet", "manet"),
    cause("several wireless hops, in order", "R", "wlan", "wlan-chain"),
    cause("reordered ACKs", "Y, R, S, L", "delay", "ack-reordering"),
    cause("displacement by a number of positions", "L", "displace", "displaced"),
    cause("random delay of some packets", "R", "delay", "random-delay"),
    cause("several points of reordering in series", "L", "displace", "reordering-in-series"),
    cause("loss bursts, each started by a packet", "R", "outage", "drop-bursts"),
    cause("duplication", "Y", "duplicate", "late-duplicates"),
];
