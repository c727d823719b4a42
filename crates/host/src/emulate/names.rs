//! Name resolution of programs inside: their view of `/etc/resolv.conf` and `/etc/hosts`.

use std::fmt::Write;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::namespaces::{Subnet, has_ipv6, scratch};

/// Files of programs that manage `/etc/resolv.conf`, with the name servers that they ask themselves.
const UPSTREAM: [&str; 2] = ["/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf"];
/// Sockets of local services that answer for the C library. They are hidden, or else queries would bypass the path.
const SERVICES: [&str; 2] = ["/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"];
/// The names of the outer end.
const OUTER_NAMES: &str = "server gateway";
/// Those of its IPv6 address. They differ, because programs prefer IPv6 if a name has both: datagrams to a server that has only IPv4,
/// or to what is relayed, would then be lost without a word.
const OUTER_NAMES_V6: &str = "server6 gateway6";

/// The name servers in the text of a `resolv.conf`.
fn name_servers(text: &str) -> impl Iterator<Item = IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok())?
    };
    text.lines().filter_map(address)
}

/// The text of `/etc/hosts` with the names of the outer end; those of an emulation around this one are hidden.
fn hosts(own: &str, subnet: Subnet, v6: bool) -> String {
    let others = own.lines().filter(|line| !line.ends_with(OUTER_NAMES) && !line.ends_with(OUTER_NAMES_V6));
    let mut text: String = others.flat_map(|line| [line, "\n"]).collect();
    let _ = writeln!(text, "{} {OUTER_NAMES}", subnet.outer());
    if v6 {
        let _ = writeln!(text, "{} {OUTER_NAMES_V6}", subnet.outer_v6());
    }
    text
}

/// The files that programs inside see instead of those of this machine.
#[derive(Debug)]
pub(super) struct Names {
    resolv: String,
    subnet: Subnet,
    /// The name server of this machine that answers questions to the outer end, if those inside must ask there.
    pub(super) resolver: Option<IpAddr>,
}

impl Names {
    /// `direct`: name servers outside this machine can be reached as they are.
    pub(super) fn new(subnet: Subnet, direct: bool) -> Names {
        let own = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let others = UPSTREAM.iter().map(|file| fs::read_to_string(file).unwrap_or_default());
        Names::with(subnet, direct, &own, others)
    }

    fn with(subnet: Subnet, direct: bool, own: &str, others: impl Iterator<Item = String>) -> Names {
        let is_outside = |server: &IpAddr| !server.is_loopback();
        let mut outside: Vec<IpAddr> = name_servers(own).filter(is_outside).collect();
        if outside.is_empty() {
            outside = others.flat_map(|text| name_servers(&text).filter(is_outside).collect::<Vec<_>>()).collect();
        }
        let resolver = if direct && !outside.is_empty() { None } else { name_servers(own).next() };
        let servers = if resolver.is_some() { vec![subnet.outer().into()] } else { outside };
        let mut resolv = String::new();
        for server in servers {
            let _ = writeln!(resolv, "nameserver {server}");
        }
        for line in own.lines().filter(|line| line.starts_with("search") || line.starts_with("options")) {
            let _ = writeln!(resolv, "{line}");
        }
        Names { resolv, subnet, resolver }
    }

    /// Shows them to the calling thread and its children, which must have a separate mount namespace.
    pub(super) fn show(&self) -> io::Result<()> {
        // The files are in a private memory file system, which lasts as long as they are mounted.
        let memory = scratch();
        let hosts = hosts(&fs::read_to_string("/etc/hosts").unwrap_or_default(), self.subnet, has_ipv6());
        mount(Some("reknit"), memory, Some("tmpfs"), MsFlags::empty(), Some("mode=755,size=1m"))?;
        let covered = cover(memory, "/etc/resolv.conf", &self.resolv)
            .and_then(|()| cover(memory, "/etc/hosts", &hosts))
            .and_then(|()| SERVICES.iter().try_for_each(|service| cover(memory, service, "")));
        umount2(memory, MntFlags::MNT_DETACH)?;
        covered
    }
}

/// Mounts a file with `content`, created in `folder`, over `file`, if that exists.
fn cover(folder: &Path, file: &str, content: &str) -> io::Result<()> {
    let Ok(target) = Path::new(file).canonicalize() else { return Ok(()) };
    let source = folder.join(file.replace('/', "-"));
    fs::write(&source, content)?;
    fs::set_permissions(&source, fs::Permissions::from_mode(0o644))?; // independent of the umask
    let nothing: Option<&str> = None;
    Ok(mount(Some(&source), &target, nothing, MsFlags::MS_BIND, nothing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(direct: bool, own: &str, other: &str) -> (String, Option<IpAddr>) {
        let names = Names::with(Subnet(3), direct, own, [other.to_owned()].into_iter());
        (names.resolv, names.resolver)
    }

    #[test]
    fn the_names_of_the_outer_end_are_those_of_the_innermost_path() {
        let outermost = hosts("127.0.0.1 localhost\n", Subnet(0), true);
        let names = |n| format!("127.0.0.1 localhost\n10.77.{n}.1 server gateway\n");
        assert_eq!(outermost, names(0) + "fd77::1 server6 gateway6\n");
        assert_eq!(hosts(&outermost, Subnet(1), true), names(1) + "fd77:0:0:1::1 server6 gateway6\n");
        assert_eq!(hosts(&outermost, Subnet(1), false), names(1));
    }

    #[test]
    fn a_resolver_on_this_machine_is_replaced() {
        let stub = "nameserver 127.0.0.53\noptions edns0\nsearch example.org\n";
        let rest = "options edns0\nsearch example.org\n";
        let upstream = "nameserver 192.0.2.1\n";
        assert_eq!(names(true, upstream, ""), (upstream.to_owned(), None));
        assert_eq!(names(true, stub, upstream), (format!("{upstream}{rest}"), None));
        let local = Some("127.0.0.53".parse().unwrap());
        assert_eq!(names(true, stub, ""), (format!("nameserver 10.77.3.1\n{rest}"), local));
        assert_eq!(names(false, stub, upstream), (format!("nameserver 10.77.3.1\n{rest}"), local));
        assert_eq!(names(true, "", ""), (String::new(), None));
    }
}
