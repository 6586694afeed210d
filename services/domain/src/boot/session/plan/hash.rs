//! Hash of a plan, and the changes that it shows.
//!
//! No plan is stored, so the hash itself has to tell what has changed: it has a part for each cause, and the number of
//! nodes.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    str::FromStr,
    sync::Arc,
};

use sha2::{Digest, Sha256};

use crate::{
    boot::{
        bos::options::Options,
        session::Session,
        template::{BootSet, Operation, SessionTemplate, target::TargetState},
    },
    core::id::ComponentId,
};

/// Beginning of the text of a hash. Another version of the rules has another one.
const VERSION: &str = "p1";

/// Bytes of a part. Parts are compared with the ones of a single plan, so an accidental match of 48 bits is out of the
/// question, and the whole text still fits a command line.
const BYTES: usize = 6;

type PartDigest = [u8; BYTES];

/// Hash over the facts that decide about a session: request, template, options, target states, and nodes with their
/// boot sets. Equal facts have equal hashes, in whichever order they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlanHash {
    nodes: usize,
    /// Digests in the order of [`HashPart`].
    parts: [PartDigest; 5],
}

/// Text that is no hash of a plan of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the hash of a plan of this version")]
pub struct MalformedHash;

/// Part of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HashPart {
    Request,
    Template,
    Options,
    Targets,
    Nodes,
}

/// Facts of a hash that are the same for all nodes.
#[derive(Debug, Clone, Copy)]
pub struct PlanBasis<'a> {
    /// Session of the plan.
    pub session: &'a Session,
    /// Template of the session.
    pub template: &'a SessionTemplate,
    /// Options in force.
    pub options: &'a Options,
}

impl PlanBasis<'_> {
    /// Returns the hash. `targets`: target states by boot set. `nodes`: nodes that the session takes, each with its boot
    /// set.
    pub fn hash<'n>(
        self,
        targets: impl Iterator<Item = (&'n String, &'n TargetState)>,
        nodes: impl Iterator<Item = (&'n ComponentId, &'n str)>,
    ) -> PlanHash {
        let nodes: BTreeMap<_, _> = nodes.collect();
        let targets: BTreeMap<_, _> = targets.collect();
        let operation = self.session.operation;
        let parts = [
            digest(|text| request(self.session, text)),
            digest(|text| template(self.template, text)),
            digest(|text| options(operation, self.options, text)),
            digest(|text| targets.iter().for_each(|(name, one)| target(name, one, text))),
            digest(|text| nodes.iter().for_each(|(id, boot_set)| node(id, boot_set, text))),
        ];
        PlanHash { nodes: nodes.len(), parts }
    }
}

/// Difference between the facts of a plan and those of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanChange {
    planned: PlanHash,
    now: PlanHash,
}

impl PlanHash {
    /// Returns the change since the plan of this hash; `None`: the plan still holds.
    pub fn change(self, now: Self) -> Option<PlanChange> {
        (self != now).then_some(PlanChange { planned: self, now })
    }
}

impl PlanChange {
    fn differs(self, part: HashPart) -> bool {
        self.planned.parts[part as usize] != self.now.parts[part as usize]
    }
}

/// The change in words, for a sentence about a plan that does not hold any more.
impl Display for PlanChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differs(HashPart::Request) {
            return f.write_str("it is of another operation, template, tenant or stage");
        }
        let mut changes = Vec::new();
        if self.differs(HashPart::Template) {
            changes.push("the template has changed".to_owned());
        }
        if self.differs(HashPart::Options) {
            changes.push("option component_actual_state_ttl has changed".to_owned());
        }
        // Other target states are explained by a change of the template or of the options.
        if changes.is_empty() && self.differs(HashPart::Targets) {
            changes.push("the images of the template have changed".to_owned());
        }
        let (planned, now) = (self.planned.nodes, self.now.nodes);
        if planned != now {
            changes.push(format!("it took {}, and {now} would be taken now", count(planned)));
        } else if self.differs(HashPart::Nodes) {
            changes.push(format!(
                "it took {}, and others, or by other boot sets, would be taken now",
                count(now)
            ));
        }
        f.write_str(&changes.join("; "))
    }
}

