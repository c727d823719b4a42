//! What a user asks for, as in a file:
//!
//! ```toml
//! metrics = "127.0.0.1:9436"
//!
//! [[listeners]]
//! name = "web"
//! listen = "203.0.113.10:443"
//! to = "192.0.2.10:443"
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reknit_config::{InputError, KeyError};
use reknit_units::{Bytes, Duration, Share};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The variant if none is given.
pub const DEFAULT_VARIANT: &str = "reknit-bbr";

/// Where metrics are served if nothing else is given.
pub const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9436);

/// The largest share that is left to the kernel: as many connections are compared with them, and others must remain.
const MAX_UNTOUCHED: f64 = 0.25;

/// The most connections of a listener.
pub const MAX_CONNECTIONS: u32 = 1_000_000;

/// What is said of a server of another address family than its listener; the command has its own words for it.
pub const OTHER_FAMILY: &str =
    "must be of the same family as `listen`, or set client_address = \"proxy-v2\" or \"hide\"";

/// What is said of a listener that is to hide the address of clients from servers on the bad leg; the command has its own words for
/// it.
pub const CLIENTS_ADDRESS: &str =
    "must be \"keep\" with bad_leg = \"servers\", where the proxy connects from the address of the client";

/// All settings.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which connections are taken, and where they go.
    pub listeners: Vec<Listener>,
    /// The TCP on the bad leg of listeners that name none.
    pub variant: String,
    /// What happens to connections while the proxy does not run.
    pub fail: Fail,
    /// Beyond this many connections of a listener, new ones are left to the kernel.
    pub max_connections: u32,
    /// The most memory for the buffers of all connections on the bad leg.
    pub memory: Bytes,
    /// The share of new connections that is left to the kernel, for comparison.
    pub untouched: Share,
    /// Where metrics are served.
    #[serde(deserialize_with = "address")]
    pub metrics: SocketAddr,
    /// How long open connections may go on after SIGTERM.
    pub drain: Duration,
    /// The largest packet on the TUN device, in bytes.
    pub mtu: u16,
    /// The file that they were read from, for errors; empty without one.
    #[serde(skip)]
    pub file: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listeners: Vec::new(),
            variant: DEFAULT_VARIANT.to_owned(),
            fail: Fail::Open,
            max_connections: 10_000,
            memory: Bytes(512 << 20),
            untouched: Share::new(0.02).unwrap_or_default(),
            metrics: METRICS,
            drain: Duration::from_secs(30),
            mtu: 1500,
            file: String::new(),
        }
    }
}

/// Connections to an address.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// Its name in metrics and logs; without one, `listen`.
    #[serde(default)]
    pub name: Option<String>,
    /// Connections to this address are taken. `0.0.0.0` stands for all IPv4 addresses that this machine forwards, `[::]` for all
    /// IPv6.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Where they go; without it, to the address that the client has asked for.
    #[serde(default, deserialize_with = "some_address")]
    pub to: Option<SocketAddr>,
    /// The leg that uses reknit's TCP.
    #[serde(default)]
    pub bad_leg: BadLeg,
    /// The TCP on that leg.
    #[serde(default)]
    pub variant: Option<String>,
    /// The address that the server sees; with `bad_leg` `servers`, always that of the client.
    #[serde(default)]
    pub client_address: ClientAddress,
}

impl Listener {
    /// A listener with defaults.
    pub fn new(listen: SocketAddr, to: Option<SocketAddr>) -> Listener {
        let (bad_leg, client_address) = (BadLeg::default(), ClientAddress::default());
        Listener { name: None, listen, to, bad_leg, variant: None, client_address }
    }

    /// Its name in metrics and logs.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.listen.to_string())
    }

    /// True if it takes connections to this address.
    pub fn takes(&self, address: SocketAddr) -> bool {
        let ip = self.listen.ip();
        let is_any = ip.is_unspecified() && ip.is_ipv4() == address.is_ipv4();
        self.listen.port() == address.port() && (is_any || ip == address.ip())
    }
}

