//! Which parts do not go together, and what a part needs of the peer.
//!
//! An algorithm states its own rules ([`Algorithm::RULES`](crate::part::Algorithm::RULES)); here they are checked.
//! An error is a combination that has no meaning, a warning one that works against itself.

use reknit_tcp::Info;

use crate::composition::Composition;
use crate::part::Face;
use crate::rule::{Need, Rule};
use crate::seam::Seam;

/// What is wrong with a composition, one line each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// It cannot be.
    pub errors: Vec<String>,
    /// It can, but works against itself.
    pub warnings: Vec<String>,
}

/// All named parts of a composition.
fn parts(composition: &Composition) -> Vec<(Seam, Face)> {
    Seam::ALL.iter().flat_map(|seam| composition.faces(*seam).into_iter().map(|face| (*seam, face))).collect()
}

fn with_rule(parts: &[(Seam, Face)], wanted: Rule) -> Option<&(Seam, Face)> {
    parts.iter().find(|(_, face)| face.kind.rules.contains(&wanted))
}

/// Checks what one end of a connection is made of.
pub fn check(composition: &Composition) -> Findings {
    let parts = parts(composition);
    let mut errors = exclusions(&parts);
    errors.extend(repetitions(&parts));
    errors.extend(withholders(&parts));
    if !composition.sack {
        errors.extend(without_sack(&parts));
    }
    let mut warnings: Vec<String> = starvation(&parts).into_iter().collect();
    warnings.extend(unheard_response(&parts));
    warnings.extend(between(composition, composition));
    Findings { errors, warnings }
}

/// Warns of a sender and a receiver that both wait for the same segment: the times add up.
pub fn between(sender: &Composition, receiver: &Composition) -> Option<String> {
    let (at_sender, at_receiver) = (parts(sender), parts(receiver));
    let (seam, waits) = with_rule(&at_sender, Rule::Waits)?;
    let (other, withholds) = with_rule(&at_receiver, Rule::Withholds)?;
    Some(format!(
        "{seam}: `{}` waits before it retransmits, and the receiver's `{}` ({other}) holds back the acknowledgments that it \
         waits for: the times add up",
        waits.algorithm, withholds.algorithm
    ))
}

/// An algorithm that answers another seam's question itself allows nothing else there.
fn exclusions(parts: &[(Seam, Face)]) -> Vec<String> {
    let mut errors = Vec::new();
    for (by, face) in parts {
        for rule in face.kind.rules {
            let Rule::Only(seam, allowed) = rule else { continue };
            let others = parts.iter().filter(|(at, other)| at == seam && !allowed.contains(&other.algorithm.as_str()));
            let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            errors.extend(others.map(|(_, other)| {
                format!(
                    "{seam}: `{}` does not go with `{}` ({by}), which decides {} itself; allowed is {allowed}",
                    other.algorithm,
                    face.algorithm,
                    seam.question()
                )
            }));
        }
    }
    errors
}

fn repetitions(parts: &[(Seam, Face)]) -> Option<String> {
    let repeated = |(i, (seam, face)): (usize, &(Seam, Face))| {
        parts[..i].iter().any(|(at, other)| at == seam && other.algorithm == face.algorithm)
    };
    let (_, (seam, face)) = parts.iter().enumerate().find(|entry| repeated(*entry))?;
    Some(format!("{seam}: `{}` is there twice; once is allowed", face.algorithm))
}

fn withholders(parts: &[(Seam, Face)]) -> Option<String> {
    let mut withholding = parts.iter().filter(|(_, face)| face.kind.rules.contains(&Rule::Withholds));
    let (first, second) = (withholding.next()?, withholding.next()?);
    Some(format!(
        "{}: `{}` holds acknowledgments back, and so does `{}` ({}); one of them is allowed",
        second.0, second.1.algorithm, first.1.algorithm, first.0
    ))
}

fn without_sack(parts: &[(Seam, Face)]) -> Option<String> {
    let (seam, face) = parts.iter().find(|(_, face)| face.kind.rules.iter().any(|rule| rule.needs(Need::Sack)))?;
    Some(format!(
        "{seam}: `{}` needs SACK, which this variant does without; set `sack = true` or take a base that has it",
        face.algorithm
    ))
}

/// A threshold beyond the window needs new data to be reached.
fn starvation(parts: &[(Seam, Face)]) -> Option<String> {
    let (seam, threshold) = with_rule(parts, Rule::MayExceedWindow)?;
    parts.iter().find(|(at, face)| *at == Seam::LimitedTransmit && face.algorithm == "off")?;
    Some(format!(
        "limited_transmit: `off` starves `{}` ({seam}): once its threshold exceeds the window, only the timer repairs",
        threshold.algorithm
    ))
}

/// A response that nobody ever asks for.
fn unheard_response(parts: &[(Seam, Face)]) -> Option<String> {
    let (_, response) =
        parts.iter().find(|(seam, face)| *seam == Seam::SpuriousResponse && face.algorithm != "none")?;
    let detects = parts.iter().any(|(seam, face)| {
        *seam == Seam::SpuriousDetector || *seam == Seam::TimeoutRecovery && face.algorithm != "conventional"
    });
    let warning = "has no effect: there are no spurious_detectors, and timeout_recovery is `conventional`";
    (!detects).then(|| format!("spurious_response: `{}` {warning}", response.algorithm))
}

/// What a variant does without because the two ends did not agree on it, and what happens instead: one line for each
/// need that is not met.
pub fn fall_backs(composition: &Composition, info: &Info) -> Vec<String> {
    unmet(composition, |need| !need.is_met(info))
}

/// What happens with a peer that does nothing of what the variant needs.
pub fn possible_fall_backs(composition: &Composition) -> Vec<String> {
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
    for (_, face) in parts(composition) {
        for rule in face.kind.rules {
            if let Rule::Needs(need, instead) = rule {
                note(*need, instead);
            }
        }
    }
    // A feature of the header that no rule speaks of.
    for feature in composition.header_support.iter().flat_map(|part| part.build().features().each()) {
        note(Need::Feature(feature), "");
    }
    let line = |(need, instead): (Need, Vec<&str>)| {
        let instead =
            if instead.is_empty() { "whatever builds on it is off".to_owned() } else { instead.join(", and ") };
        format!("without {need}, {instead}")
    };
    needs.into_iter().map(line).collect()
}
