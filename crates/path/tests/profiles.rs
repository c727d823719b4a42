//! The profiles are complete and documented, and each names its source.

use std::collections::BTreeSet;

use reknit_path::stages::KIND_NAMES;
use reknit_path::{NAMES, Profile, builtin};

const DOCUMENT: &str = include_str!("../../../docs/reference/paths.md");

/// The reports of users, and the profiles for them.
const REPORTS: [(&str, &[&str]); 15] = [
    ("quinn-rs/quinn#2711", &["quinn-sydchi"]),
    ("quic-go/quic-go#5734", &["quicgo-home"]),
    ("tailscale/tailscale#20893", &["ts-upload"]),
    ("google/gvisor#14102", &["gvisor-30ms"]),
    ("cloudflare/quiche#470", &["quiche-jit"]),
    ("nginx/nginx#443", &["nginx-reord"]),
    ("mqvpn's report on per-packet multipath", &["mqvpn-rtt-40", "mqvpn-jit-5", "mqvpn-jit-20"]),
    ("mqvpn's report on per-packet multipath", &["mqvpn-baseline", "mqvpn-loss"]),
    ("mqvpn's report, fiber_lte", &["fiber-lte"]),
    ("Haivision/srt#735", &["srt-1ms"]),
    ("zerotier/ZeroTierOne#1734", &["zt-2wan"]),
    ("coder/coder#13042 and #13195", &["gcp-vm"]),
    ("multipath-tcp/mptcp_net-next#168", &["mptcp-2x"]),
    ("APNIC/Huston on Starlink, 2024", &["leo"]),
    ("Versa Networks on per-packet load balancing", &["sdwan-50ms"]),
];

#[test]
fn reported_paths_exist_and_are_documented() {
    for (report, profiles) in REPORTS {
        for name in profiles {
            let profile = Profile::load(name, &[]).unwrap();
            assert_eq!(profile.source, report, "{name}");
            let row = format!("| `{name}` | {report} | {} |", profile.description);
            assert!(DOCUMENT.lines().any(|line| line == row), "docs/reference/paths.md does not have the row {row}");
        }
    }
}

#[test]
fn the_document_names_no_path_that_does_not_exist() {
    let section = DOCUMENT.split("## Paths that users have described").nth(1).expect("the section of reported paths");
    let section = section.split("\n## ").next().unwrap_or(section);
    let named: BTreeSet<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let known: BTreeSet<&str> = REPORTS.iter().flat_map(|(_, profiles)| profiles.iter().copied()).collect();
    assert_eq!(named, known);
}

#[test]
fn every_profile_begins_with_its_source() {
    for name in NAMES {
        let text = builtin(name).unwrap();
        let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let comment = comment.join(" ");
        let profile = Profile::load(name, &[]).unwrap();
        let says_more = comment.trim_end_matches('.') != profile.description;
        assert!(comment.len() > 20 && says_more, "profiles/{name}.toml does not begin with a comment about its source");
        assert!(!profile.source.is_empty(), "profiles/{name}.toml has no source");
    }
}

/// CONTRIBUTING.md: a stage comes with a profile that shows it and a row in the document.
#[test]
fn every_kind_of_stage_is_shown_and_documented() {
    // The first two need the user's own recording; the third belongs to no path, but is put into any by `--shield`; the last does
    // not reorder.
    const SHOWN_BY_NONE: [&str; 4] = ["recorded", "rate-trace", "shield", "mtu"];
    let shown: BTreeSet<&str> = NAMES
        .iter()
        .map(|name| Profile::load(name, &[]).unwrap())
        .flat_map(|profile| [profile.forward, profile.reverse].concat())
        .map(|named| named.spec.kind())
        .collect();
    for kind in KIND_NAMES {
        assert!(shown.contains(kind) != SHOWN_BY_NONE.contains(kind), "no profile shows {kind}");
        assert!(DOCUMENT.contains(&format!("\n| `{kind}` | ")), "docs/reference/paths.md has no row for {kind}");
    }
}
