//! Segments as text: `P. 1:1001(1000) ack 1 win 60000 sack 2001:3001`.
//!
//! Numbers are relative, as in packetdrill: a SYN is 0, the first byte of data 1.

use std::fmt::Write;

use reknit_tcp::SeqNum;
use reknit_tcp::experiment::Dropped;
use reknit_tcp::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};

use crate::{FLAGS, WINDOW};

/// A field that is compared only if a script writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `win`
    Window,
    /// `mss`
    Mss,
    /// `wscale`
    WindowScale,
    /// `sackOK`
    SackPermitted,
    /// `TS val V ecr E`
    Timestamps,
    /// `ecn`
    Ecn,
}

/// The words for the fields.
const FIELDS: [(&str, Field); 6] = [
    ("win", Field::Window),
    ("mss", Field::Mss),
    ("wscale", Field::WindowScale),
    ("sackOK", Field::SackPermitted),
    ("TS", Field::Timestamps),
    ("ecn", Field::Ecn),
];

/// The codepoints of the ECN field.
const CODEPOINTS: [(&str, Ecn); 4] =
    [("none", Ecn::NotCapable), ("ect0", Ecn::Ect0), ("ect1", Ecn::Capable1), ("ce", Ecn::Congested)];

/// A set of fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fields(u8);

impl Fields {
    /// True if `field` is in the set.
    pub fn has(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }

    pub(crate) fn insert(&mut self, field: Field) {
        self.0 |= 1 << field as u8;
    }
}

/// A segment that must be sent: flags, numbers and SACK blocks, and of the other fields those that are written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pattern {
    /// The segment.
    pub segment: Segment,
    /// The fields that are compared.
    pub compared: Fields,
    /// The options that must be absent.
    pub absent: Fields,
}

/// Flags, numbers and SACK blocks of `segment`.
pub fn brief(segment: &Segment) -> String {
    let mut text = flags(segment.flags);
    let end = segment.seq.plus(u32::from(segment.len));
    let _ = write!(text, " {}:{}({})", segment.seq.0, end.0, segment.len);
    if segment.flags.has(Flags::ACK) {
        let _ = write!(text, " ack {}", segment.ack.0);
    }
    for (i, block) in segment.options.sack.as_slice().iter().enumerate() {
        let _ = write!(text, "{} {}:{}", if i == 0 { " sack" } else { "" }, block.left.0, block.right.0);
    }
    text
}

/// The same with all other fields.
pub fn full(segment: &Segment) -> String {
    let all = FIELDS.iter().fold(Fields::default(), |mut all, (_, field)| {
        all.insert(*field);
        all
    });
    with(segment, all)
}

/// The same with these fields.
pub(crate) fn with(segment: &Segment, fields: Fields) -> String {
    let mut text = brief(segment);
    let options = &segment.options;
    for (word, field) in FIELDS.iter().filter(|(_, field)| fields.has(*field)) {
        let value = match field {
            Field::Window => Some(segment.window.to_string()),
            Field::Mss => options.mss.map(|mss| mss.to_string()),
            Field::WindowScale => options.window_scale.map(|shift| shift.to_string()),
            Field::SackPermitted => options.sack_permitted.then(String::new),
            Field::Timestamps => options.timestamps.map(|t| format!("val {} ecr {}", t.val, t.ecr)),
            Field::Ecn => CODEPOINTS.iter().find(|(_, ecn)| *ecn == segment.ecn).map(|(word, _)| (*word).to_owned()),
        };
        if let Some(value) = value {
            let _ = write!(text, " {word}{}{value}", if value.is_empty() { "" } else { " " });
        }
    }
    text
}

/// The words for these fields.
pub(crate) fn words(fields: Fields) -> impl Iterator<Item = &'static str> {
    FIELDS.iter().filter(move |(_, field)| fields.has(*field)).map(|(word, _)| *word)
}

