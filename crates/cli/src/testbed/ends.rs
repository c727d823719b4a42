//! Who sends to whom.

use reknit_compare::NamedVariant;
use reknit_host::Stack;
use reknit_variants::{Custom, rules};

use super::Args;
use crate::Failure;

/// Every sender with every receiver.
pub(super) fn pairs(args: &Args, senders: &[String], customs: &[Custom]) -> Result<Vec<(Stack, Stack)>, Failure> {
    let known = available_congestion_controls();
    let parse = |flag: &str, text: &str| {
        let own = customs.iter().find(|custom| custom.name == text).map(NamedVariant::custom);
        let stack = match own {
            Some(own) => Stack::Engine(own.name, own.composition),
            None => text.parse::<Stack>().map_err(|error| {
                Failure::Usage(format!("{flag}: {error}; or kernel:NAME with a congestion control of this kernel"))
            })?,
        };
        match &stack {
            Stack::Kernel(name) if !known.split_whitespace().any(|k| k == name) => {
                Err(Failure::Usage(format!("{flag}: this kernel has no congestion control `{name}`; it has {known}")))
            }
            Stack::Engine(name, parts) if parts.loss_detector.build().is_told() => Err(Failure::Usage(format!(
                "{flag}: `{name}` runs in simulation only: no network tells a sender what it lost; see reknit compare"
            ))),
            _ => Ok(stack),
        }
    };
    let mut pairs = Vec::new();
    for receiver in &args.to {
        for sender in senders {
            let sender = parse("--variants", sender)?;
            let receiver = if receiver == "same" { sender.clone() } else { parse("--to", receiver)? };
            pairs.push((sender, receiver));
        }
    }
    Ok(pairs)
}

fn available_congestion_controls() -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(file).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Warns of ends that wait for each other.
pub(super) fn warn_of_double_waits(pairs: &[(Stack, Stack)]) {
    for (sender, receiver) in pairs {
        if let (Stack::Engine(_, at_sender), Stack::Engine(_, at_receiver)) = (sender, receiver)
            && let Some(warning) = rules::between(at_sender, at_receiver)
        {
            eprintln!("warning: {sender} to {receiver}: {warning}");
        }
    }
}
