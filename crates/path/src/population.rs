//! A population of random paths that reorder packets.
//!
//! Each path has a bottleneck of 2 to 100 Mbit/s, a one-way delay of 5 to 150 ms, a queue of half to two
//! bandwidth-delay products, and one cause of reordering. Three of seven also lose packets at random, and one in four
//! also reorders the ACKs. Each seed gives a different sequence of paths: use some seeds for development and others for
//! reported results.

use std::fmt::Write;

use reknit_config::InputError;
use toml::Table;

use crate::profile::Profile;
use crate::random::{Phases, Stream, StreamId};

/// A stream that no stage uses.
const STAGE: u32 = u32::MAX;
/// Bytes of a packet, to compute the size of queues.
const PACKET: f64 = 1500.0;

/// A path of the population.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomPath {
    /// `SEED-NUMBER`.
    pub name: String,
    /// The path file.
    pub toml: String,
}

impl RandomPath {
    /// The path with this number, counted from 0, in the sequence of `seed`. It does not depend on how many others are
    /// drawn.
    pub fn draw(seed: u64, number: u32) -> RandomPath {
        let mut stream = StreamId { seed, stage: STAGE, phases: Phases::Drawn }.stream(number);
        let name = format!("{seed}-{number:02}");
        let draw = Draw::new(&mut stream);
        RandomPath { toml: draw.toml(&name), name }
    }

    /// The path as a table.
    ///
    /// # Errors
    /// None, because every drawn path is valid; the parser cannot know that.
    pub fn table(&self) -> Result<Table, InputError> {
        reknit_config::parse(&self.name, &self.toml)
    }

    /// The path as a profile.
    ///
    /// # Errors
    /// As above.
    pub fn profile(&self) -> Result<Profile, InputError> {
        Profile::parse(&self.name, &self.toml)
    }
}

/// The properties that were drawn.
struct Draw {
    rate_mbit_s: u32,
    delay_ms: f64,
    queue_packets: u32,
    loss: f64,
    /// The ACKs are also reordered.
    both_ways: bool,
    cause: &'static str,
    /// Tables of stages, without the direction.
    stages: Vec<String>,
}

impl Draw {
    fn new(stream: &mut Stream) -> Draw {
        let rate_mbit_s = *one_of(stream, &[2, 5, 10, 20, 50, 100]);
        let delay_ms = tenths(between(stream, 5.0, 150.0));
        let product = (f64::from(rate_mbit_s) * 1e6 * 2.0 * delay_ms / 1e3 / 8.0 / PACKET).floor().max(10.0);
        let queue = (product * between(stream, 0.5, 2.0)).floor();
        let loss = *one_of(stream, &[0.0, 0.0, 0.0, 1e-4, 1e-3, 5e-3, 1e-2]);
        let both_ways = stream.chance(0.25);
        let cause: Cause = *one_of(stream, CAUSES);
        #[expect(clippy::cast_sign_loss, reason = "no factor has a sign")]
        let queue_packets = queue as u32;
        Draw {
            rate_mbit_s,
            delay_ms,
            queue_packets,
            loss,
            both_ways,
            cause: cause.0,
            stages: cause.1(stream, delay_ms),
        }
    }

    fn toml(&self, name: &str) -> String {
        let mut text = format!("description = \"random path {name}: {}\"\n", self.cause);
        for (direction, reorders) in [("forward", true), ("reverse", self.both_ways)] {
            let mut stages = vec![format!(
                "kind = \"link\"\nname = \"bottleneck\"\nrate = \"{} Mbit/s\"\ndelay = \"{} ms\"\nqueue = \"{} packets\"",
                self.rate_mbit_s, self.delay_ms, self.queue_packets
            )];
            if direction == "forward" && self.loss > 0.0 {
                stages.push(format!("kind = \"loss\"\nprobability = {}", self.loss));
            }
            if reorders {
                stages.extend(self.stages.iter().cloned());
            }
            for stage in stages {
                let _ = write!(text, "\n[[{direction}]]\n{stage}\n"); // writing to a string cannot fail
            }
        }
        text + TCP
    }
}

/// TCP options of both ends, similar to those of Linux.
const TCP: &str = "
[tcp]
min_rto = \"200 ms\"
receive_buffer = \"16 MiB\"
ack_delay = \"40 ms\"
rtt_samples = \"per-ack\"
";

