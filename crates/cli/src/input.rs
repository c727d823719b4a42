//! Parsers for numbers, times and addresses in options; their errors state what is allowed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use reknit_host::service::Format;
use reknit_trace::{Network, Time};
use reknit_units::{Duration, Rate};

use crate::Failure;

/// Refuses a file that is given twice, also by another name: it would be compared with itself.
pub(crate) fn check_distinct(files: &[PathBuf]) -> Result<(), Failure> {
    let mut known: BTreeMap<(u64, u64), &Path> = BTreeMap::new();
    for file in files {
        // What cannot be opened is refused when it is read.
        let Some(identity) = identity(file) else { continue };
        if let Some(first) = known.insert(identity, file) {
            let why = if first == file {
                "is given twice".to_owned()
            } else {
                format!("is the same file as {}", first.display())
            };
            return Err(Failure::Usage(format!("{}: {why}; give each file once", file.display())));
        }
    }
    Ok(())
}

/// The device and the inode of a file, the same for all of its names; none if it cannot be opened.
pub(crate) fn identity(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

/// A value, and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    pub(crate) text: String,
    pub(crate) value: T,
}

/// A parser that keeps the text.
pub(crate) fn given<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<Given<T>, String> + Clone {
    move |text| parse(text).map(|value| Given { text: text.trim().to_owned(), value })
}

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

/// A rate that is not zero.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: reknit_units::UnitError| error.to_string())?;
    if rate.bits_per_second() == 0 { Err("must be more than 0".to_owned()) } else { Ok(rate) }
}

/// An address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    reknit_config::address(text).map_err(str::to_owned)
}

/// A host, or a network with the number of bits that count.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    let wrong = || "must be an IP address, or a network such as `192.0.2.0/24`".to_owned();
    let (address, bits) = text.trim().split_once('/').map_or((text.trim(), None), |(a, bits)| (a, Some(bits)));
    let (address, before): ([u8; 16], u32) = match address.parse().map_err(|_| wrong())? {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped().octets(), 96),
        IpAddr::V6(v6) => (v6.octets(), 0),
    };
    let bits = bits.map_or(Ok(128), |bits| bits.parse().map(|bits: u32| bits.saturating_add(before)));
    let bits = bits.ok().filter(|bits| *bits <= 128).ok_or_else(wrong)?;
    Ok(Network { address, bits })
}

/// A time in a capture.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    let text = text.trim();
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|seconds| (0.0..1e10).contains(seconds));
    if seconds(text).is_some_and(|at| at >= MIN_EPOCH) {
        // Whole seconds apart: a floating-point number has not enough digits for nanoseconds since 1970.
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let nanos = nanoseconds(fraction).zip(whole.parse::<u64>().ok());
        return nanos.map(|(nanos, whole)| Time::At(whole * 1_000_000_000 + nanos)).ok_or("too many digits".to_owned());
    }
    if let Some(at) = date_and_time(text) {
        return Ok(Time::At(at));
    }
    let since: Result<Duration, _> = text.parse();
    since.map(|since| Time::Since(since.as_nanos())).map_err(|_| {
        "must be a time since the first packet (`12.5 s`), a date and time (`2026-11-26T14:44:08.5Z`), or seconds since 1970"
            .to_owned()
    })
}

/// Seconds from this on are seconds since 1970.
const MIN_EPOCH: f64 = 1e8;

/// A fraction of a second in nanoseconds.
fn nanoseconds(fraction: &str) -> Option<u64> {
    if fraction.len() > 9 {
        return None;
    }
    format!("{fraction:0<9}").parse().ok()
}

/// A date and time of RFC 3339, in nanoseconds since 1970.
fn date_and_time(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let parts = |text: &str, by: char| -> Option<[i64; 3]> {
        let parts: Result<Vec<i64>, _> = text.split(by).map(str::parse).collect();
        parts.ok()?.try_into().ok()
    };
    let [year, month, day] = parts(date, '-')?;
    let (time, offset) = if let Some(time) = time.strip_suffix(['Z', 'z']) {
        (time, 0)
    } else {
        let (time, offset) = time.split_at(time.rfind(['+', '-'])?);
        let (hours, minutes) = offset[1..].split_once(':')?;
        let minutes = hours.parse::<i64>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?)?;
        (time, if offset.starts_with('-') { -minutes } else { minutes })
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = parts(time, ':')?;
    let is_valid = (1970..2500).contains(&year)
        && offset.abs() <= 24 * 60
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_valid {
        return None;
    }
    // Years begin in March, so that the day that some years have is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    let seconds = u64::try_from(seconds).ok()?;
    Some(seconds * 1_000_000_000 + nanoseconds(fraction)?)
}

/// How a service writes its log.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Log {
    /// `event=closed client=192.0.2.1:5`
    Logfmt,
    /// An object for each line; all values but the time are strings
    Json,
}

impl Log {
    /// Lines are written like this from now on.
    pub(crate) fn set(self) {
        reknit_host::service::set_format(match self {
            Log::Logfmt => Format::Logfmt,
            Log::Json => Format::Json,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_forms() {
        assert_eq!(time("12.5 s"), Ok(Time::Since(12_500_000_000)));
        assert_eq!(time("0 s"), Ok(Time::Since(0)));
        let at = |nanos| Ok(Time::At(nanos));
        assert_eq!(time("1700000000.25"), at(1_700_000_000_250_000_000));
        assert_eq!(time("2023-11-14T22:13:20Z"), at(1_700_000_000_000_000_000));
        assert_eq!(time("2023-11-14 23:13:20.000000001+01:00"), at(1_700_000_000_000_000_001));
        assert_eq!(time("2024-02-29T00:00:00-00:30"), at(1_709_166_600_000_000_000));
        assert_eq!(time("1970-01-01T00:00:00Z"), at(0));
        for wrong in
            ["", "12", "noon", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-14", "1700000000.1234567890"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_are_addresses_and_their_bits() {
        let bits = |text: &str| network(text).map(|network| network.bits);
        assert_eq!([bits("192.0.2.7"), bits("192.0.2.0/24"), bits("fd00::/8")], [Ok(128), Ok(120), Ok(8)]);
        for wrong in ["", "a", "192.0.2.0/33", "fd00::/129", "192.0.2.0/"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

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
