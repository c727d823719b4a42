//! The rules that bring packets to the device.
//!
//! The SYN of a connection that a listener takes gets a mark, and its connection (conntrack) too. Packets of the client with this
//! mark are routed by a table whose only route is the device. The kernel's socket to the server has the client's address; a second
//! table delivers the server's packets to it. Without the device the first table is empty, and the next rule decides.

use std::fmt::Write;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use crate::goodput::By;
use crate::marks::{MASK, Marks};
use crate::settings::{BadLeg, ClientAddress, Fail, Listener, Settings};
use reknit_host::service::{Plan, Step, interfaces, setting};

/// The TUN device.
pub const DEVICE: &str = "reknit-proxy";
/// The table of nftables.
pub const TABLE: &str = "reknit_proxy";
/// The routing tables: to the device, and to sockets with addresses that are not this machine's.
const TO_DEVICE: u32 = 29_291;
const TO_SOCKETS: u32 = 29_292;
/// The preferences of the rules. The rule for local addresses has 0, and moves behind ours if a listener has a local address.
const PREFERENCE: u32 = 10;
const LOCAL: u32 = 20;

/// Which parts of a machine's configuration matter.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Listeners have addresses of this machine.
    pub has_local: bool,
    /// Interfaces that do not forward IPv4, although packets for a listener with a local address arrive there.
    pub closed_interfaces: Vec<String>,
}

impl Machine {
    /// What this machine is like.
    ///
    /// # Errors
    /// If it does not forward, and must.
    pub fn examine(settings: &Settings) -> Result<Machine, String> {
        let is_local = |listener: &Listener| listener.single_ip().is_some_and(is_local);
        let has_local = settings.listeners.iter().any(is_local);
        for (is_v4, key) in [(true, "net.ipv4.ip_forward"), (false, "net.ipv6.conf.all.forwarding")] {
            let mut of_family = settings.listeners.iter().filter(|listener| listener.listen.is_ipv4() == is_v4);
            let needed = of_family.any(|listener| !is_v4 || !is_local(listener));
            if needed && setting(key).as_deref() == Some("0") {
                return Err(format!("{key} is 0, but packets for the proxy are forwarded to it: sysctl -w {key}=1"));
            }
        }
        let closed_interfaces = if has_local { closed_interfaces() } else { Vec::new() };
        Ok(Machine { has_local, closed_interfaces })
    }
}

/// True if an interface of this network namespace has the address.
fn is_local(ip: IpAddr) -> bool {
    let has = |address: &SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
        v4.or(v6) == Some(ip)
    };
    getifaddrs().is_ok_and(|mut all| all.any(|one| one.address.as_ref().is_some_and(has)))
}

fn closed_interfaces() -> Vec<String> {
    let is_closed =
        |name: &String| name != DEVICE && setting(&format!("net.ipv4.conf.{name}.forwarding")).as_deref() == Some("0");
    interfaces().filter(is_closed).collect()
}

/// What is done for these settings once the device exists.
pub fn plan(settings: &Settings, marks: Marks, machine: &Machine) -> Plan {
    let mut plan = Plan::default();
    for (key, value) in [("accept_local", "1"), ("rp_filter", "2"), ("forwarding", "1")] {
        plan.steps.push(Step::Set(format!("net.ipv4.conf.{DEVICE}.{key}"), value.to_owned()));
    }
    for interface in &machine.closed_interfaces {
        let key = format!("net.ipv4.conf.{interface}.forwarding");
        plan.steps.push(Step::Set(key.clone(), "1".to_owned()));
        plan.undo.push(Step::Set(key, "0".to_owned()));
    }
    let has = |is_v4| settings.listeners.iter().any(|listener| listener.listen.is_ipv4() == is_v4);
    for (option, everything) in [("-4", "0.0.0.0/0"), ("-6", "::/0")].into_iter().filter(|(o, _)| has(*o == "-4")) {
        add_routes(&mut plan, option, everything, settings, marks);
        if machine.has_local {
            move_local(&mut plan, option);
        }
    }
    plan.steps.push(Step::Nft(rules(settings, marks, machine)));
    plan.undo.insert(0, Step::Run(format!("nft delete table inet {TABLE}")));
    plan
}

fn add_routes(plan: &mut Plan, option: &str, everything: &str, settings: &Settings, marks: Marks) {
    let mut run = |line: String| plan.steps.push(Step::Run(format!("ip {option} {line}")));
    run(format!("route add default dev {DEVICE} table {TO_DEVICE}"));
    if settings.fail == Fail::Closed {
        run(format!("route add unreachable default metric 4294967295 table {TO_DEVICE}"));
    }
    run(format!("route add local {everything} dev lo table {TO_SOCKETS}"));
    for (mark, table) in [(marks.front(), TO_DEVICE), (marks.back(), TO_SOCKETS)] {
        run(format!("rule add pref {PREFERENCE} fwmark {mark}/{MASK:#010x} lookup {table}"));
    }
    let mut undo = |line: String| plan.undo.push(Step::Run(format!("ip {option} {line}")));
    for table in [TO_DEVICE, TO_SOCKETS] {
        undo(format!("rule del pref {PREFERENCE} lookup {table}"));
        undo(format!("route flush table {table}"));
    }
}

