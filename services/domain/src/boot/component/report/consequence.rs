//! Effects of reports on members that have another author.

use std::sync::Arc;

use crate::{
    boot::component::{
        Action, ActualState, BegunBoot, Component, EventStats, LastAction,
        status::ComponentStatus,
        write::{
            begin_generation, begin_wish, cleared_actual_state,
            merge::{merge_actual, merge_part},
        },
    },
    core::{shared_part::SharedPart, time::Timestamp, trouble::TroubleKind},
};

/// Effect of a report on members of another author, which the registry carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consequence {
    /// A session has set the component up, which is its last action.
    SetUp,
    /// A new wish needs fresh evidence: the component is held until there is any.
    Held,
    /// The error is over.
    ErrorCleared,
    /// The component is finished or failed: no service acts on it any more.
    Disabled,
    /// The reported boot is over.
    ReportForgotten,
    /// The attempts belong to work that is over.
    AttemptsForgotten,
    /// The last action has not had its effect.
    ActionFailed,
    /// An attempt at a power-on begins a boot. Every earlier report belongs to an earlier boot: the node is off.
    BootBegan {
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// An attempt at a power-off begins: the last report does not show any more that the node runs.
    ShutdownBegan,
    /// A refusal has spent an attempt at a power-on.
    PowerOnSpent {
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// The wanted boot has a token. That is no change of the desired state (BOS reference 5.5, step 4b).
    TokenPrepared(Arc<str>),
    /// Work on the component is separate from the work before.
    GenerationBegan,
    /// The component has a new wish.
    WishBegan,
}

impl Consequence {
    pub(super) fn apply(self, component: &mut Component, now: Timestamp) {
        match self {
            Self::SetUp => {
                let (action, failed) = (Some(Action::SessionSetup), Some(false));
                component.power.last_action = Some(LastAction { action, failed, last_updated: Some(now) });
            }
            Self::Held => {
                let status = component.evaluation.status.get_or_insert_default();
                status.status_override = Some(ComponentStatus::OnHold.word().into());
            }
            Self::ErrorCleared => {
                component.evaluation.error = Some(Arc::default());
                component.evaluation.error_kind = TroubleKind::default();
            }
            Self::Disabled => component.wish.enabled = Some(false),
            Self::ReportForgotten => {
                let cleared = ActualState { last_updated: Some(now), ..cleared_actual_state() };
                merge_part(&mut component.reported.actual_state, Some(cleared), merge_actual);
            }
            Self::AttemptsForgotten => component.power.event_stats = Some(EventStats::zeros()),
            Self::ActionFailed => {
                let last = component.power.last_action.get_or_insert_default();
                (last.failed, last.last_updated) = (Some(true), Some(now));
            }
            Self::BootBegan { attempt } => {
                component.reported.boot = begun_boot(component, attempt).map(SharedPart::from);
                component.reported.running_report = None;
            }
            Self::ShutdownBegan => component.reported.running_report = None,
            Self::PowerOnSpent { attempt } => {
                component.power.event_stats.get_or_insert_default().power_on_attempts = Some(attempt);
            }
            Self::TokenPrepared(token) => {
                component.wish.desired_state.get_or_insert_default().bss_token = Some(token);
            }
            Self::GenerationBegan => begin_generation(component),
            Self::WishBegan => begin_wish(component),
        }
    }
}

fn begun_boot(component: &Component, attempt: u32) -> Option<BegunBoot> {
    let token = component.preparation.token.clone()?;
    Some(BegunBoot { generation: component.generation, attempt, token, reported: false })
}
