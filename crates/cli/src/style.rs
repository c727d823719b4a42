//! The style of all pictures. [`STYLE`] defines it for the command and for the Python package.

use std::sync::LazyLock;

use plotters::style::RGBColor;
use serde::{Deserialize, Deserializer, de};

/// Colours and markers of all pictures, as TOML.
pub const STYLE: &str = include_str!("style.toml");

/// The colours of [`STYLE`] that the command uses.
#[derive(Deserialize, Debug)]
pub(crate) struct Colours {
    #[serde(deserialize_with = "colour")]
    pub(crate) background: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) ink: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) grid: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) in_order: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) reordered: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) copied: RGBColor,
    #[serde(deserialize_with = "colour")]
    pub(crate) lost: RGBColor,
}

#[derive(Deserialize)]
struct Style {
    colours: Colours,
}

/// The colours, by meaning.
pub(crate) fn colours() -> &'static Colours {
    static COLOURS: LazyLock<Colours> =
        LazyLock::new(|| toml::from_str::<Style>(STYLE).expect("the file is part of the program").colours);
    &COLOURS
}

/// Reads `#RRGGBB`.
fn colour<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RGBColor, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let [_, red, green, blue] =
        number.ok_or_else(|| de::Error::custom(format!("{text}: write a colour as #RRGGBB")))?.to_be_bytes();
    Ok(RGBColor(red, green, blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_is_read() {
        let colours = colours();
        assert_eq!((colours.background, colours.in_order), (RGBColor(255, 255, 255), RGBColor(0, 114, 178)));
        let wrong = toml::from_str::<Style>(&STYLE.replace("\"#323232\"", "\"grey\"")).err().unwrap().to_string();
        assert!(wrong.contains("grey: write a colour as #RRGGBB"), "{wrong}");
    }
}
