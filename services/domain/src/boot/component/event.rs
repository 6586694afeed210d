//! Events of a component: the steps of its story that an operator asks about later.
//!
//! [`events`] compares the record before and after a change. The repetition of a state is no event: a report that only
//! renews a time stamp, or another text of the same outage, would push out what happened before.

use std::{iter, sync::Arc};

use crate::{
    boot::component::{
        Action, ActualState, Component, DesiredState, InventoryPresence, Phase, StagedState,
        artifacts::BootArtifacts, status::ComponentStatus,
    },
    core::{
        event::{Actor, EventContent, EventSession},
        trouble::{
            Trouble,
            recorded::{RecordedTrouble, TroubleChange},
        },
    },
};

/// Words for the kinds of events of a component.
pub const KINDS: [&str; 21] = [
    "boot_reported",
    "created",
    "decided",
    "deleted",
    "desired_state_set",
    "disabled",
    "earlier_boot_reported",
    "enabled",
    "locked",
    "not_listed",
    "power_action_began",
    "power_action_failed",
    "preparation_failed",
    "prepared",
    "report_forgotten",
    "stage_cleared",
    "staged",
    "trouble_began",
    "trouble_ended",
    "unlocked",
    "written",
];

/// Change of a component that an operator asks about later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentEvent {
    /// The record was created.
    Created,
    /// The record was deleted.
    Deleted,
    /// The desired state was set.
    DesiredStateSet {
        /// Session that set it; empty: none.
        session: Arc<str>,
        /// Desired configuration; empty: none.
        configuration: Arc<str>,
        /// Artifacts to boot; without a kernel the node should be off.
        artifacts: EventArtifacts,
        /// Action of which it is a part, such as the setup of a session.
        action: Option<Action>,
    },
    /// A state was staged for later.
    Staged {
        /// Session that staged it; empty: none.
        session: Arc<str>,
    },
    /// A staged state was cleared: it was applied, or given up.
    StageCleared {
        /// Session that staged it; empty: none.
        session: Arc<str>,
    },
    /// Reveille acts on the node from now on.
    Enabled,
    /// Reveille acts on the node no more.
    Disabled {
        /// Word for the rule that decided; empty: no rule did.
        reason: Arc<str>,
    },
    /// A power action began.
    PowerActionBegan {
        /// The action.
        action: Action,
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// A power action is known to have no effect.
    PowerActionFailed {
        /// The action.
        action: Action,
        /// Number of the attempt, counted from 1.
        attempt: u32,
        /// Trouble of the action; `None`: no upstream gave a reason.
        trouble: Option<Arc<Trouble>>,
    },
    /// Boot data and configuration of a power-on were accepted.
    Prepared {
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// The preparation of a power-on failed.
    PreparationFailed {
        /// Number of the attempt, counted from 1.
        attempt: u32,
        /// Trouble of the preparation.
        trouble: Arc<Trouble>,
    },
    /// The node reported its boot.
    BootReported {
        /// Whether the node runs the wanted boot.
        as_desired: bool,
        /// Artifacts that the node booted.
        artifacts: EventArtifacts,
    },
    /// The node reported a boot that was over already.
    EarlierBootReported,
    /// The report of the node was forgotten.
    ReportForgotten,
    /// The phase or the status override changed.
    Decided {
        /// Phase from now on.
        phase: Phase,
        /// Status override from now on; empty: none.
        status_override: Arc<str>,
        /// Word for the rule that decided; empty: no rule did.
        reason: Arc<str>,
    },
    /// A trouble ended, which began before.
    TroubleEnded(RecordedTrouble),
    /// A trouble began.
    TroubleBegan(RecordedTrouble),
    /// The inventory locked the node.
    Locked,
    /// The inventory released the node.
    Unlocked,
    /// The inventory lacks the node.
    NotListed,
    /// Further members were written by a client, or the same ones again, which begins the work on the node anew.
    Written {
        /// Names of the members, separated by commas; empty: none has another value.
        members: Arc<str>,
    },
}

/// Artifacts as an event names them. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventArtifacts {
    /// Kernel.
    pub kernel: Arc<str>,
    /// Initial RAM disk.
    pub initrd: Arc<str>,
    /// Kernel command line.
    pub kernel_parameters: Arc<str>,
}

impl EventArtifacts {
    fn of(artifacts: Option<&BootArtifacts>) -> Self {
        let Some(artifacts) = artifacts else { return Self::default() };
        Self {
            kernel: artifacts.kernel.clone().unwrap_or_default(),
            initrd: artifacts.initrd.clone().unwrap_or_default(),
            kernel_parameters: artifacts.kernel_parameters.clone().unwrap_or_default(),
        }
    }

