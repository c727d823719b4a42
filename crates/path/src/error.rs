//! Checks of stage parameters in addition to those of [`reknit_config`].

use reknit_config::KeyError;
use reknit_units::{Duration, Rate};

use crate::random::Variate;

/// The shortest mean interval between changes of a path. Stepping through shorter ones after an idle time would take too long;
/// through those of zero it would never end.
const SHORTEST: Duration = Duration::from_micros(10);

/// Refuses periods, one after the other, that are too short together.
pub(crate) fn periods(periods: &[&Variate], key: &str) -> Result<(), KeyError> {
    let means = periods.iter().map(|period| period.mean().unwrap_or(Duration::MAX));
    let is_short = means.fold(Duration::ZERO, |sum, mean| sum + mean) < SHORTEST;
    if is_short { Err(KeyError::new(key, "must be at least 10 us on average")) } else { Ok(()) }
}

/// Refuses a rate of zero, which would hold packets forever.
pub(crate) fn positive(rate: impl Into<Option<Rate>>, key: &str) -> Result<(), KeyError> {
    match rate.into() {
        Some(rate) if rate.bits_per_second() == 0 => Err(KeyError::new(key, "must be more than 0")),
        _ => Ok(()),
    }
}
