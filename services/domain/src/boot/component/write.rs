//! The effects of a write to a component: hooks on the incoming data, then the merge (BOS reference 3.3, 3.4).

use std::{sync::Arc, time::Duration};

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Action, ActualState, Component, DesiredState, EventStats, InventoryPresence, LastAction,
            LateReport, PowerTurns, StagedState, Status,
            artifacts::BootArtifacts,
            status::{ComponentStatus, computed_status},
        },
    },
    core::{
        decision::DecisionVersion,
        id::{ComponentId, Tenant},
        time::Timestamp,
        trouble::TroubleKind,
    },
};

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
/// mesh's own data about the old one are dropped, whatever `incoming` has in their place.
pub fn put(
    previous: Option<&Component>,
    incoming: Component,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> Component {
    let mut record = incoming;
    record.error_kind = kind_of_written_error(previous, &record);
    let reported = Reported::by(previous, &record, &tokens, now);
    let is_late = matches!(reported, Reported::EarlierBoot(_));
    apply_hooks(&mut record, tokens, now);
    record.revision = previous.map_or(0, |previous| previous.revision);
    record.generation = previous.map_or(0, |previous| previous.generation);
    record.locked = previous.is_some_and(|previous| previous.locked);
    record.prepared_token = previous.and_then(|previous| previous.prepared_token.clone());
    record.boot = previous.and_then(|previous| previous.boot.clone());
    record.late_report = previous.and_then(|previous| previous.late_report.clone());
    reported.note(&mut record);
    // The written state is the caller's, and still of an earlier boot.
    if let Some(boot) = record.boot.as_mut().filter(|_| is_late) {
        boot.reported = false;
    }
    record.assignment = Arc::default();
    record.latest_assignment =
        previous.map_or_else(Arc::default, |previous| Arc::clone(&previous.latest_assignment));
    if let Some(staged) = record.staged_state.as_mut().map(Arc::make_mut) {
        (staged.assignment, staged.applied) = (Arc::default(), false);
    }
    let writer = record.session_tenant.take();
    keep_tenants(previous, &mut record, writer);
    begin_wish(&mut record);
    record
}

/// Returns `stored` with `patch` merged into it (BOS reference 2.6.5). The id of the patch and all members of the
/// registry are ignored.
///
/// A patch that sets the wanted state or the counters of actions begins a generation; a node report or an error text
/// does not. A report of a boot that was over before the last power-on began is noted as late and leaves the actual
/// state unchanged.
pub fn patch(
    stored: &Component,
    patch: Component,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> Component {
    let mut patch = patch;
    patch.error_kind = kind_of_written_error(Some(stored), &patch);
    let begins = begins_generation(&patch);
    let reported = Reported::by(Some(stored), &patch, &tokens, now);
    if matches!(reported, Reported::EarlierBoot(_)) {
        patch.actual_state = None;
    }
    let (wants, stages) = (patch.desired_state.is_some(), patch.staged_state.is_some());
    let writer = patch.session_tenant.clone();
    let mut merged = hooked_merge(stored, patch, tokens, now);
    // A component that an operator gave to a session belongs to it by its name, not by its id.
    if wants || merged.session_name() != stored.session_name() {
        merged.assignment = Arc::default();
    }
    if let Some(staged) = merged.staged_state.as_mut().filter(|_| stages).map(Arc::make_mut) {
        staged.applied = false;
        if staged.session.as_deref().unwrap_or_default() != stored.staged_session_name() {
            staged.assignment = Arc::default();
        }
    }
    keep_tenants(Some(stored), &mut merged, writer);
    reported.note(&mut merged);
    if begins {
        begin_wish(&mut merged);
    }
    // No decision about the component follows that would clear the text.
    if !merged.is_enabled() && merged.error_passes_when_left_alone() {
        (merged.error, merged.error_kind) = (Some(Arc::default()), TroubleKind::default());
    }
    merged
}

/// Boot that a node runs, by the evidence of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reported {
    /// No evidence: no actual state, or only an unknown token.
    Nothing,
    /// The node runs the boot that began last, or one that was prepared later; or an operator wrote so.
    ThisBoot,
    /// The report comes from an earlier boot: it was delayed, or sent again.
    EarlierBoot(LateReport),
}

impl Reported {
    /// Orders the report in `incoming` by the boot that its token was prepared for. Neither clocks nor artifacts
    /// decide: a delayed report arrives now, and two boots may have the same artifacts.
    fn by(
        stored: Option<&Component>,
        incoming: &Component,
        tokens: impl Fn(&str) -> Option<KnownToken>,
        now: Timestamp,
    ) -> Self {
        let Some(actual) = &incoming.actual_state else { return Self::Nothing };
        let token = actual.bss_token.as_ref().filter(|token| !token.is_empty());
        let known = token.and_then(|token| Some((token, tokens(token)?)));
        let Some((token, KnownToken { boot_artifacts, number })) = known else {
            return if actual.boot_artifacts.is_some() { Self::ThisBoot } else { Self::Nothing };
        };
        let boot = stored.and_then(|stored| stored.boot.as_ref()).map(|boot| &boot.token);
        if boot.is_some_and(|boot| number < boot.number && *token != boot.token) {
            return Self::EarlierBoot(LateReport { token: token.clone(), boot_artifacts, reported_at: now });
        }
        Self::ThisBoot
    }

    /// Notes in `record` which boot was reported. A late report that arrives again is noted once.
    fn note(self, record: &mut Component) {
        match self {
            Self::Nothing => {}
            Self::ThisBoot => {
                if let Some(boot) = &mut record.boot {
                    boot.reported = true;
                }
            }
            Self::EarlierBoot(late) => {
                if record.late_report.as_ref().is_none_or(|noted| noted.token != late.token) {
                    record.late_report = Some(late.into());
                }
            }
        }
    }
}

/// Returns the kind of the error in `written`. A text that repeats the error on record, as a write of the whole record
/// does, keeps its kind; any other text is the writer's own, however it begins.
fn kind_of_written_error(previous: Option<&Component>, written: &Component) -> TroubleKind {
    let same = previous.filter(|previous| previous.error == written.error);
    same.map_or(TroubleKind::default(), |previous| previous.error_kind)
}

/// Sets the tenants of the sessions that `record` names after a write: the tenant of the `writer`, except for a name
/// that was there before. A write that only repeats the name of a session, such as one of the whole record, does not
/// make it another.
fn keep_tenants(previous: Option<&Component>, record: &mut Component, writer: Option<Tenant>) {
    let same = previous.filter(|previous| previous.session_name() == record.session_name());
    let tenant = same.map_or_else(|| writer.clone(), |previous| previous.session_tenant.clone());
    record.session_tenant = tenant.filter(|_| !record.session_name().is_empty());
    let same = previous.filter(|previous| previous.staged_session_name() == record.staged_session_name());
    let tenant = same.map_or(writer, |previous| previous.staged_state.as_ref()?.tenant.clone());
    let Some(staged) = &mut record.staged_state else { return };
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
    let record = Component {
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
        ..Component::new(id)
    };
    put(None, record, |_| None, now)
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
    let patch = Component {
        actual_state: Some(cleared_actual_state()),
        last_action,
        error: strict.then(Arc::default),
        ..Component::new(stored.id.clone())
    };
    Some(hooked_merge(stored, patch, |_| None, now))
}

/// Returns the first moment at which the report of `stored` is too old; `None`: there is no report. A report without a
/// time stamp is too old at any time.
pub fn actual_state_expires(stored: &Component, ttl: Duration) -> Option<Timestamp> {
    let reported = stored.actual_artifacts().is_some_and(|artifacts| !artifacts.is_empty());
    let reported_at = stored.actual_state.as_ref().and_then(|actual| actual.last_updated);
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

/// Begins a generation because an operator or a session has set a new wish: any version of the rules may decide about
/// it, and turns of the power are counted from here.
pub(crate) fn begin_wish(component: &mut Component) {
    component.decided_by = DecisionVersion::default();
    component.turns = PowerTurns::default();
    begin_generation(component);
}

/// Begins a generation: evidence, preparations and refusals of the old one no longer count.
pub(crate) fn begin_generation(component: &mut Component) {
    component.generation += 1;
    component.preparation = None;
    component.presence = InventoryPresence::default();
    component.power_trouble = None;
}

/// Runs the hooks on `patch` and merges it into a copy of `stored`, without touching the generation.
pub(crate) fn hooked_merge(
    stored: &Component,
    mut patch: Component,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) -> Component {
    apply_hooks(&mut patch, tokens, now);
    let mut merged = stored.clone();
    merge(&mut merged, patch);
    merged
}

/// Returns whether a patch sets the wanted state of the node or the counters of its actions.
fn begins_generation(patch: &Component) -> bool {
    patch.enabled == Some(true)
        || patch.desired_state.as_ref().is_some_and(sets_what_to_run)
        || patch.last_action.is_some()
        || patch.event_stats.is_some()
        || patch.status.is_some()
}

fn sets_what_to_run(desired: &DesiredState) -> bool {
    desired.boot_artifacts.is_some() || desired.configuration.is_some()
}

/// Runs the five hooks of BOS reference 3.3, in their order: each works on the results of the ones before it.
pub(crate) fn apply_hooks(
    incoming: &mut Component,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) {
    look_up_token(incoming, tokens);
    stamp(incoming, now);
    hold(incoming);
    detach(incoming);
    reset_stats(incoming);
}

/// Hook 1: a known token determines the reported artifacts, whatever else was sent. An unknown one determines nothing,
/// and because hook 2 then leaves the time stamp unset the old report keeps ageing.
fn look_up_token(incoming: &mut Component, tokens: impl Fn(&str) -> Option<KnownToken>) {
    let Some(actual) = &mut incoming.actual_state else { return };
    let Some(token) = actual.bss_token.as_deref().filter(|token| !token.is_empty()) else { return };
    if let Some(known) = tokens(token) {
        actual.boot_artifacts = Some(known.boot_artifacts);
    }
}

/// Hook 2: sets time stamps, except for a state that consists of a token only.
fn stamp(incoming: &mut Component, now: Timestamp) {
    if let Some(actual) = &mut incoming.actual_state {
        let token_only =
            matches!(actual, ActualState { boot_artifacts: None, bss_token: Some(_), last_updated: None });
        actual.last_updated = (!token_only).then_some(now);
    }
    if let Some(desired) = &mut incoming.desired_state {
        let token_only =
            !sets_what_to_run(desired) && desired.bss_token.is_some() && desired.last_updated.is_none();
        desired.last_updated = (!token_only).then_some(now);
    }
    if let Some(staged) = incoming.staged_state.as_mut().map(Arc::make_mut) {
        staged.last_updated = Some(now);
    }
    if let Some(last) = &mut incoming.last_action {
        last.last_updated = Some(now);
    }
}

/// Hook 3: holds an enabled component until fresh evidence arrives.
fn hold(incoming: &mut Component) {
    if incoming.is_enabled() {
        let status = incoming.status.get_or_insert_default();
        status.status_override = Some(ComponentStatus::OnHold.word().into());
    }
}

/// Hook 4: removes a node from its session if its desired state is written without a session.
fn detach(incoming: &mut Component) {
    if incoming.desired_state.is_some() && incoming.session_name().is_empty() {
        incoming.session = Some(Arc::default());
    }
}

/// Hook 5: zeroes the counters of attempts, which belong to one wanted state.
fn reset_stats(incoming: &mut Component) {
    if incoming.desired_state.as_ref().is_some_and(sets_what_to_run) {
        incoming.event_stats = Some(EventStats::zeros());
    }
}

/// Merges member by member; members that the patch lacks stay (BOS reference 3.4).
fn merge(stored: &mut Component, patch: Component) {
    merge_part(&mut stored.actual_state, patch.actual_state, merge_actual);
    merge_part(&mut stored.desired_state, patch.desired_state, merge_desired);
    merge_part(&mut stored.staged_state, patch.staged_state, |stored, patch| {
        merge_staged(Arc::make_mut(stored), Arc::unwrap_or_clone(patch));
    });
    merge_part(&mut stored.last_action, patch.last_action, merge_last_action);
    merge_part(&mut stored.event_stats, patch.event_stats, merge_stats);
    merge_part(&mut stored.status, patch.status, merge_status);
    replace(&mut stored.enabled, patch.enabled);
    if patch.error.is_some() {
        stored.error = patch.error;
        stored.error_kind = patch.error_kind;
    }
    replace(&mut stored.session, patch.session);
    replace(&mut stored.retry_policy, patch.retry_policy);
}

/// Merges a part; one that is missing on one side is taken from the other unchanged.
fn merge_part<T>(stored: &mut Option<T>, patch: Option<T>, merge: impl FnOnce(&mut T, T)) {
    match (stored.as_mut(), patch) {
        (Some(stored), Some(patch)) => merge(stored, patch),
        (None, Some(patch)) => *stored = Some(patch),
        (_, None) => {}
    }
}

fn replace<T>(stored: &mut Option<T>, patch: Option<T>) {
    if patch.is_some() {
        *stored = patch;
    }
}

fn merge_actual(stored: &mut ActualState, patch: ActualState) {
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.bss_token, patch.bss_token);
    replace(&mut stored.last_updated, patch.last_updated);
}

fn merge_desired(stored: &mut DesiredState, patch: DesiredState) {
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.configuration, patch.configuration);
    replace(&mut stored.bss_token, patch.bss_token);
    replace(&mut stored.last_updated, patch.last_updated);
}