/// Reads an address and a port, in the words of the command's options.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    reknit_config::address(&text).map_err(|why| D::Error::custom(format!("`{text}` {why}")))
}

fn some_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    address(deserializer).map(Some)
}

/// The leg that reorders.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadLeg {
    /// From the proxy to the clients: the proxy runs at or near a server.
    #[default]
    Clients,
    /// From the proxy to the servers: the proxy runs at or near the clients.
    Servers,
}

/// What happens to connections while the proxy does not run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fail {
    /// They go the ordinary way.
    #[default]
    Open,
    /// They are refused as unreachable.
    Closed,
}

/// The address that the server sees.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientAddress {
    /// That of the client, with another port.
    #[default]
    Keep,
    /// That of the proxy; a header in the format of PROXY protocol version 2 has that of the client.
    ProxyV2,
    /// That of the proxy.
    Hide,
}

impl ClientAddress {
    /// As it is written in a file.
    fn word(self) -> &'static str {
        match self {
            ClientAddress::Keep => "keep",
            ClientAddress::ProxyV2 => "proxy-v2",
            ClientAddress::Hide => "hide",
        }
    }
}

impl Settings {
    /// Reads the text of a file; errors name `file`.
    ///
    /// # Errors
    /// Names the line or the key, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Settings, InputError> {
        let table = reknit_config::parse(file, text)?;
        let settings =
            Settings { file: file.to_owned(), ..reknit_config::read(table).map_err(|error| error.at(file))? };
        settings.check().map_err(|error| error.at(file))?;
        Ok(settings)
    }

    /// A listener of this family, whose routes and rules are those of all.
    pub(crate) fn for_family(is_v4: bool) -> Settings {
        let any = if is_v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        Settings { listeners: vec![Listener::new(SocketAddr::new(any, 1), None)], ..Settings::default() }
    }

    /// The variant of a listener.
    pub fn variant_of<'a>(&'a self, listener: &'a Listener) -> &'a str {
        listener.variant.as_deref().unwrap_or(&self.variant)
    }

    /// The listener that takes connections to this address: one for the address itself before one for all.
    pub fn listener_for(&self, address: SocketAddr) -> Option<usize> {
        let exact = self.listeners.iter().position(|listener| listener.listen == address);
        exact.or_else(|| self.listeners.iter().position(|listener| listener.takes(address)))
    }

    /// Checks what a type cannot express.
    ///
    /// # Errors
    /// Names the key, and what is allowed.
    pub fn check(&self) -> Result<(), KeyError> {
        let refuse = |key: &str, message: &str| Err(KeyError::new(key, message));
        if self.listeners.is_empty() {
            return refuse("listeners", "missing; give at least one, with `listen` and `to`");
        }
        if !(576..=65_535).contains(&self.mtu) {
            return Err(KeyError::new("mtu", "must be from 576 to 65535 bytes").of_value(self.mtu));
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.max_connections) {
            let message = format!("must be from 1 to {MAX_CONNECTIONS}");
            return Err(KeyError::new("max_connections", message).of_value(self.max_connections));
        }
        if self.untouched.get() > MAX_UNTOUCHED {
            return Err(KeyError::new("untouched", format!("must be at most {MAX_UNTOUCHED}")));
        }
        find("variant", &self.variant)?;
        for (i, listener) in self.listeners.iter().enumerate() {
            let inside = |error: KeyError| error.inside(&format!("listeners[{i}]"));
            listener.check().map_err(inside)?;
            if let Some(variant) = &listener.variant {
                find("variant", variant).map_err(inside)?;
            }
            if self.listeners[..i].iter().any(|other| other.listen == listener.listen) {
                let error = KeyError::new("listen", "another listener has the same address").of_value(listener.listen);
                return Err(inside(error));
            }
            self.check_label(i)?;
        }
        Ok(())
    }

    /// Metrics and the log tell listeners apart by their labels: one before this one must not have its label.
    fn check_label(&self, i: usize) -> Result<(), KeyError> {
        let label = self.listeners[i].label();
        let Some(other) = self.listeners[..i].iter().position(|other| other.label() == label) else { return Ok(()) };
        // A listener without a name is called by its address, so one of the two has this name.
        let [named, other] = if self.listeners[i].name.is_some() { [i, other] } else { [other, i] };
        let message = format!("listeners[{other}] is called the same; give each listener its own name");
        Err(KeyError::new(format!("listeners[{named}].name"), message).of_value(format_args!("{label:?}")))
    }

    /// The first key that only takes effect at a start, and is not as in `before`.
    pub(crate) fn fixed_key(&self, before: &Settings) -> Option<&'static str> {
        let keys = [
            ("fail", self.fail == before.fail),
            ("memory", self.memory == before.memory),
            ("untouched", self.untouched == before.untouched),
            ("metrics", self.metrics == before.metrics),
            ("mtu", self.mtu == before.mtu),
        ];
        keys.into_iter().find_map(|(key, is_same)| (!is_same).then_some(key))
    }
}

