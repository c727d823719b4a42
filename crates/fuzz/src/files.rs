//! Files that users write: paths, variants and scenarios. An error is one line; what is accepted works.

use std::fmt::Display;
use std::sync::Arc;

use reknit_config::KeyError;
use reknit_path::{Direction, Profile, Train};
use reknit_sim::{PathSource, Plan};
use reknit_units::{Bytes, Duration};
use reknit_variants::algorithms::LossDetector;
use reknit_variants::{Custom, requirements};

use crate::engine;

/// The packets that go through a path.
const PACKETS: u32 = 50;
/// The most flows of a scenario that are set up.
const MAX_FLOWS: u32 = 1000;

/// The value, if there is one. An error has to be one line that says something.
fn one_line<T, E: Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.trim().is_empty() && !text.contains('\n'), "{text:?}");
            None
        }
    }
}

pub(crate) fn paths(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(profile) = one_line(Profile::parse("path.toml", &text)) {
        send_through(&profile);
    }
}

fn send_through(profile: &Profile) {
    for direction in [Direction::Forward, Direction::Reverse] {
        let train = Train { packets: PACKETS, gap: Duration::from_millis(1), size: Bytes(1500) };
        let result = train.through(profile, direction, 1);
        assert!(result.lost() <= PACKETS);
    }
    let _ = (profile.in_order(), profile.loses_packets());
}

pub(crate) fn variants(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(custom) = one_line(Custom::parse("variant.toml", &text)) else { return };
    if !custom.base.is_simulated_only() && !matches!(custom.composition.loss_detector, LossDetector::Oracle(_)) {
        engine::transfer(&custom.composition);
    }
    let _ = requirements::possible_fallbacks(&custom.composition);
}

pub(crate) fn scenarios(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(plan) = one_line(Plan::parse("scenario.toml", &text)) else { return };
    for (place, table) in &plan.own_variants {
        one_line(Custom::from_table(place, table.clone()));
    }
    let reads_file = matches!(&plan.path, Some(PathSource::Named(name)) if reknit_path::is_file_name(name));
    if reads_file || plan.path.is_none() {
        return;
    }
    let Some(profile) = one_line(plan.profile()) else { return };
    let known = |name: &str| {
        let variant = reknit_variants::find(name);
        let variant = variant.map_err(|error| KeyError::new("", error.to_string()))?;
        Ok(Arc::new((variant.compose)()))
    };
    let Some(setup) = one_line(plan.flow_setup(&profile, known)) else { return };
    if plan.groups.iter().map(|group| group.count).sum::<u32>() <= MAX_FLOWS {
        setup.flows(&Arc::default(), 1);
    }
}
