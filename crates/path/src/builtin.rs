//! The built-in profiles: the files in `profiles/`.

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        /// Names of the built-in profiles.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The text of the built-in profile `name`.
        pub fn builtin(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../profiles/", $name, ".toml"))),)*
                _ => None,
            }
        }
    };
}

profiles![
    "clean",
    "lossy",
    "reordered-and-lossy",
    "bursty-loss",
    "corrupted",
    "scripted",
    "random-delay",
    "duplicates",
    "two-paths-50ms",
    "two-paths-200ms",
    "rr-tcp",
    "yang-50",
    "yang-200",
    "survey",
    "route-flap",
    "striping",
    "switch-planes",
    "route-cache",
    "forwarding-lull",
    "wireless-arq",
    "satellite-arq",
    "sudden-delays",
    "outages",
    "shared-slow-link",
    "diffserv",
    "manet",
    "wlan-chain",
    "ack-reordering",
    "displaced",
    "reordering-in-series",
    "drop-bursts",
    "late-duplicates",
    "quinn-sydchi",
    "quicgo-home",
    "ts-upload",
    "gvisor-30ms",
    "quiche-jit",
    "nginx-reord",
    "mqvpn-baseline",
    "mqvpn-rtt-40",
    "mqvpn-jit-5",
    "mqvpn-jit-20",
    "mqvpn-loss",
    "fiber-lte",
    "srt-1ms",
    "zt-2wan",
    "gcp-vm",
    "mptcp-2x",
    "leo",
    "sdwan-50ms",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn the_list_has_all_files_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        assert_eq!(names, files);
    }

    #[test]
    fn every_profile_can_be_read_and_has_a_description() {
        for name in NAMES {
            let profile = Profile::load(name, &[]).unwrap();
            assert!(!profile.description.is_empty() && !profile.source.is_empty(), "{name}");
            assert!(!profile.forward.is_empty() && !profile.reverse.is_empty(), "{name}");
        }
    }
}
