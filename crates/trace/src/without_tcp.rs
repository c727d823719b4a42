//! What to say about a capture without TCP.

use reknit_units::grouped;

use crate::Analysis;
use crate::packet::LeftOut;

/// Kinds that are named.
const MAX_KINDS: usize = 4;
/// Protocols that hide TCP.
const ENCRYPTED: [&str; 5] = ["WireGuard", "IPsec (ESP)", "IPsec (IKE or ESP over UDP)", "OpenVPN", "DTLS"];
const ANY_WIRELESS: &str = "IEEE 802.11 with encryption";

impl Analysis {
    /// Refuses a capture without TCP, and says what it has instead and what can be done with it.
    ///
    /// # Errors
    /// One line with the file's name.
    pub fn refuse_without_tcp(&self) -> Result<(), String> {
        if self.tcp_packets > 0 {
            return Ok(());
        }
        let (file, packets) = (&self.file, self.packets);
        let partial = self.warnings.iter().find(|warning| warning.contains("damaged"));
        let partial = partial.map_or(String::new(), |warning| format!("; {warning}"));
        if packets == 0 {
            return Err(format!("{file}: contains no packets{partial}"));
        }
        let kinds: Vec<String> = self.left_out.iter().take(MAX_KINDS).map(LeftOut::to_string).collect();
        let more = if self.left_out.len() > MAX_KINDS { " and others" } else { "" };
        let hint = hint(&self.left_out);
        Err(format!(
            "{file}: none of its {} packets is TCP: {}{more}{partial}{hint}",
            grouped(packets),
            kinds.join(", ")
        ))
    }
}

/// What to do about the most frequent kind.
fn hint(left_out: &[LeftOut]) -> String {
    let Some(most) = left_out.first() else { return String::new() };
    let what = &*most.what;
    let both = "`reknit analyze` with a capture from each end tells which packets were lost or late";
    if what == "QUIC" {
        return format!(
            "; {both}; if the sender can write a qlog, `reknit analyze FILE.qlog` tells which packets it declared lost although they \
             were late"
        );
    }
    if ENCRYPTED.contains(&what) {
        return format!("; capture on the interface of the tunnel to see the TCP inside it, or at both ends: {both}");
    }
    if what == ANY_WIRELESS {
        return "; capture on the interface of a station or access point, which sees them decrypted".to_owned();
    }
    if what.starts_with("truncated") {
        return "; capture at least 128 bytes of each packet (tcpdump -s 128)".to_owned();
    }
    if what.starts_with("link type") {
        return "; capture on an interface of a network".to_owned();
    }
    if !left_out.iter().any(|kind| kind.is_ip) {
        return "; it has no IP either: capture on the interface that the connection uses".to_owned();
    }
    format!("; {both}, for any protocol over IP")
}

impl LeftOut {
    /// After "packets": `of QUIC`, `with truncated headers`.
    pub fn phrase(&self) -> String {
        let is_defect = ["headers", "lengths"].iter().any(|what| self.what.ends_with(what));
        format!("{} {}", if is_defect { "with" } else { "of" }, self.what)
    }
}

impl std::fmt::Display for LeftOut {
    /// `212 of QUIC`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", grouped(self.packets), self.phrase())
    }
}
