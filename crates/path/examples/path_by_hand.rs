//! A path by hand: one packet every 5 ms for a second, over a path that is described here.
//!
//! The caller owns the clock. It pushes packets in and asks the pipe when the next one comes out.

use reknit_path::{Direction, Packet, Phases, Pipe, Profile};
use reknit_units::{Bytes, Duration, Instant};

const PATH: &str = r#"
description = "two links in turn, one of them slower, which lose 2 %"
[[forward]]
kind = "multipath"
choice = "round-robin"
paths = [{ delay = "20 ms" }, { delay = "35 ms" }]
[[forward]]
kind = "loss"
probability = 0.02
"#;

struct Numbered(u32);

impl Packet for Numbered {
    fn size(&self) -> Bytes {
        Bytes(1000)
    }

    fn copy(&self) -> Numbered {
        Numbered(self.0)
    }

    fn flow(&self) -> u32 {
        0
    }
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> Result<(), reknit_config::InputError> {
    let profile = Profile::parse("path.toml", PATH)?;
    let mut pipe = Pipe::new(&profile, Direction::Forward, 1, Phases::Drawn);
    for n in 0..200 {
        pipe.push(Instant::ZERO + Duration::from_millis(5) * n, Numbered(n as u32));
    }
    let (mut arrived, mut late, mut highest) = (0, 0, 0);
    while !pipe.is_empty() {
        let now = pipe.next_at();
        while let Some((_, Numbered(n))) = pipe.pop(now) {
            arrived += 1;
            late += u32::from(n < highest);
            highest = highest.max(n);
        }
    }
    let lost = std::iter::from_fn(|| pipe.pop_lost()).count();
    println!("{arrived} packets arrived, {late} of them after a later one; {lost} were lost");
    Ok(())
}
