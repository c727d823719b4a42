//! A proxy in a separate process.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use reknit_testkit::gateway::{Namespace, Service};
use reknit_testkit::machine;

/// The variable that turns a test program into a proxy: its settings.
const SETTINGS: &str = "REKNIT_PROXY_TEST_SETTINGS";

/// True if the machine has what these tests need.
pub(crate) fn can_run() -> bool {
    machine::has(&["root", "/dev/net/tun", "ip", "nft"])
}

/// Runs the proxy if this process is to be one. The first test of each program calls it.
pub(crate) fn be_a_proxy() {
    if let Some(file) = std::env::var_os(SETTINGS) {
        let load = || {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            reknit_proxy::Settings::parse("proxy.toml", &text).map_err(|error| error.to_string())
        };
        let ended = reknit_proxy::run(load);
        if let Err(error) = &ended {
            eprintln!("error: {error}");
        }
        std::process::exit(i32::from(ended.is_err()));
    }
}

/// A running proxy.
pub(crate) struct Proxy(Service);

impl Proxy {
    /// Starts a proxy with the settings in `file`, and waits until it listens.
    pub(crate) fn start(namespace: &Namespace, file: &Path) -> Proxy {
        let proxy = Proxy::spawn(namespace, file);
        proxy.wait_for("event=listening");
        proxy
    }

    pub(crate) fn spawn(namespace: &Namespace, file: &Path) -> Proxy {
        Proxy(Service::spawn(namespace, "proxy_process", SETTINGS, file.into()))
    }
}

impl Deref for Proxy {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl DerefMut for Proxy {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.0
    }
}
