//! Checks of stage parameters in addition to those of [`reknit_config`].

use reknit_config::KeyError;
use reknit_units::Rate;

/// Refuses a rate of zero, which would hold packets forever.
pub(crate) fn positive(rate: impl Into<Option<Rate>>, key: &str) -> Result<(), KeyError> {
    match rate.into() {
        Some(rate) if rate.bits_per_second() == 0 => Err(KeyError::new(key, "must be more than 0")),
        _ => Ok(()),
    }
}
