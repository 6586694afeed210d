//! Guards readings against transitions of other clients that began unnoticed: a reading that is news counts only after the
//! upstream was asked for its transitions. A node passes through any power while such a transition is open.

use std::collections::HashMap;

use proto::power::PowerReading;

use super::NodeQuery;
use crate::{
    convert::AskedFor,
    driver::{DriverFailure, NodeReading, PowerUpstream},
    engine::SharedEngine,
    known::DecisionData,
    runtime::{LookRequests, look},
};

/// Knowledge and means of the task that reads power, which every query about power shares.
#[derive(Clone)]
pub(crate) struct ReadingGuard {
    pub(super) known: DecisionData,
    pub(super) driver: PowerUpstream,
    pub(super) engine: SharedEngine,
    looks: LookRequests,
}

impl ReadingGuard {
    pub(crate) fn new(
        known: DecisionData,
        driver: PowerUpstream,
        engine: SharedEngine,
        looks: LookRequests,
    ) -> Self {
        Self { known, driver, engine, looks }
    }

    /// Reads the power of `nodes`. Where that brings news, the engine has learnt of all transitions of other clients that were
    /// open meanwhile before this returns.
    pub(super) async fn read(
        &self,
        nodes: &[NodeQuery],
    ) -> Result<Vec<(String, NodeReading)>, DriverFailure> {
        let ids = nodes.iter().map(|node| node.id.as_str().to_owned()).collect();
        let answer = self.driver.power(ids, self.known.upstream_deadline()).await?;
        if self.driver.lists() && self.has_news(nodes, &answer) {
            look(&self.looks).await?;
        }
        Ok(answer)
    }

    fn has_news(&self, nodes: &[NodeQuery], answer: &[(String, NodeReading)]) -> bool {
        let asked_for: HashMap<_, _> = nodes.iter().map(|node| (node.id.as_str(), node.asked_for)).collect();
        answer.iter().any(|(id, reading)| {
            asked_for.get(id.as_str()).is_some_and(|asked_for| self.is_news(id, reading, Some(*asked_for)))
        })
    }

    /// Returns whether a pushed reading is no evidence before the node is read again.
    pub(super) fn is_unguarded(&self, id: &str, reading: &NodeReading) -> bool {
        self.driver.lists() && !self.engine.lock().nodes.is_followed(id) && self.is_news(id, reading, None)
    }

    /// Returns whether a reading shows a power that is not on record, for the state that it was `asked_for` if it was. A node
    /// that is known to be held by another client gets no evidence from any reading.
    fn is_news(&self, id: &str, reading: &NodeReading, asked_for: Option<AskedFor>) -> bool {
        let shows_power = match reading.reading {
            PowerReading::On | PowerReading::Off => true,
            PowerReading::Unspecified | PowerReading::Undefined | PowerReading::Missing => false,
        };
        if !shows_power || self.engine.lock().nodes.is_held_by_another(id) {
            return false;
        }
        self.known.state(id).is_none_or(|state| {
            state.reading() != reading.reading
                || asked_for.is_some_and(|asked_for| asked_for != AskedFor::by(&state))
        })
    }
}
