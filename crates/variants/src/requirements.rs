//! Which parts cannot be combined, and what a part needs from the peer.
//!
//! Each algorithm declares its own rules ([`Algorithm::requirements`](crate::algorithm::Algorithm::requirements)); they are checked
//! here. A combination that makes no sense is an error; one whose parts work against each other causes a warning.

use reknit_tcp::Info;

use crate::algorithm::SeamAlgorithm;
use crate::composition::Composition;
use crate::requirement::{Need, Requirement};
use crate::slot::Part;
use reknit_tcp::seams::Seam;

/// The problems of a composition, one line each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// The combination is invalid.
    pub errors: Vec<String>,
    /// The combination is valid, but its parts work against each other.
    pub warnings: Vec<String>,
}

fn parts(composition: &Composition) -> Vec<(Seam, Part)> {
    composition.all_parts().collect()
}

fn with_rule(parts: &[(Seam, Part)], wanted: Requirement) -> Option<&(Seam, Part)> {
    parts.iter().find(|(_, part)| part.requirements.contains(&wanted))
}

/// Checks the parts of one end of a connection.
pub fn check(composition: &Composition) -> Findings {
    let parts = parts(composition);
    let mut errors = exclusions(&parts);
    errors.extend(repetitions(&parts));
    errors.extend(withholders(&parts));
    if !composition.sack {
        errors.extend(without_sack(&parts));
    }
    let mut warnings: Vec<String> = starvation(&parts).into_iter().collect();
    warnings.extend(response_without_detector(&parts));
    warnings.extend(between(composition, composition));
    Findings { errors, warnings }
}

/// Returns a warning if the sender and the receiver both wait for the same segment: the times add up.
pub fn between(sender: &Composition, receiver: &Composition) -> Option<String> {
    let (at_sender, at_receiver) = (parts(sender), parts(receiver));
    let (seam, waits) = with_rule(&at_sender, Requirement::Waits)?;
    let (other, withholds) = with_rule(&at_receiver, Requirement::Withholds)?;
    Some(format!(
        "{seam}: `{}` waits before it retransmits, and `{}` at the receiver ({other}) withholds the ACKs that it \
         waits for: the times add up",
        waits.algorithm, withholds.algorithm
    ))
}

/// An algorithm that makes the decision of another seam itself restricts what may fill that seam.
fn exclusions(parts: &[(Seam, Part)]) -> Vec<String> {
    let mut errors = Vec::new();
    for (by, part) in parts {
        for requirement in part.requirements {
            let Requirement::Only(seam, allowed) = requirement else { continue };
            let others = parts.iter().filter(|(at, other)| at == seam && !allowed.contains(&other.algorithm.as_str()));
            let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            errors.extend(others.map(|(_, other)| {
                format!(
                    "{seam}: `{}` cannot be combined with `{}` ({by}), which itself decides {}; allowed: {allowed}",
                    other.algorithm,
                    part.algorithm,
                    seam.question()
                )
            }));
        }
    }
    errors
}

fn repetitions(parts: &[(Seam, Part)]) -> Option<String> {
    let repeated = |(i, (seam, part)): (usize, &(Seam, Part))| {
        parts[..i].iter().any(|(at, other)| at == seam && other.algorithm == part.algorithm)
    };
    let (_, (seam, part)) = parts.iter().enumerate().find(|entry| repeated(*entry))?;
    Some(format!("{seam}: `{}` is listed twice; it may be listed only once", part.algorithm))
}

fn withholders(parts: &[(Seam, Part)]) -> Option<String> {
    let mut withholding = parts.iter().filter(|(_, part)| part.requirements.contains(&Requirement::Withholds));
    let (first, second) = (withholding.next()?, withholding.next()?);
    Some(format!(
        "{}: `{}` withholds ACKs, and so does `{}` ({}); only one of them is allowed",
        second.0, second.1.algorithm, first.1.algorithm, first.0
    ))
}

fn without_sack(parts: &[(Seam, Part)]) -> Option<String> {
    let (seam, part) =
        parts.iter().find(|(_, part)| part.requirements.iter().any(|requirement| requirement.needs(Need::Sack)))?;
    Some(format!(
        "{seam}: `{}` needs SACK, which this variant does not use; set `sack = true`, or choose a base with SACK",
        part.algorithm
    ))
}

/// A threshold above the window can be reached only with new data.
fn starvation(parts: &[(Seam, Part)]) -> Option<String> {
    let (seam, threshold) = with_rule(parts, Requirement::MayExceedWindow)?;
    parts.iter().find(|(at, part)| *at == Seam::LimitedTransmit && part.algorithm == "off")?;
    Some(format!(
        "limited_transmit: with `off`, `{}` ({seam}) may set a threshold above the window; then only the timer repairs losses",
        threshold.algorithm
    ))
}

/// A response to spurious reductions without anything that detects them.
fn response_without_detector(parts: &[(Seam, Part)]) -> Option<String> {
    let (_, response) =
        parts.iter().find(|(seam, part)| *seam == Seam::SpuriousResponse && part.algorithm != "none")?;
    let detects = parts.iter().any(|(seam, part)| {
        *seam == Seam::SpuriousDetector || *seam == Seam::TimeoutRecovery && part.algorithm != "conventional"
    });
    let warning = "has no effect: there are no spurious_detectors, and timeout_recovery is `conventional`";
    (!detects).then(|| format!("spurious_response: `{}` {warning}", response.algorithm))
}

/// What happens instead of each need of a variant that the two ends did not agree on: one line for each unmet need.
pub fn fallbacks(composition: &Composition, info: &Info) -> Vec<String> {
    unmet(composition, |need| !need.is_met(info))
}

/// What happens with a peer that supports nothing of what the variant needs.
pub fn possible_fallbacks(composition: &Composition) -> Vec<String> {
    unmet(composition, |_| true)
}

fn unmet(composition: &Composition, is_unmet: impl Fn(Need) -> bool) -> Vec<String> {
    let mut needs: Vec<(Need, Vec<&str>)> = Vec::new();
    let mut note = |need: Need, instead: &'static str| {
        if !is_unmet(need) {
            return;
        }
        let known = needs.iter().position(|(other, _)| *other == need);
        let at = known.unwrap_or_else(|| {
            needs.push((need, Vec::new()));
            needs.len() - 1
        });
        if !instead.is_empty() && !needs[at].1.contains(&instead) {
            needs[at].1.push(instead);
        }
    };
    for (_, part) in parts(composition) {
        for requirement in part.requirements {
            if let Requirement::Needs(need, instead) = requirement {
                note(*need, instead);
            }
        }
    }
    // Features of the header that have no requirement.
    for feature in composition.header_support.iter().flat_map(|part| part.build().traits().features.each()) {
        note(Need::Feature(feature), "");
    }
    let line = |(need, instead): (Need, Vec<&str>)| {
        let instead = match instead.as_slice() {
            [] => "everything that depends on it is off".to_owned(),
            [only] => (*only).to_owned(),
            [others @ .., last] => format!("{}, and {last}", others.join(", ")),
        };
        format!("without {need}, {instead}")
    };
    needs.into_iter().map(line).collect()
}