fn flags(flags: Flags) -> String {
    let text: String = FLAGS.iter().filter(|(_, flag)| flags.has(*flag)).map(|(letter, _)| *letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// `segment` with the sender's numbers shifted by `own` and the acknowledged numbers by `other`.
#[must_use]
pub fn shifted(segment: &Segment, own: u32, other: u32) -> Segment {
    let mut sack = SackBlocks::EMPTY;
    for block in segment.options.sack.as_slice() {
        sack.push(SackBlock { left: block.left.plus(other), right: block.right.plus(other) });
    }
    let ack = if segment.flags.has(Flags::ACK) { segment.ack.plus(other) } else { segment.ack };
    let mut experiment = segment.options.experiment;
    if let Some(dropped) = experiment.dropped.as_mut().filter(|dropped| !dropped.is_empty()) {
        *dropped = Dropped { lowest: dropped.lowest.plus(own), highest: dropped.highest.plus(own) };
    }
    let options = Options { sack, experiment, ..segment.options };
    Segment { seq: segment.seq.plus(own), ack, options, ..*segment }
}

/// Reads a segment.
///
/// # Errors
/// What is wrong, and what is allowed.
pub(crate) fn read(text: &str) -> Result<Pattern, String> {
    let mut words = text.split_whitespace().peekable();
    let mut segment = Segment { window: WINDOW, ..Segment::default() };
    segment.flags = read_flags(words.next().ok_or("a segment begins with its flags, such as `P.`")?)?;
    read_range(words.next().ok_or("after the flags come the numbers, such as 1:1461(1460)")?, &mut segment)?;
    let mut pattern = Pattern { segment, compared: Fields::default(), absent: Fields::default() };
    let mut acknowledges = false;
    while let Some(word) = words.next() {
        match word {
            "ack" => {
                pattern.segment.ack = SeqNum(number("ack", words.next(), u64::from(u32::MAX))? as u32);
                acknowledges = true;
            }
            "sack" => {
                while let Some(block) = words.next_if(|word| word.contains(':')) {
                    let (left, right) = range(block)?;
                    pattern.segment.options.sack.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
                }
                if pattern.segment.options.sack.is_empty() {
                    return Err("`sack` needs blocks, such as sack 1461:2921".to_owned());
                }
            }
            "without" => {
                for word in words.by_ref() {
                    pattern.absent.insert(field(word)?);
                }
            }
            _ => read_field(field(word)?, &mut words, &mut pattern)?,
        }
    }
    if acknowledges != pattern.segment.flags.has(Flags::ACK) {
        return Err("`ack N` and the flag `.` go together".to_owned());
    }
    Ok(pattern)
}

fn field(word: &str) -> Result<Field, String> {
    let found = FIELDS.iter().find(|(name, _)| *name == word).map(|(_, field)| *field);
    found.ok_or_else(|| {
        format!("`{word}` is not part of a segment; allowed are ack, sack, win, mss, wscale, sackOK, TS, ecn, without")
    })
}

fn read_field<'a>(
    field: Field,
    words: &mut impl Iterator<Item = &'a str>,
    pattern: &mut Pattern,
) -> Result<(), String> {
    pattern.compared.insert(field);
    let segment = &mut pattern.segment;
    match field {
        Field::Window => segment.window = number("win", words.next(), u64::from(u16::MAX))? as u16,
        Field::Mss => segment.options.mss = Some(number("mss", words.next(), u64::from(u16::MAX))? as u16),
        Field::WindowScale => segment.options.window_scale = Some(number("wscale", words.next(), 255)? as u8),
        Field::SackPermitted => segment.options.sack_permitted = true,
        Field::Timestamps => {
            let mut value = |word: &str| match words.next() {
                Some(found) if found == word => number(word, words.next(), u64::from(u32::MAX)),
                _ => Err("timestamps are written as TS val V ecr E".to_owned()),
            };
            let (val, ecr) = (value("val")? as u32, value("ecr")? as u32);
            segment.options.timestamps = Some(Timestamps { val, ecr });
        }
        Field::Ecn => {
            let word = words.next().unwrap_or_default();
            let found = CODEPOINTS.iter().find(|(name, _)| *name == word);
            segment.ecn = found.ok_or_else(|| format!("ecn `{word}`: must be none, ect0, ect1 or ce"))?.1;
        }
    }
    Ok(())
}

fn number(what: &str, word: Option<&str>, most: u64) -> Result<u64, String> {
    let word = word.unwrap_or_default();
    let number = word.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("{what} `{word}`: must be a number from 0 to {most}"))
}