fn merge_staged(stored: &mut StagedState, patch: StagedState) {
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.configuration, patch.configuration);
    replace(&mut stored.session, patch.session);
    replace(&mut stored.last_updated, patch.last_updated);
}

/// Merges artifacts; a patch without a time stamp keeps the old one, as in BOS. If the merge changes nothing, the
/// shared `Arc` is kept.
fn merge_artifacts(stored: &mut Arc<BootArtifacts>, patch: Arc<BootArtifacts>) {
    let merged = BootArtifacts {
        kernel: patch.kernel.clone().or_else(|| stored.kernel.clone()),
        kernel_parameters: patch.kernel_parameters.clone().or_else(|| stored.kernel_parameters.clone()),
        initrd: patch.initrd.clone().or_else(|| stored.initrd.clone()),
        timestamp: patch.timestamp.or(stored.timestamp),
    };
    if merged == *patch {
        *stored = patch;
    } else if merged != **stored {
        *stored = Arc::new(merged);
    }
}

fn merge_last_action(stored: &mut LastAction, patch: LastAction) {
    replace(&mut stored.action, patch.action);
    replace(&mut stored.failed, patch.failed);
    replace(&mut stored.last_updated, patch.last_updated);
}

fn merge_stats(stored: &mut EventStats, patch: EventStats) {
    replace(&mut stored.power_on_attempts, patch.power_on_attempts);
    replace(&mut stored.power_off_graceful_attempts, patch.power_off_graceful_attempts);
    replace(&mut stored.power_off_forceful_attempts, patch.power_off_forceful_attempts);
}

fn merge_status(stored: &mut Status, patch: Status) {
    replace(&mut stored.phase, patch.phase);
    replace(&mut stored.status_override, patch.status_override);
}

#[cfg(test)]
mod tests;
