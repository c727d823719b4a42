//! What happened to the packets of a capture: `cargo run -p reknit-trace --example verdicts -- slow.pcap`.

use reknit_trace::{Analyzer, Options};

#[expect(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name a capture: pcap or pcapng, plain or compressed")?;
    let mut analyzer = Analyzer::new(Options::default());
    analyzer.read(std::fs::File::open(&file)?, &mut |event| println!("{event:?}"))?;
    for direction in analyzer.finish(&mut |event| println!("{event:?}")).directions {
        let verdicts = &direction.verdicts;
        println!("{} to {}: {} lost, {} late", direction.from, direction.to, verdicts.lost, verdicts.reordered);
        for advice in &direction.advice {
            println!("  {advice}");
        }
    }
    Ok(())
}