    fn added_to(self, content: EventContent) -> EventContent {
        content
            .with("initrd", self.initrd)
            .with("kernel", self.kernel)
            .with("kernel_parameters", self.kernel_parameters)
    }
}

/// Returns the session whose desired state a component has after a change, or had before its deletion.
pub fn session(before: Option<&Component>, after: Option<&Component>) -> Option<EventSession> {
    let wish = &after.or(before)?.wish;
    let name = wish.session.clone().filter(|name| !name.is_empty())?;
    let tenant = wish.session_tenant.as_ref().map(|tenant| tenant.as_str().into()).unwrap_or_default();
    Some(EventSession { name, tenant })
}

/// Returns the events of a change by `actor`, in the order in which a reader expects them. `reason` is the word for the
/// rule that decided the change; empty: no rule did.
pub fn events(
    before: Option<&Component>,
    after: Option<&Component>,
    actor: Actor,
    reason: &str,
) -> Vec<ComponentEvent> {
    match (before, after) {
        (Some(before), Some(after)) => ComponentChange { before, after, actor, reason }.events(),
        (None, Some(after)) => created(after, actor, reason),
        (Some(before), None) => deleted(before),
        (None, None) => Vec::new(),
    }
}

/// A record may be created with a desired state or an error, as an operator does by a PUT.
fn created(after: &Component, actor: Actor, reason: &str) -> Vec<ComponentEvent> {
    let before = Component { generation: after.generation, ..Component::new(after.id.clone()) };
    let written = ComponentChange { before: &before, after, actor, reason }.events();
    iter::once(ComponentEvent::Created).chain(written).collect()
}

/// No trouble outlives its record.
fn deleted(before: &Component) -> Vec<ComponentEvent> {
    let ended = before.evaluation.recorded_trouble().map(ComponentEvent::TroubleEnded);
    ended.into_iter().chain([ComponentEvent::Deleted]).collect()
}

struct ComponentChange<'a> {
    before: &'a Component,
    after: &'a Component,
    actor: Actor,
    reason: &'a str,
}

