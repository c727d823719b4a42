//! Where a capture was made, by the round trips from there to both ends. `Stream::place` calls [`infer`] as verdicts are counted
//! and reported.

use reknit_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// A point of the path in the direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapturePoint {
    /// At or next to the host that sends the data.
    Sender,
    /// Between the hosts.
    Middle,
    /// At or next to the host that receives the data.
    Receiver,
}

/// How certain the place is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// There is no evidence.
    None,
    /// The times are close to a limit, or too short to decide.
    Low,
    /// The times are clear.
    High,
    /// Given by the user.
    Given,
}

/// An end is near if its share of the round trip is below this.
const NEAR: f64 = 0.1;
/// Below this share there is no doubt.
const CLEAR: f64 = 0.05;
/// At its fastest, a host answers within this time.
const HOST: Duration = Duration::from_millis(5);
/// Round trips shorter than this are mostly the hosts' own delays.
const SHORT: Duration = Duration::from_micros(500);
/// The initial TTLs of common hosts.
const INITIAL_TTLS: [u8; 4] = [32, 64, 128, 255];

/// The place, by the shortest round trips to the sender and the receiver of the data, and the TTLs of their packets.
pub(super) fn infer(
    to_sender: Option<Duration>,
    to_receiver: Option<Duration>,
    ttl: [Option<u8>; 2],
) -> (CapturePoint, Confidence) {
    let by_ttl = match ttl.map(|ttl| ttl.is_some_and(|ttl| INITIAL_TTLS.contains(&ttl))) {
        [true, false] if ttl[1].is_some() => Some(CapturePoint::Sender),
        [false, true] if ttl[0].is_some() => Some(CapturePoint::Receiver),
        _ => None,
    };
    let (Some(to_sender), Some(to_receiver)) = (to_sender, to_receiver) else {
        return by_ttl.map_or((CapturePoint::Middle, Confidence::None), |place| (place, Confidence::Low));
    };
    let whole = to_sender + to_receiver;
    let share = to_sender.as_secs_f64() / whole.as_secs_f64().max(1e-9);
    if whole < SHORT
        && let Some(place) = by_ttl
    {
        return (place, Confidence::High);
    }
    let (place, is_clear) = if share < NEAR && to_sender < HOST {
        (CapturePoint::Sender, share < CLEAR)
    } else if share > 1.0 - NEAR && to_receiver < HOST {
        (CapturePoint::Receiver, share > 1.0 - CLEAR)
    } else {
        (CapturePoint::Middle, (2.0 * NEAR..1.0 - 2.0 * NEAR).contains(&share) || to_sender.min(to_receiver) > HOST * 2)
    };
    let agrees = by_ttl.is_none_or(|by_ttl| by_ttl == place);
    let confidence = if is_clear && agrees && whole >= SHORT { Confidence::High } else { Confidence::Low };
    (place, confidence)
}