/// Lets our rules come before the one for local addresses.
fn move_local(plan: &mut Plan, option: &str) {
    let step = |line: &str, pref: u32| Step::Run(format!("ip {option} rule {line} pref {pref} lookup local"));
    plan.steps.extend([step("add", LOCAL), step("del", 0)]);
    plan.undo.extend([step("add", 0), step("del", LOCAL)]);
}

/// The condition that a packet asks for a new connection.
const BARE_SYN: &str = "tcp flags & (fin | syn | rst | ack) == syn";

/// The script that replaces the table.
pub(crate) fn rules(settings: &Settings, marks: Marks, machine: &Machine) -> String {
    let mut text = format!("table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n");
    for (i, listener) in settings.listeners.iter().enumerate() {
        text += &taking(i, listener, settings, marks);
    }
    text += &prerouting(settings, marks);
    text += &output(marks);
    if !machine.closed_interfaces.is_empty() {
        text += &forward(machine);
    }
    text + "}\n"
}

/// The script that takes no further connections, and leaves open ones alone.
pub(crate) fn closing(settings: &Settings) -> String {
    let line = |i: usize| format!("flush chain inet {TABLE} take_{i}");
    (0..settings.listeners.len()).map(line).collect::<Vec<_>>().join("\n")
}

/// The chain that decides about new connections of a listener.
fn taking(i: usize, listener: &Listener, settings: &Settings, marks: Marks) -> String {
    let mut text =
        format!("    # {}\n    counter taken_{i} {{ }}\n    counter untouched_{i} {{ }}\n", listener.label());
    let _ = writeln!(text, "    counter full_{i} {{ }}\n    chain take_{i} {{");
    if let Some(classes) = PortClasses::for_settings(settings) {
        let mark = marks.untouched().set("ct");
        let _ = writeln!(text, "        {} {mark} counter name untouched_{i} accept", classes.condition());
    }
    let _ = writeln!(text, "        ct count over {} counter name full_{i} accept", settings.max_connections);
    let (of_connection, of_packet) = (marks.front().set("ct"), marks.front().set("meta"));
    let _ = writeln!(text, "        {of_connection} {of_packet} counter name taken_{i} accept\n    }}");
    text
}

/// Classes of client ports: connections from ports of the first are left to the kernel, and those of the second, as many, are
/// compared with them. A class consists of ports with the same bits above the lowest one: clients choose ports of one parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortClasses {
    /// The number of classes, a power of two.
    period: u32,
}

impl PortClasses {
    /// One class of this many, a power of two, is left to the kernel.
    pub(crate) const fn new(period: u32) -> PortClasses {
        PortClasses { period }
    }

    /// The classes for these settings; none if nothing is left to the kernel. The share is rounded to a power of two.
    pub(crate) fn for_settings(settings: &Settings) -> Option<PortClasses> {
        const MAX_BITS: u32 = 14;
        let share = settings.untouched.get();
        // The power of two whose inverse is closest, by ratio.
        let distance = |bits: &u32| (f64::from(1_u32 << bits) * share).log2().abs();
        let bits = (2..=MAX_BITS).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        (share > 0.0).then(|| PortClasses::new(1 << bits))
    }

    /// The condition of nftables that a client's port is in the class that is left to the kernel.
    fn condition(self) -> String {
        format!("tcp sport & {:#06x} == {:#06x}", (self.period - 1) << 1, self.first() << 1)
    }

    pub(crate) const fn period(self) -> u32 {
        self.period
    }

    /// The class that is left to the kernel. The one that is compared follows.
    pub(crate) const fn first(self) -> u32 {
        self.period / 2 - 1
    }

    /// Who serves connections from this port, if it is in one of the two classes.
    pub(crate) fn of(self, port: u16) -> Option<By> {
        match (u32::from(port) / 2 % self.period).wrapping_sub(self.first()) {
            0 => Some(By::Kernel),
            1 => Some(By::Proxy),
            _ => None,
        }
    }
}

