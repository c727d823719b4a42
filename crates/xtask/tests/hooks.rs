//! No hook or value of a seam is for one algorithm unless its documentation says which, and why.

use reknit_tcp::seams::Seam;
use reknit_variants::composition;
use xtask::hooks;

fn is_algorithm(seam: &str, name: &str) -> bool {
    let seams = Seam::ALL.into_iter().filter(|known| seam == "Plugin" || format!("{known:?}") == seam);
    seams.into_iter().any(|seam| composition::algorithm(seam, name).is_some())
}

#[test]
fn each_hook_has_several_users_or_names_the_only_one() {
    let hooks = hooks::read(&xtask::root()).unwrap();
    assert!(hooks.len() > 60, "{} hooks found", hooks.len());
    for hook in &hooks {
        let is_single = hook.users.len() <= 1;
        assert_eq!(hook.only.is_some(), is_single, "{}::{} has {} users", hook.seam, hook.name, hook.users.len());
        assert!(!hook.users.is_empty(), "{}::{}: nothing implements it", hook.seam, hook.name);
        if let Some((name, _)) = &hook.only {
            assert!(is_algorithm(&hook.seam, name), "{}::{}: `{name}` is no algorithm", hook.seam, hook.name);
        }
    }
}

#[test]
fn each_value_of_a_seam_names_its_users() {
    let mut fields = 0;
    for file in ["detection", "receiver", "response"] {
        let path = xtask::root().join(format!("crates/tcp/src/seams/{file}.rs"));
        let text = std::fs::read_to_string(path).unwrap();
        let (mut seam, mut comment) = (None, String::new());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("pub struct ") {
                seam = name.strip_suffix("Traits {");
            }
            let line = line.trim();
            if line.starts_with("///") {
                comment.push_str(line);
                continue;
            }
            let comment = std::mem::take(&mut comment);
            let (Some(seam), Some(field)) = (seam, line.strip_prefix("pub ")) else { continue };
            // Every header support has features.
            if field.ends_with(',') && field != "features: Features," {
                let is_named = comment.split('`').skip(1).step_by(2).any(|user| is_algorithm(seam, user));
                assert!(is_named, "{seam}Traits::{field} does not name the algorithms that use it");
                fields += 1;
            }
        }
    }
    assert!(fields > 15, "{fields} values found");
}
