//! The TCP of one end: the engine with a variant, or the kernel's TCP with settings.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use reknit_variants::{Composition, UnknownVariant};

use crate::namespace;

/// The TCP of one end.
#[derive(Clone, Debug)]
pub enum Tcp {
    /// The TCP of the running kernel.
    Kernel(KernelTcp),
    /// The engine with these plug-ins; the name is for messages.
    Engine(String, Arc<Composition>),
}

/// The kernel's TCP: `kernel:cubic`, or with settings for its network namespace `kernel:cubic+timestamps=0,recovery=0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelTcp {
    /// The kernel's name of the congestion control.
    pub congestion_control: String,
    /// Names and values of settings `net.ipv4.tcp_NAME`.
    pub settings: Vec<(String, String)>,
}

/// Why a name of a TCP is refused.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// It is neither a kernel's TCP nor a variant.
    #[error("{0} (kernel:NAME is also allowed, with a congestion control of this kernel)")]
    Unknown(#[from] UnknownVariant),
    /// A setting is not of the form `NAME=VALUE`.
    #[error("`{0}` is not a kernel setting; write kernel:cubic+NAME=VALUE,NAME=VALUE, such as timestamps=0")]
    Form(String),
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control `{0}`; it has {list}", list = .1.replace(' ', ", "))]
    CongestionControl(String, String),
    /// The kernel has no such setting per namespace.
    #[error("this kernel has no per-namespace setting net.ipv4.tcp_{0}; available: {1}")]
    Setting(String, String),
    /// The kernel does not accept the value.
    #[error("this kernel does not accept {1} for net.ipv4.tcp_{0}: {2}")]
    Value(String, String, io::Error),
}

impl FromStr for Tcp {
    type Err = TcpError;

    /// A kernel's TCP, or the name of a variant.
    fn from_str(text: &str) -> Result<Tcp, TcpError> {
        let kernel = match text.split_once(':') {
            Some(("kernel", rest)) => rest,
            _ if text == "kernel" => "cubic",
            _ => {
                let variant = reknit_variants::find(text)?;
                return Ok(Tcp::Engine(variant.name.to_owned(), Arc::new((variant.compose)())));
            }
        };
        let mut parts = kernel.split(['+', ',']);
        let congestion_control = parts.next().unwrap_or_default().to_owned();
        let setting = |part: &str| match part.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((bare(name), value.trim().to_owned())),
            _ => Err(TcpError::Form(part.to_owned())),
        };
        Ok(Tcp::Kernel(KernelTcp { congestion_control, settings: parts.map(setting).collect::<Result<_, _>>()? }))
    }
}

/// `net.ipv4.tcp_sack`, `tcp_sack` and `sack` are the same.
fn bare(name: &str) -> String {
    let name = name.trim();
    let name = name.strip_prefix("net.ipv4.").unwrap_or(name);
    name.strip_prefix("tcp_").unwrap_or(name).to_owned()
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tcp::Kernel(kernel) => kernel.fmt(f),
            Tcp::Engine(name, _) => f.write_str(name),
        }
    }
}

impl fmt::Display for KernelTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel:{}", self.congestion_control)?;
        for (i, (name, value)) in self.settings.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { '+' } else { ',' })?;
        }
        Ok(())
    }
}

impl KernelTcp {
    /// Tries all settings in a temporary namespace.
    ///
    /// # Errors
    /// Names the setting or the value, and what is allowed. If the machine does not allow namespaces, there is no error
    /// here.
    pub fn check(&self) -> Result<(), TcpError> {
        let known = available_congestion_controls();
        if !known.split(' ').any(|name| name == self.congestion_control) {
            return Err(TcpError::CongestionControl(self.congestion_control.clone(), known));
        }
        if self.settings.is_empty() {
            return Ok(());
        }
        let this = self.clone();
        let attempt = std::thread::spawn(move || namespace::enter_empty().map_or(Ok(()), |()| this.apply()));
        attempt.join().unwrap_or(Ok(()))
    }

    /// Sets them in the calling thread's network namespace.
    pub(crate) fn apply(&self) -> Result<(), TcpError> {
        for (name, value) in &self.settings {
            fs::write(format!("{FOLDER}/tcp_{name}"), value).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => TcpError::Setting(name.clone(), settings()),
                _ => TcpError::Value(name.clone(), value.clone(), error),
            })?;
        }
        Ok(())
    }
}

/// The settings of a network namespace.
const FOLDER: &str = "/proc/sys/net/ipv4";

fn available_congestion_controls() -> String {
    let text = fs::read_to_string(format!("{FOLDER}/tcp_available_congestion_control")).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The settings that the calling thread's namespace has.
fn settings() -> String {
    let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().to_str()?.strip_prefix("tcp_").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_and_formatted() {
        for (text, written) in [
            ("kernel", "kernel:cubic"),
            ("kernel:bbr", "kernel:bbr"),
            ("kernel:cubic+timestamps=0,recovery=0", "kernel:cubic+timestamps=0,recovery=0"),
            (
                "kernel:reno+net.ipv4.tcp_sack=0+tcp_rmem=4096 131072 6291456",
                "kernel:reno+sack=0,rmem=4096 131072 6291456",
            ),
        ] {
            assert_eq!(text.parse::<Tcp>().unwrap().to_string(), written);
        }
        for text in ["kernel:cubic+timestamps", "kernel:cubic+=1", "kernel:cubic+sack="] {
            assert!(matches!(text.parse::<Tcp>(), Err(TcpError::Form(_))), "{text}");
        }
    }
}
