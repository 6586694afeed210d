//! Applying what a session has staged (BOS reference 5.14).

use std::sync::Arc;

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Action, Component, DesiredState, SessionReference, StagedState,
            artifacts::BootArtifacts,
            write::{KnownToken, apply_hooks, begin_wish, cleared_actual_state},
        },
        session::Session,
        template::Operation,
    },
    core::{id::Tenant, time::Timestamp, trouble::TroubleKind},
};

/// What a staged session is to whoever wants it applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// One of their own.
    Own {
        /// Its unique id.
        id: Arc<str>,
        /// What it does.
        operation: Operation,
    },
    /// Somebody else's.
    Foreign,
    /// There is no such session any more.
    Gone,
}

/// What the session that `reference` names is to `tenant`, among all `sessions` there are.
///
/// An id is exact. A name that was written by hand means the session of the tenant that it was written for, or the
/// asker's own if that is not known. What somebody else staged stays theirs when their session is gone: who asks next
/// takes no node from its owner by that.
pub fn standing<'a>(
    reference: &SessionReference,
    tenant: &Tenant,
    sessions: impl IntoIterator<Item = &'a Session>,
) -> Standing {
    let wanted = reference.tenant.as_ref().unwrap_or(tenant);
    let mut foreign = wanted != tenant;
    for session in sessions.into_iter().filter(|session| *session.name == *reference.name) {
        let meant = if reference.id.is_empty() {
            reference.tenant.is_none() || session.tenant == *wanted
        } else {
            *session.id == *reference.id
        };
        if meant && session.tenant == *tenant {
            return Standing::Own { id: session.id.as_str().into(), operation: session.operation };
        }
        foreign |= meant;
    }
    if foreign { Standing::Foreign } else { Standing::Gone }
}

/// On whose behalf and how staged states are applied.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Who wants it.
    pub tenant: Tenant,
    /// Whether what is applied is staged no longer; the option of that name.
    pub clear_stage: bool,
    /// How closely to follow BOS.
    pub compatibility: Compatibility,
}

/// What became of applying the staged state of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is what the component should run from now on.
    Succeeded,
    /// It cannot be, and the component's error says why, unless it is somebody else's session that staged it.
    Failed,
    /// There is nothing that could be applied.
    Ignored,
}

/// Why a staged state cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Obstacle {
    #[error("the staged session no longer exists")]
    Gone,
    #[error("the staged session shuts down, but boot artifacts are staged")]
    BootsForShutdown,
    #[error("the staged boot artifacts are incomplete, {missing} missing")]
    Incomplete { operation: &'static str, missing: String },
}

impl Obstacle {
    /// The obstacle in the words of BOS.
    fn in_bos(&self) -> String {
        match self {
            Self::Gone => "Staged session no longer exists".to_owned(),
            Self::BootsForShutdown => {
                "Staged operation is shutdown but boot artifacts have been specified".to_owned()
            }
            Self::Incomplete { operation, .. } => {
                format!("Staged operation is {operation} but some boot artifacts have not been specified")
            }
        }
    }
}

