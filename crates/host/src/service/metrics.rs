//! Reads the metrics of a service, in the text format of Prometheus over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The metrics that `service`, such as `proxy`, serves at `address`.
///
/// # Errors
/// If nothing answers there, or not with metrics.
pub fn fetch(service: &str, address: SocketAddr) -> Result<String, String> {
    ask(address)
        .map_err(|error| format!("{error}; is `reknit {service}` running, with `--metrics` set to this address?"))
}

/// A number in the metrics of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample<'a> {
    /// Without the prefix of the service.
    pub name: &'a str,
    labels: &'a str,
    /// The number.
    pub value: &'a str,
}

impl<'a> Sample<'a> {
    /// The value of a label; empty if there is none.
    pub fn label(&self, name: &str) -> &'a str {
        let start = format!("{name}=\"");
        let rest = self.labels.strip_prefix(&start).or_else(|| Some(self.labels.split_once(&format!(",{start}"))?.1));
        rest.and_then(|rest| rest.split('"').next()).unwrap_or_default()
    }
}

/// The samples of `service` in its metrics.
pub fn samples<'a>(service: &str, metrics: &'a str) -> impl Iterator<Item = Sample<'a>> {
    let prefix = format!("reknit_{service}_");
    metrics.lines().filter_map(move |line| {
        let (name, value) = line.strip_prefix(&prefix)?.rsplit_once(' ')?;
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        Some(Sample { name, labels, value })
    })
}

fn ask(address: SocketAddr) -> Result<String, String> {
    let refuse = |error: io::Error| format!("{address}: {}", reknit_config::file_error(&error));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(refuse)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(refuse)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").map_err(refuse)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(refuse)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(format!("{address}: no metrics there")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_served_can_be_fetched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        super::super::serve(listener, || "reknit 1\n".to_owned());
        assert_eq!(fetch("x", address).unwrap(), "reknit 1\n");
    }

    #[test]
    fn an_address_without_a_service_is_an_error_that_asks_for_it() {
        let error = fetch("x", "127.0.0.1:0".parse().unwrap()).unwrap_err();
        assert!(error.ends_with("; is `reknit x` running, with `--metrics` set to this address?"), "{error}");
    }

    #[test]
    fn samples_have_names_labels_and_values() {
        let metrics = "# TYPE reknit_x_flows gauge\nreknit_x_flows 3\nreknit_y_flows 4\n\
                       reknit_x_late{from=\"[fd00::1]:3\",rom=\"web, 2\"} 1.5\n";
        let found: Vec<Sample<'_>> = samples("x", metrics).collect();
        assert_eq!(
            found.iter().map(|one| (one.name, one.value)).collect::<Vec<_>>(),
            [("flows", "3"), ("late", "1.5")]
        );
        let labels = ["from", "rom", "om", "to"].map(|name| found[1].label(name));
        assert_eq!(labels, ["[fd00::1]:3", "web, 2", "", ""]);
    }
}