impl ComponentChange<'_> {
    fn events(&self) -> Vec<ComponentEvent> {
        let mut events = Vec::new();
        events.extend(self.written());
        events.extend(self.desired_state());
        events.extend(self.staged());
        events.extend(self.inventory());
        events.extend(self.enabled());
        events.extend(self.preparation());
        events.extend(self.power_action());
        events.extend(self.report());
        events.extend(self.decision());
        events.extend(self.disabled());
        events.extend(self.trouble());
        events.extend(self.begun_anew().filter(|_| events.is_empty()));
        events
    }

    /// Members without an event of their own.
    fn written(&self) -> Option<ComponentEvent> {
        if self.actor != Actor::Client {
            return None;
        }
        let (before, after) = (self.before, self.after);
        let changed = [
            ("session", before.wish.session != after.wish.session),
            ("retry_policy", before.wish.retry_policy != after.wish.retry_policy),
            ("event_stats", self.is_attempts_written()),
            ("last_action", before.last_action() != after.last_action()),
        ];
        let members: Vec<_> = changed.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name).collect();
        (!members.is_empty()).then(|| ComponentEvent::Written { members: members.join(",").into() })
    }

    /// A write that begins the work on the node anew and has no other event.
    fn begun_anew(&self) -> Option<ComponentEvent> {
        let begins = self.actor == Actor::Client && self.before.generation != self.after.generation;
        begins.then(|| ComponentEvent::Written { members: Arc::default() })
    }

    /// A new desired state clears the counters, which needs no mention.
    fn is_attempts_written(&self) -> bool {
        self.before.power.event_stats != self.after.power.event_stats && self.after.begun_actions() > 0
    }

    fn desired_state(&self) -> Option<ComponentEvent> {
        let (before, after) =
            (self.before.wish.desired_state.as_ref(), self.after.wish.desired_state.as_ref());
        let is_assigned = self.before.wish.assignment != self.after.wish.assignment
            && !self.after.wish.assignment.is_empty();
        if !is_assigned && same_desired_state(before, after) {
            return None;
        }
        let set_by = [Action::SessionSetup, Action::ApplyStaged];
        Some(ComponentEvent::DesiredStateSet {
            session: self.after.wish.session.clone().unwrap_or_default(),
            configuration: after.and_then(|state| state.configuration.clone()).unwrap_or_default(),
            artifacts: EventArtifacts::of(self.after.desired_artifacts()),
            action: self.after.last_action().filter(|action| is_assigned && set_by.contains(action)),
        })
    }

    fn staged(&self) -> Option<ComponentEvent> {
        let before = staged(self.before);
        match (before, staged(self.after)) {
            (Some(before), None) => {
                Some(ComponentEvent::StageCleared { session: before.session.clone().unwrap_or_default() })
            }
            (_, Some(after)) if before.is_none_or(|before| !same_stage(before, after)) => {
                Some(ComponentEvent::Staged { session: after.session.clone().unwrap_or_default() })
            }
            (Some(_) | None, Some(_)) | (None, None) => None,
        }
    }

    fn inventory(&self) -> Option<ComponentEvent> {
        let is_absent = |one: &Component| matches!(one.inventory.presence, InventoryPresence::Absent { .. });
        match (self.before.inventory.locked, self.after.inventory.locked) {
            (false, true) => Some(ComponentEvent::Locked),
            (true, false) => Some(ComponentEvent::Unlocked),
            (true, true) | (false, false) => {
                (is_absent(self.after) && !is_absent(self.before)).then_some(ComponentEvent::NotListed)
            }
        }
    }

    fn enabled(&self) -> Option<ComponentEvent> {
        (self.after.is_enabled() && !self.before.is_enabled()).then_some(ComponentEvent::Enabled)
    }

    fn disabled(&self) -> Option<ComponentEvent> {
        let is_disabled = self.before.is_enabled() && !self.after.is_enabled();
        is_disabled.then(|| ComponentEvent::Disabled { reason: self.reason.into() })
    }

    fn preparation(&self) -> Option<ComponentEvent> {
        let preparation = self.after.preparation.outcome.as_ref()?;
        if self.before.preparation.outcome.as_ref() == Some(preparation) {
            return None;
        }
        let attempt = preparation.attempt;
        Some(match preparation.trouble.clone() {
            None => ComponentEvent::Prepared { attempt },
            Some(trouble) => ComponentEvent::PreparationFailed { attempt, trouble },
        })
    }

    fn power_action(&self) -> Vec<ComponentEvent> {
        const POWER_ACTIONS: [Action; 3] =
            [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully];
        let Some(action) = self.after.last_action().filter(|action| POWER_ACTIONS.contains(action)) else {
            return Vec::new();
        };
        let attempt = self.after.attempts(action);
        let has_begun = self.actor != Actor::Client && attempt > self.before.attempts(action);
        let has_failed = self.after.last_action_failed() && (has_begun || !self.before.last_action_failed());
        let trouble = self.after.power.trouble.clone();
        let began = has_begun.then_some(ComponentEvent::PowerActionBegan { action, attempt });
        // A finished component has no attempts any more; the failure of its last action was told before.
        let failed = (has_failed && attempt > 0).then_some(ComponentEvent::PowerActionFailed {
            action,
            attempt,
            trouble,
        });
        began.into_iter().chain(failed).collect()
    }

    fn report(&self) -> Option<ComponentEvent> {
        if self.before.reported.late_report != self.after.reported.late_report
            && self.after.reported.late_report.is_some()
        {
            return Some(ComponentEvent::EarlierBootReported);
        }
        let (before, after) =
            (self.before.reported.actual_state.as_ref(), self.after.reported.actual_state.as_ref()?);
        let is_reported = |state: &ActualState| {
            state.boot_artifacts.as_ref().is_some_and(|artifacts| !artifacts.is_empty())
                || state.bss_token.as_ref().is_some_and(|token| !token.is_empty())
        };
        let was_of_this_boot = self.before.reported.boot.as_ref().is_none_or(|boot| boot.reported);
        let is_of_this_boot = self.after.reported.boot.as_ref().is_none_or(|boot| boot.reported);
        if !is_reported(after) {
            let is_forgotten = before.is_some_and(is_reported)
                && self.after.last_action() == Some(Action::ActualStateCleanup);
            return is_forgotten.then_some(ComponentEvent::ReportForgotten);
        }
        let is_repeated = before.is_some_and(|before| {
            before.bss_token == after.bss_token
                && same_artifacts(before.boot_artifacts.as_deref(), after.boot_artifacts.as_deref())
        });
        let is_first = is_of_this_boot && !was_of_this_boot;
        (!is_repeated || is_first).then(|| ComponentEvent::BootReported {
            as_desired: self.after.runs_wanted(),
            artifacts: EventArtifacts::of(self.after.actual_artifacts()),
        })
    }

    fn decision(&self) -> Option<ComponentEvent> {
        let (before, after) = (self.before, self.after);
        let has_moved =
            before.phase() != after.phase() || before.status_override() != after.status_override();
        // The hold at the beginning of a generation is part of the new desired state.
        let is_consequence = self.reason.is_empty()
            && before.generation != after.generation
            && before.phase() == after.phase()
            && after.status_override() == ComponentStatus::OnHold.word();
        (has_moved && !is_consequence).then(|| ComponentEvent::Decided {
            phase: after.phase(),
            status_override: after.status_override().into(),
            reason: self.reason.into(),
        })
    }

    fn trouble(&self) -> impl Iterator<Item = ComponentEvent> {
        let (before, after) = (&self.before.evaluation, &self.after.evaluation);
        let change = TroubleChange::between(before.recorded_trouble(), after.recorded_trouble());
        let ended = change.ended.map(ComponentEvent::TroubleEnded);
        ended.into_iter().chain(change.began.map(ComponentEvent::TroubleBegan))
    }
}