/// A cause's name, and its stages on a path with this one-way delay in ms.
type Cause = (&'static str, fn(&mut Stream, f64) -> Vec<String>);

/// A cause that is listed twice is drawn twice as often.
const CAUSES: &[Cause] = &[
    ("late packets", late_packets),
    ("late packets", late_packets),
    ("multipath", multipath),
    ("multipath", multipath),
    ("flutter", flutter),
    ("link ARQ", arq),
    ("displaced packets", displace),
    ("satellite hand-overs", hand_overs),
    ("bursts of loss", loss_bursts),
];

fn late_packets(stream: &mut Stream, delay: f64) -> Vec<String> {
    let share = one_of(stream, &[0.01, 0.03, 0.1, 0.3]);
    let law = *one_of(stream, &["normal", "exponential", "uniform", "pareto"]);
    let mean = tenths(delay * between(stream, 0.1, 3.0));
    let extra = match law {
        "normal" => format!("normal({mean} ms, {:.2} ms)", mean / 3.0),
        "exponential" => format!("exponential({mean} ms)"),
        "uniform" => format!("uniform(0 ms, {} ms)", tenths(2.0 * mean)),
        _ => format!("pareto(1.8, {:.2} ms)", mean * 0.8 / 1.8),
    };
    vec![format!("kind = \"delay\"\nprobability = {share}\nextra = \"{extra}\"")]
}

fn multipath(stream: &mut Stream, delay: f64) -> Vec<String> {
    let further = *one_of(stream, &[1, 1, 2, 3]);
    let mut paths = vec!["{ delay = \"0 ms\" }".to_owned()];
    paths.extend((0..further).map(|_| format!("{{ delay = \"{} ms\" }}", tenths(delay * between(stream, 0.1, 4.0)))));
    let choice = one_of(stream, &["random", "round-robin"]);
    vec![format!("kind = \"multipath\"\nchoice = \"{choice}\"\npaths = [{}]", paths.join(", "))]
}

fn flutter(stream: &mut Stream, delay: f64) -> Vec<String> {
    let interval = one_of(stream, &[50, 250, 1000]);
    let deviation = tenths(delay * between(stream, 0.2, 1.5));
    let delay = format!("normal({} ms, {deviation} ms)", tenths(2.0 * deviation));
    vec![format!("kind = \"flutter\"\ninterval = \"constant({interval} ms)\"\ndelay = \"{delay}\"")]
}

fn arq(stream: &mut Stream, _delay: f64) -> Vec<String> {
    let fails = one_of(stream, &[0.02, 0.05, 0.1]);
    let retry = tenths(between(stream, 5.0, 200.0));
    vec![format!("kind = \"arq\"\nprobability = {fails}\nretry = \"{retry} ms\"\nretries = 3")]
}

fn displace(stream: &mut Stream, _delay: f64) -> Vec<String> {
    let share = one_of(stream, &[0.001, 0.01, 0.05, 0.2]);
    let positions = one_of(stream, &[1, 3, 8, 30]);
    vec![format!("kind = \"displace\"\nprobability = {share}\npositions = {positions}")]
}

/// The delay changes every 15 s, as with low-orbit satellites, and that of each packet varies by 6 ms.
fn hand_overs(stream: &mut Stream, _delay: f64) -> Vec<String> {
    const LEVEL: f64 = 60.0;
    let step = tenths(between(stream, -60.0, 60.0));
    let (least, most) = (tenths(LEVEL + step.min(0.0)), tenths(LEVEL + step.max(0.0)));
    vec![
        format!("kind = \"flutter\"\ninterval = \"constant(15 s)\"\ndelay = \"uniform({least} ms, {most} ms)\""),
        "kind = \"delay\"\nextra = \"uniform(0 ms, 6 ms)\"".to_owned(),
    ]
}

fn loss_bursts(_stream: &mut Stream, delay: f64) -> Vec<String> {
    let late = tenths(delay * 0.5);
    vec![
        "kind = \"outage\"\nprobability = 0.0002\ndown = \"uniform(300 ms, 400 ms)\"".to_owned(),
        format!("kind = \"delay\"\nprobability = 0.02\nextra = \"exponential({late} ms)\""),
    ]
}

fn one_of<'a, T>(stream: &mut Stream, values: &'a [T]) -> &'a T {
    &values[stream.below(values.len() as u32) as usize]
}

fn between(stream: &mut Stream, least: f64, most: f64) -> f64 {
    least + (most - least) * stream.uniform()
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::profile::Direction;

    #[test]
    fn every_draw_is_a_valid_path() {
        let mut causes: BTreeMap<String, u32> = BTreeMap::new();
        let (mut lossless, mut both_ways) = (0, 0);
        for number in 0..900 {
            let path = RandomPath::draw(7, number);
            let profile = path.profile().unwrap_or_else(|error| panic!("{error}\n{}", path.toml));
            let cause = profile.description.split(": ").nth(1).unwrap().to_owned();
            let may_lose = cause == "bursts of loss";
            *causes.entry(cause).or_default() += 1;
            lossless += u32::from(!profile.loses_packets());
            assert!(!may_lose || profile.loses_packets(), "{}", path.toml);
            both_ways += u32::from(profile.stages(Direction::Reverse).len() > 1);
        }
        // 900 draws of nine causes: 100 each on average, and twice as many of the two that are listed twice.
        for (cause, count) in causes {
            let expected = if cause == "late packets" || cause == "multipath" { 150..250 } else { 60..140 };
            assert!(expected.contains(&count), "{cause}: {count}");
        }
        assert!((300..390).contains(&lossless), "{lossless} lossless"); // 900 * 8/9 * 3/7 = 343
        assert!((180..270).contains(&both_ways), "{both_ways} reorder ACKs"); // 900 / 4
    }

    #[test]
    fn a_path_does_not_depend_on_the_others() {
        assert_eq!(RandomPath::draw(3, 11), RandomPath::draw(3, 11));
        assert_ne!(RandomPath::draw(3, 11).toml, RandomPath::draw(4, 11).toml);
    }
}
