//! Boot scripts of our own: what each node boots is kept in this service's database, and the gateway hands out
//! scripts made of it.

use std::sync::Arc;

use ::upstream::machine::{Machine, MachineFile};
use anyhow::Context as _;
use chassis::{
    Fault, Settings,
    lease::Custody,
    ledger::{Draft, Ledger},
};
use domain::{
    boot::{
        component::artifacts::BootArtifacts,
        configuration::boot_script::{self, NoScript, Recipient, Sources},
    },
    core::id::ComponentId,
};
use uuid::Uuid;

use super::{Failure, FailureKind};
use crate::{
    configure::another_has_them,
    store::{BootScript, BootScripts},
};

/// What nodes boot, and how they are known when they ask.
#[derive(Clone)]
pub(crate) struct BuiltIn {
    scripts: Ledger<BootScripts>,
    /// Which nodes are this replica's to prepare.
    custody: Custody,
    /// By what nodes are called besides their ids; none: they are known by those only.
    machine: Option<Arc<MachineFile>>,
    artifact_url: Arc<str>,
    script_url: Arc<str>,
}

/// How a node says who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    Id(String),
    Mac(String),
    Nid(u32),
}

impl BuiltIn {
    /// Scripts that are kept in `scripts`.
    ///
    /// # Errors
    /// When a machine file is set and cannot be read.
    pub(crate) fn new(
        settings: &Settings,
        scripts: Ledger<BootScripts>,
        custody: Custody,
    ) -> anyhow::Result<Self> {
        let path = &settings.machine_file;
        let listed = (!path.as_os_str().is_empty()).then(|| MachineFile::open(path)).transpose();
        let machine = listed.context("machine_file")?.map(Arc::new);
        let urls = &settings.boot_parameters.built_in;
        let script_url = if urls.script_url.is_empty() { &settings.gateway.url } else { &urls.script_url };
        Ok(Self {
            scripts,
            custody,
            machine,
            artifact_url: urls.artifact_url.as_str().into(),
            script_url: script_url.as_str().into(),
        })
    }

    /// Keeps what `hosts` boot under a token that was never used before. What no script can be made of is refused
    /// here, where people see it, and not when a node asks.
    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
    ) -> Result<Arc<str>, Failure> {
        let token: Arc<str> = Uuid::new_v4().to_string().into();
        for host in hosts {
            self.script(host.as_str(), None, &token, artifacts).map_err(refusal)?;
        }
        let scripts: Vec<_> = hosts
            .iter()
            .map(|host| BootScript {
                id: host.clone(),
                token: Arc::clone(&token),
                artifacts: BootArtifacts { timestamp: None, ..artifacts.clone() },
                revision: 0,
            })
            .collect();
        let put = move |draft: &mut Draft<'_, BootScript>| {
            scripts.into_iter().for_each(|script| draft.put(script));
            Ok(())
        };
        let fence = self.custody.fence(hosts.iter().map(ComponentId::as_str)).ok_or_else(another_has_them)?;
        self.scripts.write_fenced(fence, put).await.map_err(|fault| not_kept(&fault))?;
        Ok(token)
    }

    /// The script for whoever asks; none for a node that is not known or that nothing was prepared for.
    ///
    /// # Errors
    /// Says why no script can be made of what is kept.
    pub(crate) fn script_for(&self, caller: Caller) -> Result<Option<String>, NoScript> {
        let machine = self.machine.as_ref().map(|file| file.current());
        let id = match caller {
            Caller::Id(id) => Some(id),
            Caller::Mac(mac) => {
                machine.as_ref().and_then(|machine| Some(machine.node_by_mac(&mac)?.id.clone()))
            }
            Caller::Nid(nid) => machine.as_ref().and_then(|machine| with_nid(machine, nid)),
        };
        let Some(kept) = id.and_then(|id| self.scripts.view().get(&id)) else { return Ok(None) };
        let nid = machine.and_then(|machine| Some(machine.node(kept.id.as_str())?.nid));
        let nid = nid.filter(|nid| *nid != 0);
        self.script(kept.id.as_str(), nid, &kept.token, &kept.artifacts).map(Some)
    }

    fn script(
        &self,
        id: &str,
        nid: Option<u32>,
        token: &str,
        artifacts: &BootArtifacts,
    ) -> Result<String, NoScript> {
        let sources = Sources { artifacts: &self.artifact_url, scripts: &self.script_url };
        boot_script::script(artifacts, &Recipient { id, nid, token }, &sources)
    }
}

/// Id of the node with this number.
fn with_nid(machine: &Machine, nid: u32) -> Option<String> {
    let node = machine.nodes.iter().find(|node| node.nid == nid && nid != 0)?;
    Some(node.id.clone())
}

fn refusal(reason: NoScript) -> Failure {
    let kind = if reason.is_refusal() { FailureKind::Refused } else { FailureKind::Denied };
    Failure { kind, status: None, text: format!("the built-in boot scripts: {reason}") }
}

fn not_kept(fault: &Fault) -> Failure {
    let text = format!("the built-in boot scripts: {fault}");
    Failure { kind: FailureKind::Unreachable, status: None, text }
}