fn prerouting(settings: &Settings, marks: Marks) -> String {
    let mut text =
        "    chain prerouting {\n        type filter hook prerouting priority mangle; policy accept;\n".to_owned();
    let mut rule = |line: String| {
        let _ = writeln!(text, "        {line}");
    };
    if settings.listeners.iter().any(|listener| listener.bad_leg == BadLeg::Servers) {
        rule(format!("iifname \"{DEVICE}\" {BARE_SYN} {} accept", marks.far().set("ct")));
        rule(format!("{} ct direction reply {} accept", marks.far().is("ct"), marks.front().set("meta")));
    }
    rule(format!("iifname \"{DEVICE}\" accept"));
    rule(format!("{} ct direction original {} accept", marks.front().is("ct"), marks.front().set("meta")));
    rule(format!("{} ct direction reply {} accept", marks.back().is("ct"), marks.back().set("meta")));
    for mark in [marks.back(), marks.untouched()] {
        rule(format!("{} accept", mark.is("ct")));
    }
    for (i, listener) in settings.listeners.iter().enumerate() {
        let port = listener.listen.port();
        let to = match listener.single_ip() {
            Some(IpAddr::V4(ip)) => format!("ip daddr {ip}"),
            Some(IpAddr::V6(ip)) => format!("ip6 daddr {ip}"),
            None if listener.listen.is_ipv4() => "meta nfproto ipv4 fib daddr type unicast".to_owned(),
            None => "meta nfproto ipv6 fib daddr type unicast".to_owned(),
        };
        rule(format!("ct state new {to} tcp dport {port} {BARE_SYN} jump take_{i}"));
    }
    text + "    }\n"
}

fn output(marks: Marks) -> String {
    let [out, back, front] = [marks.out(), marks.back(), marks.front()];
    format!(
        "    chain output {{
        type route hook output priority mangle; policy accept;
        {} {} accept
        {} ct direction reply {} accept
        meta l4proto {{ icmp, ipv6-icmp }} {} ct direction original {}
    }}\n",
        out.is("meta"),
        back.set("ct"),
        back.is("ct"),
        back.set("meta"),
        front.is("ct"),
        front.set("meta"),
    )
}

/// Interfaces that did not forward do so only to the device.
fn forward(machine: &Machine) -> String {
    let names: Vec<String> = machine.closed_interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "    chain forward {{
        type filter hook forward priority filter; policy accept;
        iifname {{ {} }} meta nfproto ipv4 oifname != \"{DEVICE}\" drop
    }}\n",
        names.join(", ")
    )
}

/// True if the socket to the server has the address of the client.
pub(crate) fn needs_transparent(listener: &Listener) -> bool {
    listener.bad_leg == BadLeg::Clients && listener.client_address == ClientAddress::Keep
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let to = Some("192.0.2.10:443".parse().unwrap());
        let listeners = vec![Listener::new("203.0.113.10:443".parse().unwrap(), to)];
        Settings { listeners, ..Settings::default() }
    }

    fn commands(plan: &Plan) -> String {
        let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        steps.join("\n") + "\n"
    }

    #[test]
    fn a_plan_is_printed_as_commands_and_undone_in_full() {
        let plan = plan(&settings(), Marks::new(3), &Machine::default());
        let text = commands(&plan);
        for expected in [
            "sysctl -w net.ipv4.conf.reknit-proxy.accept_local=1",
            "ip -4 route add default dev reknit-proxy table 29291",
            "ip -4 rule add pref 10 fwmark 0x05130000/0x0fff0000 lookup 29291",
            "ct state new ip daddr 203.0.113.10 tcp dport 443",
            "ct count over 10000",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains("-6 ") && !text.contains("unreachable") && !text.contains("lookup local"));
        let undo: Vec<String> = plan.undo.iter().map(ToString::to_string).collect();
        assert_eq!(undo[0], "nft delete table inet reknit_proxy");
        assert_eq!(undo.iter().filter(|line| line.contains("rule del") || line.contains("route flush")).count(), 4);
    }

    #[test]
    fn a_local_address_needs_our_rules_before_the_local_one() {
        let machine = Machine { has_local: true, closed_interfaces: vec!["eth0".to_owned()] };
        let plan = plan(&Settings { fail: Fail::Closed, ..settings() }, Marks::new(0), &machine);
        let text = commands(&plan);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("rule add pref 20 lookup local") < at("rule del pref 0 lookup local"));
        assert!(text.contains("unreachable default") && text.contains("net.ipv4.conf.eth0.forwarding=1"));
        assert!(text.contains("iifname { \"eth0\" } meta nfproto ipv4 oifname != \"reknit-proxy\" drop"));
    }

    #[test]
    fn the_share_of_untouched_ports_is_the_one_asked_for() {
        for share in [0.001, 0.02, 0.1, 0.25] {
            let share = reknit_units::Share::new(share).unwrap();
            let classes = PortClasses::for_settings(&Settings { untouched: share, ..settings() }).unwrap();
            let got = 1.0 / f64::from(classes.period());
            assert!((0.7..1.42).contains(&(got / share.get())), "{share}: {got}");
            assert_eq!(classes.of((classes.first() << 1 | 1) as u16), Some(By::Kernel));
            let count = |by: By| (0..=u32::from(u16::MAX)).filter(|port| classes.of(*port as u16) == Some(by)).count();
            assert_eq!((count(By::Kernel), count(By::Proxy)), (65_536 / classes.period() as usize, count(By::Kernel)));
        }
        let none = Settings { untouched: reknit_units::Share::ZERO, ..settings() };
        assert!(PortClasses::for_settings(&none).is_none());
        assert!(!rules(&none, Marks::new(0), &Machine::default()).contains("sport"));
    }
}
