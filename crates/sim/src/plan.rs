//! A plan: groups of flows on a path, without the compared variant and the seed.

use std::path::Path;
use std::sync::Arc;

use reknit_config::{InputError, KeyError, Location};
use reknit_path::{Phases, Profile, StreamId, Variate};
use reknit_tcp::Config;
use reknit_units::{Duration, Instant, Share};
use reknit_variants::Composition;
use toml::Table;

use crate::liar::Misbehavior;
use crate::scenario::{FlowSpec, read_tcp};
use crate::workload::Workload;

/// The number of the random stream after those of the path's stages and of the clients.
const STREAMS: u32 = (1 << 17) + 1;

/// What to simulate, for one or several variants and seeds. Fields that are none may be set elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The file of the plan, for errors.
    pub location: String,
    /// A description in one sentence.
    pub description: String,
    /// The path.
    pub path: Option<PathSource>,
    /// Values of the path to change, as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Further values, given as an argument; they override `set`.
    pub set_by_argument: Vec<String>,
    /// Each data packet is lost with this probability.
    pub loss: Option<Share>,
    /// Removes all reordering from the path.
    pub in_order: bool,
    /// Length of each run.
    pub duration: Option<Duration>,
    /// Time at the beginning of each run that is left out of the results.
    pub warm_up: Duration,
    /// Runs of each variant.
    pub seeds: Option<u32>,
    /// Whether each seed draws the starting points of everything periodic.
    pub phases: Phases,
    /// Variants to compare.
    pub variants: Vec<String>,
    /// Variants that the plan itself defines: the location and table of each (`docs/reference/variants.md`).
    pub own_variants: Vec<(String, Table)>,
    /// The flows that share the path.
    pub groups: Vec<Group>,
}

/// Where the path comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum PathSource {
    /// A built-in path or a file, relative to the plan's file.
    Named(String),
    /// A table in the plan itself.
    Inline(Table),
    /// The same as `Named`, but given as an argument, and relative to the current directory.
    Given(String),
    /// The same as `Inline`, but given as an argument.
    GivenInline(Table),
}

/// A set of flows that open together.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The variant at both ends; none for the one that is compared.
    pub variant: Option<String>,
    /// The number of flows.
    pub count: u32,
    /// When the first one opens; each flow draws its own.
    pub start: Variate,
    /// Time between the opening of one flow and the next.
    pub interval: Duration,
    /// TCP options of both ends, in addition to those of the path.
    pub tcp: Table,
    /// What their receivers lie about, if they do.
    pub lie: Option<Misbehavior>,
    /// What the flows transfer.
    pub workloads: Vec<WorkloadShare>,
}

/// The flows of a group that have the same workload.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadShare {
    /// The name for results.
    pub name: String,
    /// How many of the group's flows, relative to the other workloads.
    pub share: Share,
    /// What they transfer.
    pub workload: Workload,
}

impl Group {
    /// Bulk transfers with the compared variant, opened 100 ms apart.
    pub fn bulk(count: u32) -> Group {
        Group {
            variant: None,
            count,
            start: Variate::Constant(Duration::ZERO),
            interval: Duration::from_millis(100),
            tcp: Table::new(),
            lie: None,
            workloads: vec![WorkloadShare { name: "flows".to_owned(), share: Share::ONE, workload: Workload::Bulk }],
        }
    }
}

impl Plan {
    /// Bulk transfers with the compared variant, opened 100 ms apart.
    pub fn bulk(flows: u32) -> Plan {
        Plan {
            location: String::new(),
            description: String::new(),
            path: None,
            set: Vec::new(),
            set_by_argument: Vec::new(),
            loss: None,
            in_order: false,
            duration: None,
            warm_up: Duration::ZERO,
            seeds: None,
            phases: Phases::Drawn,
            variants: Vec::new(),
            own_variants: Vec::new(),
            groups: vec![Group::bulk(flows)],
        }
    }

    /// The plan's path, with the plan's changes.
    ///
    /// # Errors
    /// Names the file and the key, or the argument.
    pub fn profile(&self) -> Result<Profile, InputError> {
        let mut table = self.path_table()?;
        for assignment in &self.set {
            let key = || format!("set.{:?}", assignment.split('=').next().unwrap_or_default());
            let refuse = |error: KeyError| KeyError::new(key(), error.to_string()).at(&self.location);
            reknit_path::set(&mut table, assignment).map_err(refuse)?;
        }
        let mut profile = match &self.path {
            None => return Err(self.no_path()),
            Some(PathSource::Given(name)) => Profile::from_table_with(name, table, &self.set_by_argument),
            Some(PathSource::GivenInline(_)) => Profile::from_table_with("path", table, &self.set_by_argument),
            Some(PathSource::Inline(_)) => {
                self.own(Profile::from_table_with(&self.location, table, &self.set_by_argument))
            }
            Some(PathSource::Named(name)) => {
                self.own(Profile::from_table_with(&self.beside(name), table, &self.set_by_argument))
            }
        }?;
        if let Some(loss) = self.loss {
            profile.set_loss(loss);
        }
        if self.in_order {
            profile = profile.in_order();
            profile.description = format!("{} (without reordering)", profile.description);
        }
        Ok(profile)
    }