/// Applies the staged state of `component`, whose session `standing` describes, and gives the record that it
/// becomes; `None`: the record stays. `tokens` gives the artifacts that a token stands for.
///
/// Applying is an assignment: the staged session owns the component from now on and a generation begins, also when
/// it fails. A record without a last action fails and stays as it is, as in BOS.
///
/// What somebody else's session staged fails too. It is staged no longer if that is wanted, as in BOS, so that the
/// session does not wait for the component; all else of the record stays. BOS takes such a session for one that is
/// gone, and so disables the node.
pub fn apply(
    component: &Component,
    standing: &Standing,
    terms: &Terms,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> (Verdict, Option<Component>) {
    let (Some(staged), Some(reference)) = (&component.staged_state, component.staged_by()) else {
        return (Verdict::Ignored, None);
    };
    let Some(last_action) = &component.last_action else { return (Verdict::Failed, None) };
    if *standing == Standing::Foreign && !terms.compatibility.strict_bos {
        return (Verdict::Failed, terms.clear_stage.then(|| unstaged(component, now)));
    }
    let judged = judge(standing, staged.boot_artifacts.as_deref());
    let mut record = component.clone();
    match &judged {
        Ok(operation) => {
            desire(&mut record, staged, *operation);
            if !terms.compatibility.strict_bos {
                record.error = Some(Arc::default());
                record.error_kind = TroubleKind::default();
            }
        }
        Err(obstacle) => {
            record.enabled = Some(false);
            let (name, tenant) = (&reference.name, terms.tenant.as_str());
            let obstacle = match terms.compatibility.strict_bos {
                true => obstacle.in_bos(),
                false => obstacle.to_string(),
            };
            record.error = Some(format!("{obstacle} (session: {name}, tenant: {tenant})").into());
            record.error_kind = TroubleKind::Failed;
        }
    }
    let mut last_action = last_action.clone();
    last_action.action = Some(Action::ApplyStaged);
    record.last_action = Some(last_action);
    record.staged_state = Some(left(staged, terms.clear_stage).into());
    own(&mut record, reference, standing, &terms.tenant);
    apply_hooks(&mut record, tokens, now);
    begin_wish(&mut record);
    (if judged.is_ok() { Verdict::Succeeded } else { Verdict::Failed }, Some(record))
}

/// What the session does, unless what is staged cannot be that. Artifacts that were never staged are as good as
/// empty ones; BOS takes a boot without any for complete and shuts the node down (BUG-26).
fn judge(standing: &Standing, staged: Option<&BootArtifacts>) -> Result<Operation, Obstacle> {
    let Standing::Own { operation, .. } = standing else { return Err(Obstacle::Gone) };
    let nothing = BootArtifacts::default();
    let artifacts = staged.unwrap_or(&nothing);
    let members = [
        ("kernel", &artifacts.kernel),
        ("kernel_parameters", &artifacts.kernel_parameters),
        ("initrd", &artifacts.initrd),
    ];
    let missing = members.into_iter().filter(|(_, text)| text.as_deref().unwrap_or_default().is_empty());
    let missing: Vec<_> = missing.map(|(name, _)| name).collect();
    match operation {
        Operation::Shutdown if missing.len() < members.len() => Err(Obstacle::BootsForShutdown),
        Operation::Boot | Operation::Reboot if !missing.is_empty() => {
            let operation = if *operation == Operation::Boot { "boot" } else { "reboot" };
            Err(Obstacle::Incomplete { operation, missing: missing.join(", ") })
        }
        Operation::Boot | Operation::Reboot | Operation::Shutdown => Ok(*operation),
    }
}

/// Makes the staged state the desired one. Nothing of the old one stays, its token included.
fn desire(record: &mut Component, staged: &StagedState, operation: Operation) {
    record.desired_state = Some(DesiredState {
        boot_artifacts: staged.boot_artifacts.clone(),
        configuration: staged.configuration.clone(),
        ..DesiredState::default()
    });
    if operation == Operation::Reboot {
        record.actual_state = Some(cleared_actual_state());
    }
    record.enabled = Some(true);
}

/// What stays staged.
fn left(staged: &StagedState, clear_stage: bool) -> StagedState {
    if clear_stage { nothing_staged() } else { StagedState { applied: true, ..staged.clone() } }
}

fn nothing_staged() -> StagedState {
    StagedState {
        boot_artifacts: Some(BootArtifacts::empty().into()),
        configuration: Some(Arc::default()),
        ..StagedState::default()
    }
}

/// The same record without what is staged. What the node should run stays, and so does the generation.
fn unstaged(component: &Component, now: Timestamp) -> Component {
    let staged_state = StagedState { last_updated: Some(now), ..nothing_staged() };
    Component { staged_state: Some(staged_state.into()), ..component.clone() }
}

/// Gives the component to the session that staged the state.
fn own(record: &mut Component, reference: SessionReference, standing: &Standing, tenant: &Tenant) {
    (record.session_tenant, record.assignment) = match standing {
        Standing::Own { id, .. } => (Some(tenant.clone()), id.clone()),
        Standing::Foreign | Standing::Gone => (reference.tenant, reference.id),
    };
    record.session = Some(reference.name);
}

#[cfg(test)]
mod tests;