/// Returns the staged state of a component, if there is any: an emptied one stages nothing.
fn staged(component: &Component) -> Option<&StagedState> {
    component.wish.staged_state.as_deref().filter(|staged| {
        staged.session.as_deref().is_some_and(|session| !session.is_empty())
            || staged.boot_artifacts.as_ref().is_some_and(|artifacts| !artifacts.is_empty())
    })
}

fn same_stage(before: &StagedState, after: &StagedState) -> bool {
    before.assignment == after.assignment
        && before.session == after.session
        && before.configuration == after.configuration
        && same_artifacts(before.boot_artifacts.as_deref(), after.boot_artifacts.as_deref())
}

fn same_desired_state(before: Option<&DesiredState>, after: Option<&DesiredState>) -> bool {
    let configuration = |state: Option<&DesiredState>| {
        state.and_then(|state| state.configuration.clone()).filter(|name| !name.is_empty())
    };
    let artifacts = |state: Option<&DesiredState>| state.and_then(|state| state.boot_artifacts.clone());
    configuration(before) == configuration(after)
        && same_artifacts(artifacts(before).as_deref(), artifacts(after).as_deref())
}

/// Whether both stand for the same boot. Absent artifacts and empty ones both stand for none.
fn same_artifacts(before: Option<&BootArtifacts>, after: Option<&BootArtifacts>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.same_texts(after),
        (None, None) => true,
        (Some(one), None) | (None, Some(one)) => one.is_empty(),
    }
}

impl ComponentEvent {
    /// Returns the event as it is shown.
    pub fn content(self) -> EventContent {
        let of = EventContent::of;
        match self {
            Self::Created => of("created"),
            Self::Deleted => of("deleted"),
            Self::DesiredStateSet { session, configuration, artifacts, action } => {
                let set = of("desired_state_set").because(action.map_or("", Action::word));
                artifacts.added_to(set.with("configuration", configuration)).with("session", session)
            }
            Self::Staged { session } => of("staged").with("session", session),
            Self::StageCleared { session } => of("stage_cleared").with("session", session),
            Self::Enabled => of("enabled"),
            Self::Disabled { reason } => of("disabled").because(reason.to_string()),
            Self::PowerActionBegan { action, attempt } => {
                of("power_action_began").because(action.word()).with("attempt", attempt.to_string())
            }
            Self::PowerActionFailed { action, attempt, trouble } => {
                let failed =
                    of("power_action_failed").because(action.word()).with("attempt", attempt.to_string());
                match trouble {
                    Some(trouble) => failed.saying(trouble.text()),
                    None => failed,
                }
            }
            Self::Prepared { attempt } => of("prepared").with("attempt", attempt.to_string()),
            Self::PreparationFailed { attempt, trouble } => of("preparation_failed")
                .because(trouble.kind().word())
                .saying(trouble.text())
                .with("attempt", attempt.to_string()),
            Self::BootReported { as_desired, artifacts } => {
                let reason = if as_desired { "as_desired" } else { "differs" };
                artifacts.added_to(of("boot_reported").because(reason))
            }
            Self::EarlierBootReported => of("earlier_boot_reported"),
            Self::ReportForgotten => of("report_forgotten"),
            Self::Decided { phase, status_override, reason } => of("decided")
                .because(reason.to_string())
                .with("phase", phase.word())
                .with("status_override", status_override),
            Self::TroubleBegan(trouble) => trouble.began(),
            Self::TroubleEnded(trouble) => trouble.ended(),
            Self::Locked => of("locked"),
            Self::Unlocked => of("unlocked"),
            Self::NotListed => of("not_listed"),
            Self::Written { members } => of("written").with("members", members),
        }
    }
}

#[cfg(test)]
mod tests;
