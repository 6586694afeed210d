//! Differences between the present boot of nodes and the one that a session wants, each once for all nodes that share it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::boot::component::{Component, artifacts::BootArtifacts, report::Assignment};

/// Member of a state that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateMember {
    /// Path of the kernel.
    Kernel,
    /// Kernel command line.
    KernelParameters,
    /// Path of the initial RAM disk.
    Initrd,
    /// Name of the configuration.
    Configuration,
}

impl StateMember {
    const ALL: [Self; 4] = [Self::Kernel, Self::KernelParameters, Self::Initrd, Self::Configuration];

    /// Returns the word for the member.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::KernelParameters => "kernel_parameters",
            Self::Initrd => "initrd",
            Self::Configuration => "configuration",
        }
    }
}

/// Difference in one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChange {
    /// Member that differs.
    pub member: StateMember,
    /// Text before; empty: none, or not reported.
    pub before: Arc<str>,
    /// Text that the session wants; empty: none.
    pub after: Arc<str>,
    /// Words of a command line that go, in their order.
    pub removed: Vec<String>,
    /// Words of a command line that come, in their order.
    pub added: Vec<String>,
}

/// Difference that nodes of a boot set share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// Boot set with the target state.
    pub boot_set: Arc<str>,
    /// Members that differ; never empty.
    pub members: Vec<MemberChange>,
    /// Number of nodes that share the difference.
    pub nodes: usize,
}

/// Texts of a state in the order of [`StateMember::ALL`]. Missing texts count as empty.
type StateTexts = [Arc<str>; 4];

/// Differences by boot set and state before.
#[derive(Default)]
pub(super) struct ChangeTable {
    numbers: HashMap<(Arc<str>, StateTexts), Option<usize>>,
    changes: Vec<StateChange>,
}

impl ChangeTable {
    /// Returns the number of the difference between the boot of the component and that of the assignment; `None`: there
    /// is none.
    pub(super) fn number(
        &mut self,
        boot_set: &Arc<str>,
        component: &Component,
        wanted: &Assignment,
    ) -> Option<usize> {
        let before = texts(
            component.actual_artifacts(),
            component.wish.desired_state.as_ref().and_then(|desired| desired.configuration.clone()),
        );
        let changes = &mut self.changes;
        let number = *self.numbers.entry((Arc::clone(boot_set), before)).or_insert_with_key(|(_, before)| {
            let after = texts(Some(&wanted.boot_artifacts), Some(Arc::clone(&wanted.configuration)));
            let members = differences(before, &after);
            if members.is_empty() {
                return None;
            }
            changes.push(StateChange { boot_set: Arc::clone(boot_set), members, nodes: 0 });
            Some(changes.len() - 1)
        });
        if let Some(number) = number {
            self.changes[number].nodes += 1;
        }
        number
    }

    pub(super) fn finish(self) -> Vec<StateChange> {
        self.changes
    }
}

fn texts(artifacts: Option<&BootArtifacts>, configuration: Option<Arc<str>>) -> StateTexts {
    let text = |of: fn(&BootArtifacts) -> &Option<Arc<str>>| artifacts.and_then(|one| of(one).clone());
    [
        text(|one| &one.kernel).unwrap_or_default(),
        text(|one| &one.kernel_parameters).unwrap_or_default(),
        text(|one| &one.initrd).unwrap_or_default(),
        configuration.unwrap_or_default(),
    ]
}

fn differences(before: &StateTexts, after: &StateTexts) -> Vec<MemberChange> {
    let pairs = StateMember::ALL.into_iter().zip(before.iter().zip(after));
    let different = pairs.filter(|(_, (before, after))| before != after);
    different.map(|(member, (before, after))| change(member, before, after)).collect()
}

fn change(member: StateMember, before: &Arc<str>, after: &Arc<str>) -> MemberChange {
    let (removed, added) = match member {
        StateMember::KernelParameters => (words_without(before, after), words_without(after, before)),
        StateMember::Kernel | StateMember::Initrd | StateMember::Configuration => (Vec::new(), Vec::new()),
    };
    MemberChange { member, before: Arc::clone(before), after: Arc::clone(after), removed, added }
}

/// Returns the words of a command line that another one does not have.
fn words_without(line: &str, other: &str) -> Vec<String> {
    let other: BTreeSet<_> = other.split_whitespace().collect();
    line.split_whitespace().filter(|word| !other.contains(word)).map(str::to_owned).collect()
}
