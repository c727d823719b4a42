//! `docs/causes.md`: what causes reordering, each with a path that shows it, a picture and its numbers.

use std::fmt::Write;
use std::path::Path;

use reknit_path::{Direction, Profile, TrainResult};
use reknit_units::Duration;

/// A cause that the papers name.
struct Cause {
    /// What it is.
    what: &'static str,
    /// Who named it.
    named_by: &'static str,
    /// The stage that causes it.
    stage: &'static str,
    /// The path that shows it.
    path: &'static str,
}

const fn cause(what: &'static str, named_by: &'static str, stage: &'static str, path: &'static str) -> Cause {
    Cause { what, named_by, stage, path }
}

/// C1, C2, ...; Y, R, S, L, F are explained in [`HEAD`].
const CAUSES: [Cause; 20] = [
    cause("load balancing by packet", "Y, R, S, L", "multipath", "two-paths-50ms"),
    cause("route fluttering", "Y, R, S", "flutter", "survey"),
    cause("striping over parallel links", "Y, R, S, L", "stripe", "striping"),
    cause("parallel forwarding engines", "R, S", "engines", "switch-planes"),
    cause("misses of a route cache", "Y", "slow-path", "route-cache"),
    cause("forwarding lulls", "R, S", "lull", "forwarding-lull"),
    cause("retransmission by the link layer", "S", "arq", "wireless-arq"),
    cause("the same over a satellite", "R", "arq", "satellite-arq"),
    cause("hand-offs and other sudden delays, in order", "F", "stall", "sudden-delays"),
    cause("outages", "F", "outage", "outages"),
    cause("competing traffic on a slow link", "F", "varying-link", "shared-slow-link"),
    cause("DiffServ marking", "R", "diffserv", "diffserv"),
    cause("mobile ad-hoc networks", "Y, S", "manet", "manet"),
    cause("several wireless hops, in order", "R", "wlan", "wlan-chain"),
    cause("reordered ACKs", "Y, R, S, L", "delay", "ack-reordering"),
    cause("displacement by positions", "L", "displace", "displaced"),
    cause("random delay of some packets", "R", "delay", "random-delay"),
    cause("several points in series", "L", "displace", "reordering-in-series"),
    cause("bursts of loss set off by packets", "R", "outage", "drop-bursts"),
    cause("duplication", "Y, R", "duplicate", "late-duplicates"),
];

const HEAD: &str = "\
# Causes of reordering

Written by `make docs`. Each cause that the papers name, and of what goes with reordering, has a stage
([paths.md](paths.md#stages)), a path that shows it, and a statistical test of its definition
(`crates/path/tests/causes.rs`). Named by: Y, Yang's thesis on an adaptive duplicate-ACK threshold; R, Zhang, Karp, Floyd,
Peterson: RR-TCP (2002); S, Leung, Li, Yang: the survey of TCP under reordering (2007); L, Laor, Gendel: the effect of
reordering in a backbone link (2002); F, Sarolahti, Kojo, Raatikainen: F-RTO (2003).

The numbers are those of `reknit paths NAME`: 20,000 packets of 1500 bytes at 80 % of the slowest rate, forward (C15: back).
Reordered, extents and n-reordering as RFC 4737 defines them: a packet is reordered if a later one arrives before it, its
extent is how many arrivals earlier the first of those came, and it is 3-reordered if the three arrivals just before it are all
later ones, which is what draws three duplicate ACKs.

";

/// Writes `causes.md` and `pictures/` into `folder`.
pub(crate) fn write(folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let pictures = folder.join("pictures");
    std::fs::create_dir_all(&pictures).map_err(|error| failed(&pictures, error))?;
    let mut table = "| | cause | named by | stage | path | reordered | extent: median, 99 %, largest | 3-reordered | lost | copied | \
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
        let way = if direction == Direction::Forward { "" } else { ", the way back" };
        let _ = write!(
            sections,
            "\n## C{number}: {what}\n\n`{path}`{way}: {}\n\n![Delays and reordering of packets through {path}](pictures/{path}.svg)\n",
            profile.description
        );
    }
    let page = folder.join("causes.md");
    std::fs::write(&page, format!("{HEAD}{table}{sections}")).map_err(|error| failed(&page, error))
}

fn row(number: u32, cause: &Cause, result: &TrainResult) -> String {
    let share = |n: u32| format!("{:.2} %", 100.0 * f64::from(n) / f64::from(result.sent));
    let mut extents = result.extents();
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
        share(result.n_reordered(3)),
        share(result.lost()),
        share(result.duplicates()),
        delay(0.5),
        delay(0.99),
    )
}
