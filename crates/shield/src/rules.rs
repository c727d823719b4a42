//! The rules that bring packets to the queues.
//!
//! They are made with iptables, since some kernels have its target NFQUEUE but not the statement `queue` of nftables. Packets
//! that arrive on an interface (with the mode `resequence`, only those of TCP) jump to a chain of our own, whether this machine
//! forwards or receives them.

use reknit_host::service::{Plan, Step};

use crate::settings::{Mode, Settings};

/// The chain.
pub const CHAIN: &str = "REKNIT_SHIELD";
/// Both families.
pub const PROGRAMS: [&str; 2] = ["iptables", "ip6tables"];
/// The chains of the kernel, in the table mangle.
const HOOKS: [&str; 2] = ["FORWARD", "INPUT"];

/// What is done for these settings once the queues are read; nothing for the mode that only watches.
pub fn plan(settings: &Settings) -> Plan {
    let mut plan = Plan::default();
    if settings.mode == Mode::Observe {
        return plan;
    }
    let first = settings.first_queue;
    let queues = match settings.queue_numbers().last() {
        Some(last) if last > first => format!("--queue-balance {first}:{last}"),
        _ => format!("--queue-num {first}"),
    };
    let protocol = if settings.mode == Mode::Resequence { " -p tcp" } else { "" };
    for program in PROGRAMS {
        let run = |line: String| Step::Run(format!("{program} -w -t mangle {line}"));
        plan.steps.push(run(format!("-N {CHAIN}")));
        plan.steps.push(run(format!("-A {CHAIN} -j NFQUEUE {queues} --queue-bypass")));
        for interface in &settings.interfaces {
            for hook in HOOKS {
                let rule = format!("{hook} -i {interface}{protocol} -j {CHAIN}");
                plan.steps.push(run(format!("-I {rule}")));
                plan.undo.push(run(format!("-D {rule}")));
            }
        }
        plan.undo.push(run(format!("-F {CHAIN}")));
        plan.undo.push(run(format!("-X {CHAIN}")));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_and_hooks_are_covered_and_undone() {
        let interfaces = vec!["wan0".to_owned(), "wan1".to_owned()];
        let settings = Settings { mode: Mode::Resequence, interfaces, ..Settings::default() };
        let plan = plan(&settings);
        let lines = |steps: &[Step]| steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let (steps, undo) = (lines(&plan.steps), lines(&plan.undo));
        for program in PROGRAMS {
            let queue = "-A REKNIT_SHIELD -j NFQUEUE --queue-balance 29290:29291 --queue-bypass";
            assert!(steps.contains(&format!("{program} -w -t mangle {queue}")), "{steps}");
            for rule in ["FORWARD -i wan0", "INPUT -i wan0", "FORWARD -i wan1", "INPUT -i wan1"] {
                for (text, flag) in [(&steps, "-I"), (&undo, "-D")] {
                    let line = format!("{program} -w -t mangle {flag} {rule} -p tcp -j REKNIT_SHIELD");
                    assert!(text.contains(&line), "{line}: {text}");
                }
            }
        }
        assert!(super::plan(&Settings { mode: Mode::Observe, ..settings.clone() }).steps.is_empty());
        let equalise = Settings { mode: Mode::Equalise { difference: None }, ..settings };
        let text = lines(&super::plan(&equalise).steps);
        assert!(text.contains("-j NFQUEUE --queue-num 29290 --queue-bypass"), "{text}");
        assert!(text.contains("-I FORWARD -i wan1 -j REKNIT_SHIELD"), "{text}");
    }
}
