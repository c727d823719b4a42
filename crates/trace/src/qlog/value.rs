//! JSON values as the dialects of qlog write them: numbers may be strings, and a field may have any type in an event that does
//! not matter here.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Elements of a list that are kept; the others are read and dropped.
const MAX_ELEMENTS: usize = 1 << 16;

/// A value without structure.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Scalar {
    /// Missing, or null.
    #[default]
    None,
    Whole(u64),
    Real(f64),
    Text(String),
    Flag(bool),
    /// A list or an object.
    Other,
}

impl Scalar {
    /// A whole number, also in a string.
    ///
    /// # Errors
    /// What it is instead.
    pub(super) fn whole(&self) -> Result<Option<u64>, String> {
        match self {
            Scalar::None => Ok(None),
            Scalar::Whole(number) => Ok(Some(*number)),
            // JavaScript writes large numbers like this.
            #[expect(clippy::cast_sign_loss, reason = "checked")]
            Scalar::Real(number) if *number >= 0.0 && number.fract() == 0.0 && *number < 2f64.powi(63) => {
                Ok(Some(*number as u64))
            }
            Scalar::Text(text) => text.trim().parse().map(Some).map_err(|_| self.to_string()),
            _ => Err(self.to_string()),
        }
    }

    /// A number, also in a string.
    pub(super) fn real(&self) -> Option<f64> {
        match self {
            Scalar::Whole(number) => Some(*number as f64),
            Scalar::Real(number) => Some(*number),
            Scalar::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Scalar::Text(text) = self { Some(text) } else { None }
    }

    /// True if it is this text, in any case.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text().is_some_and(|this| this.eq_ignore_ascii_case(text))
    }

    pub(super) fn is_none(&self) -> bool {
        *self == Scalar::None
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 40;
        match self {
            Scalar::None => f.write_str("missing"),
            Scalar::Whole(number) => write!(f, "{number}"),
            Scalar::Real(number) => write!(f, "{number}"),
            Scalar::Text(text) => {
                let start: String = text.chars().take(MOST).collect();
                write!(f, "\"{start}{}\"", if text.chars().nth(MOST).is_some() { "..." } else { "" })
            }
            Scalar::Flag(flag) => write!(f, "{flag}"),
            Scalar::Other => f.write_str("a list or an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::None)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Scalar, E> {
        Ok(Scalar::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Real(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar, A::Error> {
        drain(seq)?;
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

pub(super) fn drain<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// The part of a `Visitor` for values without structure where they do not belong: they are read as `$empty`.
macro_rules! without_structure {
    ($empty:expr) => {
        without_structure!($empty, visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($empty)
        }
    };
    ($empty:expr, $($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok($empty)
        })+
    };
}

/// An object whose keys may come in any order, more than once, and with others between them.
pub(super) trait Fields {
    type Key: for<'de> Deserialize<'de>;

    /// Takes or ignores the value of this key.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Self::Key, map: &mut A) -> Result<(), A::Error>;
}

/// Reads an object into `0`; a value of another type changes nothing.
pub(super) struct Into<'a, T>(pub(super) &'a mut T);

impl<'de, T: Fields> DeserializeSeed<'de> for Into<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Fields> Visitor<'de> for Into<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            self.0.take(key, &mut map)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        drain(seq)
    }

    without_structure!(());
}

/// A value that is read whatever its type: a list of `T`, or nothing.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        deserializer.deserialize_any(ListVisitor(std::marker::PhantomData))
    }
}

struct ListVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < MAX_ELEMENTS {
            let Some(element) = seq.next_element()? else { return Ok(List(list)) };
            list.push(element);
        }
        drain(seq)?;
        Ok(List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List(Vec::new()))
    }

    without_structure!(List(Vec::new()));
}
