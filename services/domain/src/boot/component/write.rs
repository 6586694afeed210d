//! The effects of a write to a component: hooks on the incoming data, then the merge (BOS reference 3.3, 3.4).

use std::{sync::Arc, time::Duration};

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Action, ActualState, Component, ComponentEvaluation, ComponentPatch, ComponentPower,
            ComponentWish, DesiredState, InventoryPresence, LastAction, LateReport, PowerTurns,
            ReportedBoots,
            artifacts::BootArtifacts,
            shutdown::{forget_shutdown_attempts, is_shutdown_called},
            status::{ComponentStatus, computed_status},
            write::{
                hooks::{apply_hooks, sets_what_to_run},
                merge::merge,
            },
        },
    },
    core::{
        decision::DecisionVersion,
        id::{ComponentId, Tenant},
        shared_part::SharedPart,
        time::Timestamp,
        trouble::TroubleKind,
    },
};

pub(crate) mod hooks;
pub(crate) mod merge;

/// Token that the registry has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    /// Artifacts that the token stands for.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// Number of the token: a later one has a higher number.
    pub number: u64,
}

/// Returns the record that replaces `previous` when `incoming` is put in its place (BOS reference 2.6.3).
///
/// Hooks run on the whole record. `tokens` returns the artifacts of a token. A put always begins a generation; the
/// mesh's own data about the old one are dropped.
pub fn put(
    previous: Option<&Component>,
    id: ComponentId,
    incoming: ComponentPatch,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> Component {
    let mut whole = incoming;
    let error_kind = kind_of_written_error(previous, &whole);
    let evidence = BootEvidence::by(previous, &whole, &tokens, now);
    let is_late = matches!(evidence, BootEvidence::EarlierBoot(_));
    let is_written = whole.actual_state.is_some();
    let writer = whole.session_tenant.take();
    apply_hooks(&mut whole, tokens, now);
    let mut record = previous.map_or_else(|| Component::new(id), unwritten);
    whole.replace_in(&mut record);
    record.evaluation.error_kind = error_kind;
    let nothing = ComponentEvaluation::default();
    record.note_trouble_begin(previous.map_or(&nothing, |previous| &previous.evaluation), now);
    evidence.note(&mut record.reported);
    // The written state is the caller's, and still of an earlier boot.
    if let Some(boot) = record.reported.boot.as_mut().filter(|_| is_late) {
        boot.reported = false;
    }
    note_running_report(&mut record, is_written && !is_late);
    if let Some(staged) = record.wish.staged_state.as_mut().map(Arc::make_mut) {
        (staged.assignment, staged.applied) = (Arc::default(), false);
    }
    keep_tenants(previous.map(|previous| &*previous.wish), &mut record.wish, writer);
    match previous {
        Some(previous) => begin_wish_after(&previous.wish, &mut record),
        None => begin_wish(&mut record),
    }
    record
}

/// Returns the members of `previous` that no client writes.
fn unwritten(previous: &Component) -> Component {
    let Component { preparation, reported, inventory, power, .. } = previous;
    Component {
        revision: previous.revision,
        generation: previous.generation,
        wish: ComponentWish {
            latest_assignment: Arc::clone(&previous.wish.latest_assignment),
            ..ComponentWish::default()
        }
        .into(),
        reported: ReportedBoots { actual_state: None, ..reported.clone() },
        inventory: inventory.clone(),
        preparation: preparation.clone(),
        power: ComponentPower { turns: power.turns, ..ComponentPower::default() }.into(),
        ..Component::new(previous.id.clone())
    }
}

/// Returns `stored` with `patch` merged into it (BOS reference 2.6.5).
///
/// A patch that sets the wanted state or the counters of actions begins a generation; a node report or an error text
/// does not. A shutdown that was called before has no attempts under the new wish, unless the patch says so. A report of a boot that was over before the last power-on began is noted as late and leaves the actual
/// state unchanged. A component that an operator gives to a session belongs to it by its name, not by its id.
pub fn patch(
    stored: &Component,
    patch: ComponentPatch,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> Component {
    let mut patch = patch;
    let error_kind = kind_of_written_error(Some(stored), &patch);
    let begins = begins_generation(&patch);
    let evidence = BootEvidence::by(Some(stored), &patch, &tokens, now);
    if matches!(evidence, BootEvidence::EarlierBoot(_)) {
        patch.actual_state = None;
    }
    let (wants, stages) = (patch.desired_state.is_some(), patch.staged_state.is_some());
    let reports = patch.actual_state.is_some();
    let writer = patch.session_tenant.clone();
    apply_hooks(&mut patch, tokens, now);
    let counts = patch.event_stats.is_some();
    let mut merged = stored.clone();
    merge(&mut merged, patch, error_kind);
    if wants || merged.session_name() != stored.session_name() {
        merged.wish.assignment = Arc::default();
        merged.wish.trace = Arc::default();
        merged.wish.pause = None;
    }
    if stages {
        keep_stager(&stored.wish, &mut merged.wish);
    }
    SharedPart::update(&mut merged.wish, |wish| keep_tenants(Some(&stored.wish), wish, writer));
    evidence.note(&mut merged.reported);
    note_running_report(&mut merged, reports);
    if begins {
        if !counts && is_shutdown_called(stored) {
            forget_shutdown_attempts(&mut merged);
        }
        begin_wish_after(&stored.wish, &mut merged);
    }
    // No decision about the component follows that would clear the text.
    if !merged.is_enabled() && merged.error_passes_when_left_alone() {
        (merged.evaluation.error, merged.evaluation.error_kind) =
            (Some(Arc::default()), TroubleKind::default());
    }
    merged.note_trouble_begin(&stored.evaluation, now);
    merged
}

/// Boot that a node runs, by the evidence of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BootEvidence {
    /// No evidence: no actual state, or only an unknown token.
    Nothing,
    /// The node runs the boot that began last, or one that was prepared later; or an operator wrote so.
    ThisBoot,
    /// The report comes from an earlier boot: it was delayed, or sent again.
    EarlierBoot(LateReport),
}

impl BootEvidence {
    /// Orders the report in `incoming` by the boot that its token was prepared for. Neither clocks nor artifacts
    /// decide: a delayed report arrives now, and two boots may have the same artifacts.
    fn by(
        stored: Option<&Component>,
        incoming: &ComponentPatch,
        tokens: impl Fn(&str) -> Option<KnownToken>,
        now: Timestamp,
    ) -> Self {
        let Some(actual) = &incoming.actual_state else { return Self::Nothing };
        let token = actual.bss_token.as_ref().filter(|token| !token.is_empty());
        let known = token.and_then(|token| Some((token, tokens(token)?)));
        let Some((token, KnownToken { boot_artifacts, number })) = known else {
            return if actual.boot_artifacts.is_some() { Self::ThisBoot } else { Self::Nothing };
        };
        let boot = stored.and_then(|stored| stored.reported.boot.as_ref()).map(|boot| &boot.token);
        if boot.is_some_and(|boot| number < boot.number && *token != boot.token) {
            return Self::EarlierBoot(LateReport { token: token.clone(), boot_artifacts, reported_at: now });
        }
        Self::ThisBoot
    }

    /// Notes in `reported` which boot was reported. A late report that arrives again is noted once.
    fn note(self, reported: &mut ReportedBoots) {
        match self {
            Self::Nothing => {}
            Self::ThisBoot => {
                if let Some(boot) = &mut reported.boot {
                    boot.reported = true;
                }
            }
            Self::EarlierBoot(late) => {
                if reported.late_report.as_ref().is_none_or(|noted| noted.token != late.token) {
                    reported.late_report = Some(late.into());
                }
            }
        }
    }
}

/// Notes whether the actual state shows that the node runs, if it `is_written`. While the node is being switched off, it
/// may be off by the time its last report arrives.
fn note_running_report(record: &mut Component, is_written: bool) {
    if is_written {
        record.reported.running_report = record.boot_reported_at().filter(|_| !record.is_switched_off());
    }
}

/// Returns the kind of the error in `written`. A text that repeats the error on record, as a write of the whole record
/// does, keeps its kind; any other text is the writer's own, however it begins.
fn kind_of_written_error(previous: Option<&Component>, written: &ComponentPatch) -> TroubleKind {
    let same = previous.filter(|previous| previous.evaluation.error == written.error);
    same.map_or(TroubleKind::default(), |previous| previous.evaluation.error_kind)
}

/// Keeps the id of the session whose state is staged, if a write stages a state under the same name.
fn keep_stager(previous: &ComponentWish, wish: &mut ComponentWish) {
    let Some(staged) = wish.staged_state.as_mut().map(Arc::make_mut) else { return };
    staged.applied = false;
    if staged.session.as_deref().unwrap_or_default() != previous.staged_session_name() {
        staged.assignment = Arc::default();
    }
}

/// Sets the tenants of the sessions that `wish` names after a write: the tenant of the `writer`, except for a name
/// that was there before. A write that only repeats the name of a session, such as one of the whole record, does not
/// make it another.
fn keep_tenants(previous: Option<&ComponentWish>, wish: &mut ComponentWish, writer: Option<Tenant>) {
    let same = previous.filter(|previous| previous.session_name() == wish.session_name());
    let tenant = same.map_or_else(|| writer.clone(), |previous| previous.session_tenant.clone());
    wish.session_tenant = tenant.filter(|_| !wish.session_name().is_empty());
    let same = previous.filter(|previous| previous.staged_session_name() == wish.staged_session_name());
    let tenant = same.map_or(writer, |previous| previous.staged_state.as_ref()?.tenant.clone());
    let Some(staged) = &mut wish.staged_state else { return };
    let named = staged.session.as_deref().is_some_and(|name| !name.is_empty());
    let tenant = tenant.filter(|_| named);
    // A shared state stays shared as long as it does not change.
    if staged.tenant != tenant {
        Arc::make_mut(staged).tenant = tenant;
    }
}

/// Error of a node's report while its component is being changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("actual state cannot be written while the status is '{status}'")]
pub struct ActualStateLocked {
    /// Computed status that forbids the report.
    pub status: String,
}

/// Checks that a node may report its boot now (BOS reference 2.6.6): when there is no work on it, or when it was
/// switched on and is expected to report. A record without `enabled` counts as not enabled, one without a last action
/// as not switched on (BUG-05).
///
/// A component that is held because an upstream leaves its node out is still being changed: the wish of its session is
/// carried out once the node is listed again, and a report of an earlier boot would make the wish look fulfilled. BOS
/// has disabled such a component, and takes its reports (BUG-32).
///
/// # Errors
/// When the component is enabled and being changed in another way.
pub fn guard_actual_state(stored: &Component) -> Result<(), ActualStateLocked> {
    let status = computed_status(stored);
    let free = !stored.is_enabled() || status == ComponentStatus::STABLE;
    if free || stored.last_action() == Some(Action::PoweringOn) {
        return Ok(());
    }
    Err(ActualStateLocked { status: status.word().to_owned() })
}

/// Returns the first record of a node that was found in the inventory (BOS reference 3.2).
pub fn newly_discovered(id: ComponentId, now: Timestamp) -> Component {
    let record = ComponentPatch {
        actual_state: Some(cleared_actual_state()),
        desired_state: Some(DesiredState {
            boot_artifacts: Some(BootArtifacts::empty().into()),
            configuration: Some(Arc::default()),
            bss_token: Some(Arc::default()),
            last_updated: None,
        }),
        staged_state: Some(Arc::default()),
        last_action: Some(LastAction {
            action: Some(Action::NewlyDiscovered),
            failed: Some(false),
            last_updated: None,
        }),
        enabled: Some(false),
        error: Some(Arc::default()),
        session: Some(Arc::default()),
        ..ComponentPatch::default()
    };
    put(None, id, record, |_| None, now)
}

/// Returns `stored` with its report forgotten, if the report is older than `ttl` (BOS reference 5.12); `None`: it is
/// not, or there is none.
///
/// A component that is enabled keeps its last action, and with it the time for a boot; BOS overwrites it and so shuts a
/// booting node down again. The error text stays too, which BOS erases. Where BOS is followed strictly both are as
/// there (BUG-34).
pub fn expire_actual_state(
    stored: &Component,
    ttl: Duration,
    compatibility: Compatibility,
    now: Timestamp,
) -> Option<Component> {
    if now < actual_state_expires(stored, ttl)? {
        return None;
    }
    let strict = compatibility.strict_bos;
    let last_action = (strict || !stored.is_enabled()).then_some(LastAction {
        action: Some(Action::ActualStateCleanup),
        failed: Some(false),
        last_updated: None,
    });
    let mut patch = ComponentPatch {
        actual_state: Some(cleared_actual_state()),
        last_action,
        error: strict.then(Arc::default),
        ..ComponentPatch::default()
    };
    apply_hooks(&mut patch, |_| None, now);
    let mut expired = stored.clone();
    merge(&mut expired, patch, TroubleKind::default());
    Some(expired)
}

/// Returns the first moment at which the report of `stored` is too old; `None`: there is no report. A report without a
/// time stamp is too old at any time.
pub fn actual_state_expires(stored: &Component, ttl: Duration) -> Option<Timestamp> {
    let reported = stored.actual_artifacts().is_some_and(|artifacts| !artifacts.is_empty());
    let reported_at = stored.reported.actual_state.as_ref().and_then(|actual| actual.last_updated);
    // Ages are compared strictly, hence the millisecond.
    reported.then(|| reported_at.map_or(Timestamp(0), |at| at.plus(ttl).plus(Duration::from_millis(1))))
}

/// Returns the state of a node without a known boot.
pub(crate) fn cleared_actual_state() -> ActualState {
    ActualState {
        boot_artifacts: Some(BootArtifacts::empty().into()),
        bss_token: Some(Arc::default()),
        last_updated: None,
    }
}

/// Begins a generation because a session has set a new wish, or a staged one is applied: turns of the power are counted
/// from here.
pub(crate) fn begin_wish(component: &mut Component) {
    component.power.turns = PowerTurns::default();
    ask_anew(component);
}

/// Begins a generation because an operator has written a wish in the place of `before`. Turns of the power go on unless
/// something else is wanted: two parties that turn a node do not stop because it is enabled again.
fn begin_wish_after(before: &ComponentWish, component: &mut Component) {
    match before.wants_the_same(&component.wish) {
        true => ask_anew(component),
        false => begin_wish(component),
    }
}

/// Begins a generation in which any version of the rules may decide, and in which nothing is done before power and
/// configuration were observed.
fn ask_anew(component: &mut Component) {
    component.evaluation.decided_by = DecisionVersion::default();
    component.evaluation.is_undecided = true;
    begin_generation(component);
}

/// Begins a generation: evidence, preparations, refusals and actions of the old one no longer count.
pub(crate) fn begin_generation(component: &mut Component) {
    component.generation += 1;
    component.preparation.outcome = None;
    component.inventory.presence = InventoryPresence::default();
    component.power.trouble = None;
    component.power.acted_before = true;
}

/// Returns whether a patch sets the wanted state of the node or the counters of its actions.
fn begins_generation(patch: &ComponentPatch) -> bool {
    patch.enables()
        || patch.desired_state.as_ref().is_some_and(sets_what_to_run)
        || patch.last_action.is_some()
        || patch.event_stats.is_some()
        || patch.status.is_some()
}

#[cfg(test)]
mod tests;
