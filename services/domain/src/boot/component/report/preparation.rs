//! Reports of the config coordinator.

use std::sync::Arc;

use crate::{
    boot::component::{
        Action, BootPreparation, Component, ComponentPreparation, NumberedToken,
        report::{AuthorReport, Consequence, Stale},
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};

/// Outcome of preparing a power-on. Written by the config coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparationReport {
    /// Id of the component.
    pub id: ComponentId,
    /// Generation that was prepared.
    pub generation: u64,
    /// Power-on attempt that was prepared, counted from 1.
    pub attempt: u32,
    /// Token of the boot script server; empty: no boot data were needed or the preparation failed.
    pub bss_token: Arc<str>,
    /// Number under which the registry has stored the token; 0 without a token.
    pub token_number: u64,
    /// Trouble of the preparation; `None`: it succeeded.
    pub trouble: Option<Arc<Trouble>>,
    /// Whether an upstream refused the data of this very component, which spends the power-on attempt.
    pub refused: bool,
}

/// Records the outcome of preparing a power-on. The token of the accepted boot data becomes part of the desired state.
/// An upstream that refuses the data of the component spends the attempt, once; one that does not answer spends nothing.
///
/// A report is stale when the generation has passed.
impl AuthorReport for PreparationReport {
    type Group = ComponentPreparation;

    fn group(component: &mut Component) -> &mut ComponentPreparation {
        &mut component.preparation
    }

    fn has_news(&self, component: &Component) -> Result<bool, Stale> {
        if self.generation != component.generation {
            return Err(Stale);
        }
        let known = component.preparation.outcome.as_ref();
        let known = known.filter(|known| known.generation == self.generation);
        if known.is_some_and(|known| known.attempt > self.attempt) {
            return Ok(false);
        }
        Ok(known != Some(&self.outcome()) || self.has_new_token(component) || self.spends(component))
    }

    fn write(&self, preparation: &mut ComponentPreparation, _before: &Component, _now: Timestamp) {
        preparation.outcome = Some(self.outcome());
        if let Some(token) = self.token() {
            preparation.token = Some(token);
        }
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        let token = self.token().map(|token| Consequence::TokenPrepared(token.token));
        let spent = self.spends(before).then_some(Consequence::PowerOnSpent { attempt: self.attempt });
        token.into_iter().chain(spent).collect()
    }
}

impl PreparationReport {
    fn outcome(&self) -> BootPreparation {
        BootPreparation { generation: self.generation, attempt: self.attempt, trouble: self.trouble.clone() }
    }

    fn token(&self) -> Option<NumberedToken> {
        let token = NumberedToken { token: self.bss_token.clone(), number: self.token_number };
        (!token.token.is_empty()).then_some(token)
    }

    fn has_new_token(&self, component: &Component) -> bool {
        let wanted = component.wish.desired_state.as_ref().and_then(|desired| desired.bss_token.as_ref());
        self.token().is_some_and(|token| {
            wanted != Some(&token.token) || component.preparation.token.as_ref() != Some(&token)
        })
    }

    fn spends(&self, component: &Component) -> bool {
        self.refused && self.attempt > component.attempts(Action::PoweringOn)
    }
}