/// For timers of tokio.
pub(crate) fn to_std(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}

fn find(key: &str, variant: &str) -> Result<(), KeyError> {
    let found = reknit_variants::find(variant).map_err(|error| KeyError::new(key, error.to_string()))?;
    if found.is_simulated_only() {
        return Err(KeyError::new(key, format!("`{variant}` works only in simulations")));
    }
    Ok(())
}

impl Listener {
    fn check(&self) -> Result<(), KeyError> {
        let refuse = |key: &str, address: SocketAddr, message: &str| {
            Err(KeyError::new(key, message.to_owned()).of_value(address))
        };
        // It becomes part of a script of nftables, and of labels.
        let is_wrong =
            |name: &&String| name.is_empty() || name.contains(|c: char| c.is_control() || "\"'`\\".contains(c));
        if let Some(name) = self.name.as_ref().filter(is_wrong) {
            let message = "must have at least one character, and no quotes, backslashes or control characters";
            return Err(KeyError::new("name", message).of_value(format_args!("{name:?}")));
        }
        if self.listen.port() == 0 {
            return refuse("listen", self.listen, "the port must be from 1 to 65535");
        }
        if self.bad_leg == BadLeg::Servers && self.client_address != ClientAddress::Keep {
            let error = KeyError::new("client_address", CLIENTS_ADDRESS);
            return Err(error.of_value(format_args!("{:?}", self.client_address.word())));
        }
        let Some(to) = self.to else { return Ok(()) };
        if to.port() == 0 || to.ip().is_unspecified() {
            return refuse(
                "to",
                to,
                "must be the address of a server; leave it out to keep the address that is asked for",
            );
        }
        if to.is_ipv4() != self.listen.is_ipv4() && self.client_address == ClientAddress::Keep {
            return refuse("to", to, OTHER_FAMILY);
        }
        Ok(())
    }

