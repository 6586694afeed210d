//! Members of a component, grouped by their authors.
//!
//! Each group has one author, whose reports change that group only. Consequences for the other groups are the
//! registry's own, and stand in one place: [`Consequence`](super::report::Consequence). Clients write members of all
//! groups, by a [`ComponentPatch`](super::ComponentPatch).

use std::sync::Arc;

use crate::{
    boot::component::{
        ActualState, BegunBoot, BootPreparation, DesiredState, EventStats, InventoryPresence, LastAction,
        LateReport, NumberedToken, PauseMark, PowerTurns, StagedState, Status,
    },
    core::{
        decision::DecisionVersion,
        id::Tenant,
        shared_part::SharedPart,
        time::Timestamp,
        trouble::{
            Trouble, TroubleKind,
            recorded::{RecordedTrouble, TroubleBegin},
        },
    },
};

/// Wish for a component. Author: the session manager.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ComponentWish {
    /// Wanted state of the node.
    pub desired_state: Option<DesiredState>,
    /// Wanted state of the node once the staged session is applied.
    pub staged_state: Option<Arc<StagedState>>,
    /// Name of the session that owns the node; empty: none.
    pub session: Option<Arc<str>>,
    /// Tenant of that session; `None`: unknown, the session is identified by its name alone.
    pub session_tenant: Option<Tenant>,
    /// Unique id of the session that assigned the desired state; empty once desired state or session were written by an
    /// operator.
    pub assignment: Arc<str>,
    /// Unique id of the latest session that assigned the component, whoever owns it by now.
    pub latest_assignment: Arc<str>,
    /// Context of the trace of the request that created the session which assigned the desired state; empty: none.
    pub trace: Arc<str>,
    /// Most attempts per power action; missing: the option `default_retry_policy`.
    pub retry_policy: Option<u32>,
    /// Whether Reveille acts on the node; missing counts as false.
    pub enabled: Option<bool>,
    /// Mark of the session that owns the node while that session is paused.
    pub pause: Option<Arc<PauseMark>>,
}

impl ComponentWish {
    /// Returns the name of the session that owns the node; empty: none.
    pub(crate) fn session_name(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Returns whether `other` wants the node to run the same, whoever enabled it how often.
    pub(crate) fn wants_the_same(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.desired_state.as_ref(), other.desired_state.as_ref());
        let artifacts = |desired: Option<&DesiredState>| desired?.boot_artifacts.clone();
        let configuration = |desired: Option<&DesiredState>| desired?.configuration.clone();
        let (one, another) = (artifacts(ours).unwrap_or_default(), artifacts(theirs).unwrap_or_default());
        one.same_texts(&another)
            && configuration(ours).unwrap_or_default() == configuration(theirs).unwrap_or_default()
    }

    /// Returns the name of the session that staged a state; empty: none.
    pub(crate) fn staged_session_name(&self) -> &str {
        self.staged_state.as_ref().and_then(|staged| staged.session.as_deref()).unwrap_or_default()
    }
}

/// Decision about a component. Author: the status evaluator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ComponentEvaluation {
    /// Phase of the node, and its status override.
    pub status: Option<Status>,
    /// Error text for operators; empty: no error.
    pub error: Option<Arc<str>>,
    /// Rules and options of the last decision about the current wish.
    pub decided_by: DecisionVersion,
    /// Kind of the trouble that `error` describes; meaningless without a text.
    pub error_kind: TroubleKind,
    /// Begin of that trouble; `None`: there is no trouble, or an earlier version recorded it.
    pub error_begin: Option<Arc<TroubleBegin>>,
    /// Whether nothing was decided yet by evidence of this generation, so that no action on the node may begin. The
    /// phase is of the wish before.
    pub is_undecided: bool,
}

impl ComponentEvaluation {
    /// Returns the trouble that the error describes, if there is one.
    pub fn trouble(&self) -> Option<Trouble> {
        Trouble::new(self.error_kind, self.error.clone()?)
    }

    /// Returns the trouble with its begin, if there is one.
    pub(crate) fn recorded_trouble(&self) -> Option<RecordedTrouble> {
        let trouble = self.trouble()?;
        Some(RecordedTrouble::new(&trouble, self.error_begin.as_deref()))
    }

    /// Notes when the trouble began that the component shows after a change at `now`.
    pub(crate) fn note_begin(&mut self, before: &Self, now: Timestamp) {
        let (shown, begin) = (before.trouble(), before.error_begin.as_ref());
        self.error_begin = TroubleBegin::after(shown.as_ref(), begin, self.trouble().as_ref(), now);
    }
}

/// Power actions on a component. Author: the power controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ComponentPower {
    /// Last action on the node.
    pub last_action: Option<LastAction>,
    /// Number of attempts at each power action.
    pub event_stats: Option<EventStats>,
    /// Trouble with the last power action; `None`: there is none.
    pub trouble: Option<Arc<Trouble>>,
    /// Number of turns of the power for the current wish.
    pub turns: PowerTurns,
    /// Whether the last action on the power began before this generation.
    pub acted_before: bool,
}

/// Preparation of the boots of a component. Author: the config coordinator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ComponentPreparation {
    /// Outcome of the last preparation of a boot.
    pub outcome: Option<BootPreparation>,
    /// Token that was prepared last.
    pub token: Option<NumberedToken>,
}

/// Boots that the node reported. Author: the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ReportedBoots {
    /// Boot that the node reported.
    pub actual_state: Option<ActualState>,
    /// Boot that began last, to which a report has to belong.
    pub boot: Option<SharedPart<BegunBoot>>,
    /// Last report of a boot that was over when the report arrived.
    pub late_report: Option<Arc<LateReport>>,
    /// Time of the last report of the [boot](Self::boot), which shows that the node ran then; `None`: none has arrived
    /// since the node was switched last. Unlike the actual state it outlasts a new session.
    pub running_report: Option<Timestamp>,
}

/// Answers of the inventory about a component. Author: the component registry, from its inventory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ComponentInventory {
    /// Whether the inventory lists the node, by answers since the generation began.
    pub presence: InventoryPresence,
    /// Whether the inventory locks the node against power operations.
    pub locked: bool,
}