    /// The path's own table, before the plan's changes.
    ///
    /// # Errors
    /// Names the file.
    pub fn path_table(&self) -> Result<Table, InputError> {
        match &self.path {
            None => Err(self.no_path()),
            Some(PathSource::GivenInline(table) | PathSource::Inline(table)) => Ok(table.clone()),
            Some(PathSource::Given(name)) => Profile::table(name),
            Some(PathSource::Named(name)) => self.own(Profile::table(&self.beside(name))),
        }
    }

    fn no_path(&self) -> InputError {
        KeyError::new("path", "missing; name one here").at(&self.location).with_alternative("path")
    }

    /// The file with this name in the folder of the plan, if there is one.
    fn beside(&self, name: &str) -> String {
        let beside = Path::new(&self.location).with_file_name(name);
        let is_beside = reknit_path::builtin(name).is_none() && beside.is_file();
        if is_beside { beside.display().to_string() } else { name.to_owned() }
    }

    /// The path, with errors located in this plan's file unless they concern an argument.
    fn own<T>(&self, profile: Result<T, InputError>) -> Result<T, InputError> {
        profile.map_err(|error| match error.location {
            Location::Argument(..) => error,
            _ => error.inside(&self.location, "path"),
        })
    }

    /// Resolves the variants and TCP options of all flows on `profile`; `find` looks up the variants.
    ///
    /// # Errors
    /// Names the file and the key that is invalid.
    pub fn flow_setup(
        &self,
        profile: &Profile,
        find: impl Fn(&str) -> Result<Arc<Composition>, KeyError>,
    ) -> Result<FlowSetup, InputError> {
        let mut groups = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let refuse = |error: KeyError| error.inside(&format!("flows[{i}]")).at(&self.location);
            let variant = group.variant.as_deref().map(&find).transpose();
            let variant = variant.map_err(|error| refuse(error.inside("variant")))?;
            let tcp = if group.tcp.is_empty() {
                None
            } else {
                let mut table = profile.tcp.clone();
                table.extend(group.tcp.clone());
                Some(Arc::new(read_tcp(table).map_err(refuse)?))
            };
            groups.push(GroupSetup { group: group.clone(), variant, tcp });
        }
        Ok(FlowSetup { groups })
    }

    /// Every workload of every group, in the order of the group numbers of flows.
    pub fn workloads(&self) -> impl Iterator<Item = (&Group, &WorkloadShare)> {
        self.groups.iter().flat_map(|group| group.workloads.iter().map(move |share| (group, share)))
    }
}

/// The flows of a plan with their variants and options, except the variant that is compared.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    groups: Vec<GroupSetup>,
}

#[derive(Clone, Debug)]
struct GroupSetup {
    group: Group,
    variant: Option<Arc<Composition>>,
    tcp: Option<Arc<Config>>,
}

impl FlowSetup {
    /// The flows of the run with this seed that compares `compared`.
    pub fn flows(&self, compared: &Arc<Composition>, seed: u64) -> Vec<FlowSpec> {
        let mut flows: Vec<FlowSpec> = Vec::new();
        let mut first_group = 0;
        for GroupSetup { group, variant, tcp } in &self.groups {
            let variant = variant.as_ref().unwrap_or(compared);
            for (i, workload) in (0u64..).zip(deal(&group.workloads, group.count)) {
                let mut stream = StreamId { seed, stage: STREAMS, phases: Phases::Fixed }.stream(flows.len() as u32);
                flows.push(FlowSpec {
                    start: Instant::ZERO + group.start.draw(&mut stream) + group.interval * i,
                    workload: group.workloads[workload].workload,
                    tcp: tcp.clone(),
                    lie: group.lie,
                    group: first_group + workload as u32,
                    ..FlowSpec::bulk(variant.clone())
                });
            }
            first_group += group.workloads.len() as u32;
        }
        flows
    }
}

/// The workload of each of `n` flows: always the one that is furthest behind its share. So the numbers are always
/// proportional to within one, and consecutive flows have different workloads.
fn deal(workloads: &[WorkloadShare], n: u32) -> Vec<usize> {
    let whole: f64 = workloads.iter().map(|workload| workload.share.get()).sum();
    let mut dealt = vec![0.0; workloads.len()];
    let mut order = Vec::with_capacity(n as usize);
    for i in 1..=n {
        let behind = |w: usize| workloads[w].share.get() / whole * f64::from(i) - dealt[w];
        let furthest = (0..workloads.len()).rev().max_by(|a, b| behind(*a).total_cmp(&behind(*b))).unwrap_or(0);
        dealt[furthest] += 1.0;
        order.push(furthest);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(share: f64) -> WorkloadShare {
        WorkloadShare { name: String::new(), share: Share::new(share).unwrap(), workload: Workload::Bulk }
    }

    #[test]
    fn flows_are_dealt_in_proportion_and_mixed() {
        let order = deal(&[share(0.125), share(0.125), share(0.75)], 16);
        let count = |w: usize| order.iter().filter(|dealt| **dealt == w).count();
        assert_eq!([count(0), count(1), count(2)], [2, 2, 12]);
        assert_eq!(deal(&[share(0.5), share(0.5)], 5), [0, 1, 0, 1, 0]);
    }
}
