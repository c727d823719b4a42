//! Parsers for numbers, times and addresses in options; their errors state what is allowed.

use std::net::SocketAddr;

use reknit_units::Duration;

/// A whole number from `LEAST` to `MOST`.
pub(crate) fn whole<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("must be a whole number from {LEAST} to {MOST}"))
}

/// A seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// A time that is not zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration: Duration = text.parse().map_err(|error: reknit_units::UnitError| error.to_string())?;
    if duration.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(duration) }
}

/// An address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.trim().parse().map_err(|_| "must be an IP address and a port, for example `127.0.0.1:9435`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_state_the_allowed_range() {
        assert_eq!(whole::<1, 10>("10"), Ok(10));
        for text in ["0", "11", "-3", "1e1", ""] {
            assert_eq!(whole::<1, 10>(text).unwrap_err(), "must be a whole number from 1 to 10", "{text}");
        }
        assert!(seed("0").is_ok() && seed("-1").is_err());
        assert_eq!(duration("0 s").unwrap_err(), "must be more than 0");
    }
}