    /// The address if it is only one.
    pub fn single_ip(&self) -> Option<IpAddr> {
        Some(self.listen.ip()).filter(|ip| !ip.is_unspecified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Settings::parse("p.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_has_defaults_and_one_listener_at_least() {
        let text = "[[listeners]]\nlisten = \"203.0.113.10:443\"\nto = \"192.0.2.10:443\"\n";
        let settings = Settings::parse("p.toml", text).unwrap();
        assert_eq!(
            (settings.fail, settings.max_connections, settings.variant.as_str()),
            (Fail::Open, 10_000, "reknit-bbr")
        );
        assert_eq!(settings.listeners[0].label(), "203.0.113.10:443");
        assert!(error("").starts_with("p.toml: listeners: missing"));
    }

    #[test]
    fn errors_name_the_key_and_what_is_allowed() {
        let listener = "[[listeners]]\nlisten = \"203.0.113.10:443\"\n";
        for (text, expected) in [
            (format!("variant = \"rennit\"\n{listener}"), "p.toml: variant: unknown variant `rennit`"),
            (format!("variant = \"oracle\"\n{listener}"), "works only in simulations"),
            (format!("{listener}{listener}"), "p.toml: listeners[1].listen = 203.0.113.10:443: another listener"),
            (format!("{listener}to = \"[2001:db8::1]:443\"\n"), "must be of the same family"),
            (format!("{listener}to = \"0.0.0.0:443\"\n"), "must be the address of a server"),
            (format!("{listener}bad_leg = \"both\"\n"), "clients"),
            (format!("mtu = 100\n{listener}"), "must be from 576"),
            (
                format!("metrics = \"foo\"\n{listener}"),
                "p.toml: metrics: `foo` must be an IP address and a port, for example",
            ),
            (format!("metrics = 9436\n{listener}"), "p.toml: metrics: must be a string, not 9436"),
            (
                "[[listeners]]\nlisten = \"203.0.113.10\"\n".to_owned(),
                "p.toml: listeners[0].listen: `203.0.113.10` must be an",
            ),
            (
                format!("{listener}to = \"web:80\"\n"),
                "p.toml: listeners[0].to: `web:80` must be an IP address and a port",
            ),
            (format!("{listener}name = \"\"\n"), "p.toml: listeners[0].name = \"\": must have at least one character"),
            (format!("{listener}name = \"a\\nb\"\n"), "p.toml: listeners[0].name = \"a\\nb\": must have at least"),
            (format!("{listener}name = 'a\"b'\n"), "no quotes, backslashes or control characters"),
            (
                format!("{listener}bad_leg = \"servers\"\nclient_address = \"hide\"\n"),
                "p.toml: listeners[0].client_address = \"hide\": must be \"keep\" with bad_leg = \"servers\"",
            ),
            (
                format!("{listener}bad_leg = \"servers\"\nclient_address = \"proxy-v2\"\n"),
                "p.toml: listeners[0].client_address = \"proxy-v2\": must be \"keep\" with bad_leg = \"servers\"",
            ),
            (format!("max_connections = 0\n{listener}"), "p.toml: max_connections = 0: must be from 1 to 1000000"),
            (
                format!("max_connections = 4000000000\n{listener}"),
                "max_connections = 4000000000: must be from 1 to 1000000",
            ),
            (format!("file = \"x\"\n{listener}"), "p.toml: file: unknown key"),
            (format!("untouched = 0.9\n{listener}"), "at most 0.25"),
            ("[[listeners]]\nlisten = \"203.0.113.10:0\"\n".to_owned(), "the port must be"),
        ] {
            let error = error(&text);
            assert!(error.contains(expected) && error.lines().count() == 1, "{text}: {error}");
        }
    }

    #[test]
    fn listeners_are_told_apart_by_their_names() {
        let listener = |port: u16, name: &str| {
            let name = if name.is_empty() { String::new() } else { format!("name = \"{name}\"\n") };
            format!("[[listeners]]\nlisten = \"203.0.113.10:{port}\"\n{name}")
        };
        for (first, second, expected) in [
            ("web", "web", "p.toml: listeners[1].name = \"web\": listeners[0] is called the same"),
            ("", "203.0.113.10:1", "p.toml: listeners[1].name = \"203.0.113.10:1\": listeners[0] is called"),
            ("203.0.113.10:2", "", "p.toml: listeners[0].name = \"203.0.113.10:2\": listeners[1] is called"),
        ] {
            let error = error(&(listener(1, first) + &listener(2, second)));
            assert!(error.starts_with(expected) && error.lines().count() == 1, "{error}");
        }
        Settings::parse("p.toml", &(listener(1, "web") + &listener(2, "mail"))).unwrap();
    }

    #[test]
    fn an_exact_address_takes_precedence() {
        let any = Listener::new("0.0.0.0:443".parse().unwrap(), None);
        let one = Listener::new("192.0.2.1:443".parse().unwrap(), None);
        let settings = Settings { listeners: vec![any, one], ..Settings::default() };
        let of = |address: &str| settings.listener_for(address.parse().unwrap());
        assert_eq!([of("192.0.2.1:443"), of("192.0.2.2:443"), of("192.0.2.1:80")], [Some(1), Some(0), None]);
        assert_eq!(of("[2001:db8::1]:443"), None);
    }
}
