//! The senders and receivers of the testbed's transfers.

use reknit_compare::{Location, NamedVariant, named_variant};
use reknit_host::{Tcp, TcpError};
use reknit_variants::algorithm::SeamAlgorithm;
use reknit_variants::{Custom, requirements};

use super::Args;
use crate::{Failure, output};

/// Every sender with every receiver.
pub(super) fn pairs(args: &Args, senders: &[String], customs: &[Custom]) -> Result<Vec<(Tcp, Tcp)>, Failure> {
    let mut pairs = Vec::new();
    let senders = names("variants", senders, customs)?;
    for receiver in &names("to", &args.to, customs)? {
        for sender in &senders {
            let sender = stack("--variants", sender, customs)?;
            let receiver = if receiver == "same" { sender.clone() } else { stack("--to", receiver, customs)? };
            pairs.push((sender, receiver));
        }
    }
    Ok(pairs)
}

/// The stack that `text` names; names in `customs` come first. `flag` is the option, for errors.
pub(crate) fn stack(flag: &str, text: &str, customs: &[Custom]) -> Result<Tcp, Failure> {
    let refused = |error: TcpError| Failure::Usage(format!("{flag}: {error}"));
    let stack = match customs.iter().find(|custom| custom.name == text).map(NamedVariant::custom) {
        Some(own) => Tcp::Engine(own.name, own.composition),
        None => text.parse::<Tcp>().map_err(refused)?,
    };
    match &stack {
        Tcp::Kernel(kernel) => kernel.check().map_err(refused)?,
        Tcp::Engine(name, parts) if parts.loss_detector.build().traits().needs_loss_reports => {
            let why = "only the simulator can tell it which packets were lost; use `reknit compare`";
            return Err(Failure::Usage(format!("{flag}: `{name}` runs in simulation only: {why}")));
        }
        Tcp::Engine(..) => {}
    }
    Ok(stack)
}

/// The names that the pieces of a list stand for: kernels with their settings, variants, and the members of patterns and families.
pub(crate) fn names(option: &'static str, pieces: &[String], customs: &[Custom]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for name in whole_names(pieces) {
        let members = if named_variant::is_group(&name) {
            let refuse = |error: reknit_compare::KeyError| error.at(Location::argument(option));
            named_variant::expand(&name, customs).map_err(refuse)?.into_iter().map(|member| member.name).collect()
        } else {
            vec![name]
        };
        names.extend(members.into_iter().filter(|member| !names.contains(member)).collect::<Vec<_>>());
    }
    Ok(names)
}

/// Restores names from a list that was split at commas: the settings of a kernel may contain commas.
fn whole_names(pieces: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in pieces {
        let is_setting = piece.contains('=') && !piece.contains(':');
        match names.last_mut().filter(|name| is_setting && name.starts_with("kernel") && name.contains('+')) {
            Some(kernel) => *kernel = format!("{kernel},{piece}"),
            None => names.push(piece.clone()),
        }
    }
    names
}

/// Warns if a sender that waits meets a receiver that withholds ACKs.
pub(super) fn warn_if_both_ends_delay(pairs: &[(Tcp, Tcp)]) {
    for (sender, receiver) in pairs {
        if let (Tcp::Engine(_, at_sender), Tcp::Engine(_, at_receiver)) = (sender, receiver)
            && let Some(warning) = requirements::between(at_sender, at_receiver)
        {
            output::note(format_args!("warning: {sender} to {receiver}: {warning}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_may_have_commas() {
        let pieces: Vec<String> =
            "rack,kernel:cubic+timestamps=0,recovery=0,kernel:bbr,sack".split(',').map(str::to_owned).collect();
        assert_eq!(whole_names(&pieces), ["rack", "kernel:cubic+timestamps=0,recovery=0", "kernel:bbr", "sack"]);
    }
}
