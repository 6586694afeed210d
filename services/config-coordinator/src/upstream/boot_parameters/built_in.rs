//! Our own boot scripts: this service's database keeps the boot data of each node, and the gateway serves scripts made
//! from them.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{
    Channel, Context, Fault, Settings,
    lease::Fence,
    process::clock,
    store::ledger::{Draft, Ledger},
};
use domain::{
    boot::{
        component::artifacts::BootArtifacts,
        configuration::boot_script::{self, NoScript, Recipient, Sources},
        explanation::ScriptRequests,
    },
    core::id::ComponentId,
};
use uuid::Uuid;

use super::{Failure, FailureKind, names::NodeNames};
use crate::store::{BootScript, BootScriptTable};

/// Boot data of nodes, and the names by which nodes identify themselves.
#[derive(Clone)]
pub(crate) struct BuiltInDriver {
    scripts: Ledger<BootScriptTable>,
    /// Names of nodes besides their ids.
    names: NodeNames,
    artifact_url: Arc<str>,
    script_url: Arc<str>,
}

/// Identity of a node in its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeIdentity {
    Id(String),
    Mac(String),
    Nid(u32),
}

impl BuiltInDriver {
    /// Creates the driver of the scripts in `scripts`.
    ///
    /// # Errors
    /// When a machine file is set and cannot be read.
    pub(crate) fn new(settings: &Settings, scripts: Ledger<BootScriptTable>) -> anyhow::Result<Self> {
        let urls = &settings.boot_parameters.built_in;
        let script_url = if urls.script_url.is_empty() { &settings.gateway.url } else { &urls.script_url };
        Ok(Self {
            scripts,
            names: NodeNames::new(settings)?,
            artifact_url: urls.artifact_url.as_str().into(),
            script_url: script_url.as_str().into(),
        })
    }

    /// Begins to follow the records of the registry that name nodes.
    pub(crate) fn follow_registry(&self, context: &Context, registry: Channel) {
        self.names.follow_registry(context, registry);
    }

    /// Stores the boot data of `hosts` under a new token. Data of which no script can be made are refused here, where
    /// operators see it, and not when a node asks.
    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
        fence: Fence,
    ) -> Result<Arc<str>, Failure> {
        let token: Arc<str> = Uuid::new_v4().to_string().into();
        for host in hosts {
            self.script(host.as_str(), None, &token, artifacts).map_err(refusal)?;
        }
        let prepared_at = clock::now();
        let scripts: Vec<_> = hosts
            .iter()
            .map(|host| BootScript {
                id: host.clone(),
                token: Arc::clone(&token),
                artifacts: BootArtifacts { timestamp: None, ..artifacts.clone() },
                prepared_at: Some(prepared_at),
                requests: None,
                revision: 0,
            })
            .collect();
        let put = move |draft: &mut Draft<'_, BootScript>| {
            scripts.into_iter().for_each(|script| draft.put(script));
            Ok(())
        };
        self.scripts.write_fenced(fence, put).await.map_err(|fault| not_kept(&fault))?;
        Ok(token)
    }

    /// Returns the script for a node, with its id; `None` for a node that is unknown or without a preparation.
    ///
    /// # Errors
    /// When no script can be made of the stored data; the error has the reason.
    pub(crate) fn script_for(
        &self,
        identity: NodeIdentity,
    ) -> Result<Option<(ComponentId, String)>, NoScript> {
        let id = match identity {
            NodeIdentity::Id(id) => Some(id),
            NodeIdentity::Mac(mac) => self.names.with_mac(&mac),
            NodeIdentity::Nid(nid) => self.names.with_nid(nid),
        };
        let Some(kept) = id.and_then(|id| self.scripts.view().get(&id)) else { return Ok(None) };
        let nid = self.names.nid(kept.id.as_str());
        let script = self.script(kept.id.as_str(), nid, &kept.token, &kept.artifacts)?;
        Ok(Some((kept.id.clone(), script)))
    }

    /// Returns the boot data of a node with the requests for its script; `None`: it was never prepared.
    pub(crate) fn kept(&self, id: &str) -> Option<Arc<BootScript>> {
        self.scripts.view().get(id)
    }

    /// Adds requests for scripts to the records of their nodes. A node that was prepared since is left out: its requests
    /// may have been for the script before.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub(crate) async fn note_requests(
        &self,
        noted: BTreeMap<ComponentId, ScriptRequests>,
    ) -> Result<(), Fault> {
        let add = move |draft: &mut Draft<'_, BootScript>| {
            for (id, requests) in noted {
                let Some(kept) = draft.get(id.as_str()) else { continue };
                if kept.prepared_at.is_some_and(|prepared| requests.first_at >= prepared) {
                    let requests = Some(joined(kept.requests, requests));
                    draft.put(BootScript { requests, ..Arc::unwrap_or_clone(kept) });
                }
            }
            Ok(())
        };
        self.scripts.write(add).await.map(drop)
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

fn joined(earlier: Option<ScriptRequests>, later: ScriptRequests) -> ScriptRequests {
    let Some(earlier) = earlier else { return later };
    let count = earlier.count.saturating_add(later.count);
    ScriptRequests { first_at: earlier.first_at, last_at: later.last_at, count }
}

fn refusal(reason: NoScript) -> Failure {
    let kind = if reason.is_refusal() { FailureKind::Refused } else { FailureKind::Denied };
    Failure { kind, status: None, text: format!("the built-in boot scripts: {reason}") }
}

fn not_kept(fault: &Fault) -> Failure {
    let text = format!("the built-in boot scripts: {fault}");
    Failure { kind: FailureKind::Unreachable, status: None, text }
}