fn read_flags(word: &str) -> Result<Flags, String> {
    if word == "-" {
        return Ok(Flags::NONE);
    }
    word.chars().try_fold(Flags::NONE, |flags, letter| {
        let flag = FLAGS.iter().find(|(known, _)| *known == letter);
        let (_, flag) = flag.ok_or_else(|| format!("flags `{word}`: must be of S F R P . U E W, or - for none"))?;
        Ok(flags | *flag)
    })
}

/// `LEFT:RIGHT`
fn range(word: &str) -> Result<(u32, u32), String> {
    let parts = word.split_once(':').and_then(|(left, right)| Some((left.parse().ok()?, right.parse().ok()?)));
    parts.ok_or_else(|| format!("`{word}`: must be two numbers, such as 1461:2921"))
}

/// `SEQ:END(LEN)`, where END = SEQ + LEN.
fn read_range(word: &str, segment: &mut Segment) -> Result<(), String> {
    let wrong = || format!("`{word}`: must be SEQ:END(LENGTH), such as 1:1461(1460)");
    let (numbers, len) = word.strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(wrong)?;
    let (seq, end) = range(numbers).map_err(|_| wrong())?;
    let len: u16 = len.parse().map_err(|_| wrong())?;
    if seq.wrapping_add(u32::from(len)) != end {
        return Err(format!("`{word}`: {seq} + {len} is not {end}"));
    }
    (segment.seq, segment.len) = (SeqNum(seq), len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "S 0:0(0) mss 1460 wscale 7 sackOK",
            "P. 1:1001(1000) ack 1 sack 2001:3001 4001:5001 win 60000 TS val 10010 ecr 1000 ecn ce",
            "FPUEW 5:6(1)",
            "- 7:7(0)",
        ] {
            let pattern = read(text).unwrap();
            assert_eq!(with(&pattern.segment, pattern.compared), text);
        }
        let pattern = read("S. 0:0(0) ack 1 without TS wscale").unwrap();
        assert!(pattern.absent.has(Field::Timestamps) && pattern.absent.has(Field::WindowScale));
        assert!(!pattern.absent.has(Field::Mss));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (text, error) in [
            ("", "a segment begins with its flags, such as `P.`"),
            ("X 1:1(0)", "flags `X`: must be of S F R P . U E W, or - for none"),
            (".", "after the flags come the numbers, such as 1:1461(1460)"),
            (". 1:2(3) ack 1", "`1:2(3)`: 1 + 3 is not 2"),
            (". 1-2(1) ack 1", "`1-2(1)`: must be SEQ:END(LENGTH), such as 1:1461(1460)"),
            (". 1:1(0)", "`ack N` and the flag `.` go together"),
            ("R 1:1(0) ack 1", "`ack N` and the flag `.` go together"),
            (". 1:1(0) ack x", "ack `x`: must be a number from 0 to 4294967295"),
            (". 1:1(0) ack 1 win 70000", "win `70000`: must be a number from 0 to 65535"),
            (". 1:1(0) ack 1 sack", "`sack` needs blocks, such as sack 1461:2921"),
            (". 1:1(0) ack 1 TS 5", "timestamps are written as TS val V ecr E"),
            (". 1:1(0) ack 1 ecn yes", "ecn `yes`: must be none, ect0, ect1 or ce"),
            (
                ". 1:1(0) ack 1 urg",
                "`urg` is not part of a segment; allowed are ack, sack, win, mss, wscale, sackOK, TS, ecn, without",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
    }
}
