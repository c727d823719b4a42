//! Scripts of packets against calls: what is accepted runs, and can be brought up to date.

use reknit_script::{Call, Engine, Event, Script, parse, run, update};
use reknit_units::Duration;

/// The longest script that is run: timers may fire each millisecond.
const LONGEST: Duration = Duration::from_secs(100);
/// The most bytes that are written or read at once.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) fn run_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse("x.script", &text) {
        Ok(script) if is_short(&script) => play(&script, &text),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

fn is_short(script: &Script) -> bool {
    let is_small = |event: &Event| match event {
        Event::Call(Call::Write(n) | Call::Read(n)) => *n <= MAX_BYTES,
        _ => true,
    };
    script.lines.last().is_none_or(|line| line.at <= LONGEST) && script.lines.iter().all(|line| is_small(&line.event))
}

fn play(script: &Script, text: &str) {
    let Ok(mut engine) = Engine::new(script) else { return };
    let ran = run(script, &mut engine);
    // The script may be wrong, but the engine must not be.
    let failure = ran.failure.map_or(String::new(), |failure| failure.message);
    assert!(!failure.contains("invariant"), "{failure}");
    if let Ok(updated) = update("x.script", text) {
        parse("x.script", &updated).expect("an updated script can be read");
    }
}