fn count(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

impl Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-{}", self.nodes)?;
        for part in &self.parts {
            f.write_str("-")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl FromStr for PlanHash {
    type Err = MalformedHash;

    fn from_str(text: &str) -> Result<Self, MalformedHash> {
        let mut words = text.split('-');
        if words.next() != Some(VERSION) {
            return Err(MalformedHash);
        }
        let nodes = words.next().and_then(|word| word.parse().ok()).ok_or(MalformedHash)?;
        let mut parts = [PartDigest::default(); 5];
        for part in &mut parts {
            *part = words.next().and_then(part_of).ok_or(MalformedHash)?;
        }
        let hash = Self { nodes, parts };
        // Only one spelling of a hash counts.
        if words.next().is_none() && hash.to_string() == text { Ok(hash) } else { Err(MalformedHash) }
    }
}

fn part_of(word: &str) -> Option<PartDigest> {
    let value = u64::from_str_radix(word, 16).ok().filter(|_| word.len() == 2 * BYTES)?;
    value.to_be_bytes().last_chunk().copied()
}

/// Text whose parts cannot run into each other: each has its length in front.
struct HashedText(Sha256);

impl HashedText {
    fn add(&mut self, text: &str) -> &mut Self {
        self.0.update(text.len().to_le_bytes());
        self.0.update(text);
        self
    }

    fn flag(&mut self, flag: bool) -> &mut Self {
        self.0.update([u8::from(flag)]);
        self
    }

    fn optional(&mut self, text: Option<&str>) -> &mut Self {
        self.flag(text.is_some()).add(text.unwrap_or_default())
    }

    /// Adds a list whose order does not matter.
    fn set(&mut self, texts: Option<&Vec<String>>) -> &mut Self {
        let mut sorted: Vec<_> = texts.into_iter().flatten().collect();
        sorted.sort_unstable();
        sorted.dedup();
        self.0.update(sorted.len().to_le_bytes());
        for text in sorted {
            self.add(text);
        }
        self
    }
}

fn digest(write: impl FnOnce(&mut HashedText)) -> PartDigest {
    let mut text = HashedText(Sha256::new());
    write(&mut text);
    let mut part = PartDigest::default();
    part.iter_mut().zip(text.0.finalize()).for_each(|(to, from)| *to = from);
    part
}

/// Adds the request, but not the limit: nodes decide, however they were chosen.
fn request(session: &Session, text: &mut HashedText) {
    text.add(session.operation.word()).add(&session.template_name).add(session.tenant.as_str());
    text.flag(session.stage);
}

/// Adds the content of the template but for its description, which decides nothing.
fn template(template: &SessionTemplate, text: &mut HashedText) {
    text.flag(template.enable_cfs != Some(false));
    text.optional(template.cfs.as_ref().and_then(|cfs| cfs.configuration.as_deref()));
    for (name, boot_set) in &template.boot_sets {
        text.add(name);
        of_boot_set(boot_set, text);
    }
}

fn of_boot_set(boot_set: &BootSet, text: &mut HashedText) {
    text.add(&boot_set.path).add(&boot_set.kind).optional(boot_set.etag.as_deref());
    text.optional(boot_set.kernel_parameters.as_deref());
    for list in [&boot_set.node_list, &boot_set.node_roles_groups, &boot_set.node_groups] {
        text.set(list.as_ref());
    }
    text.add(boot_set.arch.unwrap_or_default().word());
    text.optional(boot_set.rootfs_provider.as_deref());
    text.optional(boot_set.rootfs_provider_passthrough.as_deref());
    text.optional(boot_set.cfs.as_ref().and_then(|cfs| cfs.configuration.as_deref()));
}

/// Adds the options that decide about the boots of nodes.
fn options(operation: Operation, options: &Options, text: &mut HashedText) {
    match operation {
        Operation::Boot | Operation::Reboot => {
            text.add(&options.actual_state_ttl_parameter());
        }
        Operation::Shutdown => {}
    }
}

fn target(boot_set: &str, target: &TargetState, text: &mut HashedText) {
    let artifacts = &target.boot_artifacts;
    text.add(boot_set).add(&target.configuration);
    for artifact in [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd] {
        text.optional(artifact.as_ref().map(Arc::as_ref));
    }
    text.flag(target.clear_actual_state).flag(target.clear_bss_token);
}

fn node(id: &ComponentId, boot_set: &str, text: &mut HashedText) {
    text.add(id.as_str()).add(boot_set);
}
