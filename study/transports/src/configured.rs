//! A transport with a name and one set of settings.

use std::sync::Arc;

use reknit_sim::{Ends, Opening, Transport};

#[derive(Debug)]
struct Configured {
    name: &'static str,
    about: String,
    open: fn(&Opening) -> Ends,
}

/// The transport with this name; `about` says what it is, with its version, and `open` opens its connections.
pub fn transport(name: &'static str, about: String, open: fn(&Opening) -> Ends) -> Arc<dyn Transport> {
    Arc::new(Configured { name, about, open })
}

impl Transport for Configured {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn open(&self, opening: &Opening) -> Ends {
        (self.open)(opening)
    }
}
