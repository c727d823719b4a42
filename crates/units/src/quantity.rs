//! Parses `number unit`, the common syntax of all quantities.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A text that is not a quantity of the expected kind. `Display` is one line that lists the allowed units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    syntax: &'static Syntax,
    why: Wrong,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// It is not a number with a known unit.
    Unreadable,
    Negative,
    /// More than this many of its unit.
    TooLarge(u64, &'static str),
}

/// The largest value in the smallest unit, such that the sum of two quantities fits into 64 bits.
const MOST: u64 = 9_200_000_000_000_000_000;

/// The syntax of a quantity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Syntax {
    /// Its name with an article: `a duration`.
    pub(crate) what: &'static str,
    /// The units, each with its size in the smallest one.
    pub(crate) units: &'static [(&'static str, u64)],
    pub(crate) example: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Syntax { what, units, example } = self.syntax;
        match self.why {
            Wrong::Unreadable => {}
            Wrong::Negative => {
                return write!(f, "`{}` is negative; {what} is 0 or more, for example `{example}`", self.text);
            }
            Wrong::TooLarge(most, unit) => return write!(f, "`{}` is too large; at most {most} {unit}", self.text),
        }
        write!(f, "`{}` is not {what}; write a number and a unit (", self.text)?;
        for (i, (unit, _)) in units.iter().enumerate() {
            write!(f, "{}{unit}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, "), for example `{example}`")
    }
}

impl std::error::Error for UnitError {}

impl Syntax {
    /// The value of `text` in the smallest unit, rounded to the nearest integer. Case does not matter.
    pub(crate) fn parse(&'static self, text: &str) -> Result<u64, UnitError> {
        let wrong = |why| UnitError { text: text.to_owned(), syntax: self, why };
        let refuse = || wrong(Wrong::Unreadable);
        let trimmed = text.trim();
        if let Some(number) = trimmed.strip_prefix('-') {
            return Err(if self.parse(number).is_ok() { wrong(Wrong::Negative) } else { refuse() });
        }
        let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refuse)?;
        let (number, unit) = trimmed.split_at(digits);
        let unit = unit.trim_start();
        let &(unit, scale) = self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refuse)?;
        let value = number.parse::<f64>().map_err(|_| refuse())? * scale as f64;
        if value < MOST as f64 {
            #[expect(clippy::cast_sign_loss, reason = "the number has no sign")]
            let rounded = (value + 0.5) as u64;
            Ok(rounded)
        } else {
            Err(wrong(Wrong::TooLarge(MOST / scale, unit)))
        }
    }

    /// The error for a bare number instead of a text with a unit.
    fn bare(&'static self, number: &str) -> UnitError {
        UnitError { text: number.to_owned(), syntax: self, why: Wrong::Unreadable }
    }

    /// Formats `value` (in the smallest unit) in the largest unit that leaves at least 1, with at most three decimals.
    pub(crate) fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let smallest = self.units[0];
        let &(unit, scale) =
            self.units.iter().filter(|(_, scale)| *scale <= value).max_by_key(|(_, scale)| *scale).unwrap_or(&smallest);
        let number = format!("{:.3}", value as f64 / scale as f64);
        write!(f, "{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
    }

    /// `value` (in the smallest unit) as text that is read back as the same value: in the largest unit for which three
    /// decimals are enough.
    pub(crate) fn exact(&self, value: u64) -> String {
        let thousandths = |scale: u64| u128::from(value) * 1000 / u128::from(scale);
        let is_exact = |scale: u64| u128::from(value) * 1000 % u128::from(scale) == 0;
        let units = self.units.iter().filter(|(_, scale)| *scale <= value && is_exact(*scale));
        let &(unit, scale) = units.max_by_key(|(_, scale)| *scale).unwrap_or(&self.units[0]);
        let number = format!("{}.{:03}", thousandths(scale) / 1000, thousandths(scale) % 1000);
        format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Deserializes a quantity from text; a bare number gives the same error as a wrong unit.
pub(crate) fn deserialize<'de, T, D>(deserializer: D, syntax: &'static Syntax) -> Result<T, D::Error>
where
    T: FromStr<Err = UnitError>,
    D: Deserializer<'de>,
{
    struct Text<T>(&'static Syntax, PhantomData<T>);

    impl<T: FromStr<Err = UnitError>> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} such as \"{}\"", self.0.what, self.0.example)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
            Err(E::custom(self.0.bare(&number.to_string())))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
            Err(E::custom(self.0.bare(&number.to_string())))
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
            Err(E::invalid_type(Unexpected::Bool(value), &self))
        }
    }

    deserializer.deserialize_any(Text(syntax, PhantomData))
}

/// The traits of a quantity with a unit: parsing, formatting, serialisation.
macro_rules! quantity {
    ($type:ident, $syntax:expr) => {
        impl std::str::FromStr for $type {
            type Err = $crate::UnitError;

            fn from_str(text: &str) -> Result<Self, $crate::UnitError> {
                $syntax.parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $syntax.print(self.0, f)
            }
        }

        /// Exact, unlike `Display`: states are compared by what `Debug` shows.
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$syntax.exact(self.0))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.serialize_str(&$syntax.exact(self.0))
                } else {
                    serializer.serialize_u64(self.0)
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    $crate::quantity::deserialize(deserializer, &$syntax)
                } else {
                    <u64 as serde::Deserialize>::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

pub(crate) use quantity;
