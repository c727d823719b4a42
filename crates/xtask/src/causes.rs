//! `docs/reference/causes.md`: the causes of reordering, each with a path that shows it, a picture and numbers.

use std::fmt::Write;
use std::path::Path;

use reknit_path::causes::{CAUSES, Cause};
use reknit_path::{Direction, Profile, TrainResult};
use reknit_units::Duration;

const HEAD: &str = "\
The papers name these causes of reordering and of related delays and losses. Each has a stage
([Paths](paths.md#stages)), a path that shows it, and a statistical test of its definition
(`crates/path/tests/causes.rs`).

The column *named by* refers to the papers: Y is Yang, Improving the Performance of TCP in the Presence of Packet Reordering
(2001); R is Zhang, Karp, Floyd, Peterson, RR-TCP (2002); S is Leung, Li, Yang, An Overview of Packet Reordering in TCP (2007); L is
Laor, Gendel, The Effect of Packet Reordering in a Backbone Link (2002); F is Sarolahti, Kojo, Raatikainen, F-RTO (2002).

The numbers are those of `reknit paths NAME`: 20,000 packets of 1500 bytes at 80 % of the slowest rate, in the forward direction
(C15: in the reverse direction). *Reordered*, *extent* and *3-reordered* are defined in RFC 4737. A packet is reordered if a
packet that was sent later arrives before it. Its extent is the number of packets that arrived since the first such packet. It is
3-reordered if the three packets that arrived just before it were all sent later.

";

/// Writes `causes.md` and `pictures/` into `folder`.
pub(crate) fn write(folder: &Path, generated: &str) -> Result<(), String> {
    let pictures = folder.join("pictures");
    let mut table = "| | cause | named by | stage | path | reordered | extent: median, 99 %, largest | 3-reordered | lost | duplicated | \
                     delay: median, 99 % |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut sections = String::new();
    for (number, cause) in (1..).zip(&CAUSES) {
        let profile = Profile::load(cause.path, &[]).map_err(|error| error.to_string())?;
        let title = format!("C{number}: {} ({})", cause.what, cause.path);
        let file = pictures.join(format!("{}.svg", cause.path));
        let (direction, result) = reknit_cli::draw(&title, &profile, &file)?;
        debug_assert!(profile.stages(direction).iter().any(|named| named.spec.kind() == cause.stage));
        let _ = writeln!(table, "{}", row(number, cause, &result));
        let Cause { what, path, .. } = cause;
        let way = if direction == Direction::Forward { "" } else { ", reverse direction" };
        let _ = write!(
            sections,
            "\n## C{number}: {what}\n\n`{path}`{way}: {}\n\n![Delays and reordering of packets through {path}](pictures/{path}.svg)\n",
            profile.description
        );
    }
    let page = folder.join("causes.md");
    let text = format!("# Causes of reordering\n\n{generated}\n\n{HEAD}{table}{sections}");
    std::fs::write(&page, text).map_err(|error| format!("{}: {error}", page.display()))
}

fn row(number: u32, cause: &Cause, result: &TrainResult) -> String {
    let share = |n: u32| format!("{:.2} %", 100.0 * f64::from(n) / f64::from(result.sent));
    let (reordering, mut extents) = result.reordering();
    extents.sort_unstable();
    let extent = extents.last().map_or_else(
        || "-".to_owned(),
        |largest| {
            let at = |percent: usize| extents[(extents.len() - 1) * percent / 100];
            format!("{}, {}, {largest}", at(50), at(99))
        },
    );
    let Cause { what, named_by, stage, path } = cause;
    let delay = |quantile| result.delay_quantile(quantile).round_to(Duration::from_micros(1));
    format!(
        "| [C{number}](pictures/{path}.svg) | {what} | {named_by} | `{stage}` | `{path}` | {} | {extent} | {} | {} | {} | {}, {} |",
        share(extents.len() as u32),
        share(reordering.n_reordered(3) as u32),
        share(result.lost()),
        share(result.duplicates()),
        delay(0.5),
        delay(0.99),
    )
}
