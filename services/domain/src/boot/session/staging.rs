//! Application of staged states (BOS reference 5.14).

use std::sync::Arc;

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Action, Component, ComponentEvaluation, ComponentPatch, ComponentWish, DesiredState,
            SessionReference, StagedState,
            artifacts::BootArtifacts,
            write::{KnownToken, begin_wish, cleared_actual_state, hooks::apply_hooks},
        },
        session::Session,
        template::Operation,
    },
    core::{id::Tenant, time::Timestamp, trouble::TroubleKind},
};

/// Relation of a staged session to the tenant that applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The session is the tenant's own.
    Own {
        /// Unique id of the session.
        id: Arc<str>,
        /// Operation of the session.
        operation: Operation,
    },
    /// The session is another tenant's, or was cancelled: its states are not applied.
    Foreign,
    /// The session does not exist any more.
    Gone,
}

/// Returns how the session in `reference` relates to `tenant`, among all existing `sessions`.
///
/// An id is exact. A name without an id means the session of the tenant that it was written for, or the caller's own if
/// that tenant is unknown. A state that another tenant staged stays theirs when their session is gone: a later caller
/// does not take the node from its owner by that. States of a cancelled session are treated as foreign ones, because
/// those of a session that is gone would disable the node, which may be at work for another session.
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
        if meant && session.tenant == *tenant && session.cancellation.is_none() {
            return Standing::Own { id: session.id.as_str().into(), operation: session.operation };
        }
        foreign |= meant;
    }
    if foreign { Standing::Foreign } else { Standing::Gone }
}

/// Caller and conditions of applying staged states.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Tenant that applies the states.
    pub tenant: Tenant,
    /// Whether an applied state is not staged any more; the option of that name.
    pub clear_stage: bool,
    /// Strictness of following BOS.
    pub compatibility: Compatibility,
}

/// Outcome of applying the staged state of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The staged state is the desired state from now on.
    Succeeded,
    /// The staged state cannot be applied, and the component's error has the reason, unless another tenant's session
    /// staged it.
    Failed,
    /// The component has no staged state.
    Ignored,
}

/// Reason why a staged state cannot be applied.
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
    /// Returns the obstacle in the words of BOS.
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

/// Applies the staged state of `component`, whose session has this `standing`, and returns the resulting record;
/// `None`: the record stays. `tokens` returns the artifacts of a token.
///
/// Applying is an assignment: the staged session owns the component from now on and a generation begins, even if it
/// fails. A record without a last action fails and stays unchanged, as in BOS.
///
/// A state that another tenant's session staged fails too. With `clear_stage` it is not staged any more, as in BOS, so
/// that the session does not wait for the component; the rest of the record stays. BOS takes such a session for gone,
/// and so disables the node.
pub fn apply(
    component: &Component,
    standing: &Standing,
    terms: &Terms,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> (Verdict, Option<Component>) {
    let (Some(staged), Some(reference)) = (&component.wish.staged_state, component.staged_by()) else {
        return (Verdict::Ignored, None);
    };
    if component.power.last_action.is_none() {
        return (Verdict::Failed, None);
    }
    if *standing == Standing::Foreign && !terms.compatibility.strict_bos {
        return (Verdict::Failed, terms.clear_stage.then(|| unstaged(component, now)));
    }
    let judged = judge(standing, staged.boot_artifacts.as_deref());
    // BOS writes the whole record, and so the hooks work on all of it.
    let mut whole = ComponentPatch::repeating(component);
    whole.staged_state = Some(left(staged, terms.clear_stage).into());
    whole.last_action.get_or_insert_default().action = Some(Action::ApplyStaged);
    whole.session = Some(reference.name.clone());
    if component.may_be_shutting_down() {
        whole.actual_state = Some(cleared_actual_state());
    }
    match &judged {
        Ok(operation) => desire(&mut whole, staged, *operation),
        Err(_) => whole.enabled = Some(false),
    }
    apply_hooks(&mut whole, tokens, now);
    let mut record = component.clone();
    whole.replace_in(&mut record);
    own(&mut record.wish, &reference, standing, &terms.tenant);
    tell(&mut record.evaluation, judged.as_ref().err(), &reference.name, terms);
    record.note_trouble_begin(&component.evaluation, now);
    begin_wish(&mut record);
    (if judged.is_ok() { Verdict::Succeeded } else { Verdict::Failed }, Some(record))
}

/// Sets the error of a component whose staged state was applied, or met an `obstacle`. BOS keeps an earlier error of a
/// state that it applies.
fn tell(evaluation: &mut ComponentEvaluation, obstacle: Option<&Obstacle>, session: &str, terms: &Terms) {
    let is_strict = terms.compatibility.strict_bos;
    let Some(obstacle) = obstacle else {
        if !is_strict {
            (evaluation.error, evaluation.error_kind) = (Some(Arc::default()), TroubleKind::default());
        }
        return;
    };
    let reason = if is_strict { obstacle.in_bos() } else { obstacle.to_string() };
    let tenant = terms.tenant.as_str();
    evaluation.error = Some(format!("{reason} (session: {session}, tenant: {tenant})").into());
    evaluation.error_kind = TroubleKind::Failed;
}

/// Returns the operation of the session, unless the staged state contradicts it. Artifacts that were never staged count
/// as empty; BOS takes a boot without any for complete and shuts the node down (BUG-26).
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

/// Makes the staged state the desired state. The old one is dropped, including its token.
fn desire(whole: &mut ComponentPatch, staged: &StagedState, operation: Operation) {
    whole.desired_state = Some(DesiredState {
        boot_artifacts: staged.boot_artifacts.clone(),
        configuration: staged.configuration.clone(),
        ..DesiredState::default()
    });
    if operation == Operation::Reboot {
        whole.actual_state = Some(cleared_actual_state());
    }
    whole.enabled = Some(true);
}

/// Returns the state that remains staged.
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

/// Returns the same record without a staged state. The desired state stays, and so does the generation.
fn unstaged(component: &Component, now: Timestamp) -> Component {
    let staged_state = StagedState { last_updated: Some(now), ..nothing_staged() };
    component.clone().with(|unstaged| unstaged.wish.staged_state = Some(staged_state.into()))
}

/// Gives the component to the session that staged the state.
fn own(wish: &mut ComponentWish, reference: &SessionReference, standing: &Standing, tenant: &Tenant) {
    (wish.session_tenant, wish.assignment) = match standing {
        Standing::Own { id, .. } => (Some(tenant.clone()), id.clone()),
        Standing::Foreign | Standing::Gone => (reference.tenant.clone(), reference.id.clone()),
    };
    wish.trace = Arc::default();
    wish.pause = None;
}

#[cfg(test)]
mod tests;
