//! What came of one row on one database.

use serde::{Deserialize, Serialize};

use super::host::{self, Host};
use crate::{
    samples::percentile,
    targets::{Power, Target},
};

/// What came of one row on one database, when, and of which program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// When it was measured, in UTC.
    pub date: String,
    /// Of which commit.
    pub commit: String,
    /// How thoroughly.
    pub scale: String,
    /// The average load of the last minute when the last value was there.
    pub load: f64,
    /// What it was measured on: components, nodes, streams or decisions.
    pub n: usize,
    /// One for each run.
    pub values: Vec<f64>,
    /// How long the measurement took, with the rows that it was made together with but without what was set up for it.
    pub seconds: f64,
    /// The power service that it was measured with. Earlier reports do not say it.
    #[serde(default)]
    pub power: Option<String>,
    /// Why there is no value, or why there are not more.
    pub trouble: Option<String>,
}

impl Outcome {
    /// One without values.
    pub fn new(host: &Host, scale: &str, target: &Target) -> Self {
        Self {
            date: host::now(),
            commit: host.commit.clone(),
            scale: scale.to_owned(),
            load: host::load(),
            n: 0,
            values: Vec::new(),
            seconds: 0.0,
            power: Some(target.power.word().to_owned()),
            trouble: None,
        }
    }

    /// Whether somebody tried to measure it, and not only said why not.
    pub fn was_tried(&self) -> bool {
        self.seconds > 0.0
    }

    /// Whether there are values.
    pub fn is_measured(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether it is of the power service that the row is measured with now. Before reports said which it was, nobody
    /// measured with one as shipped, and nobody without any power service.
    pub fn is_of(&self, target: &Target) -> bool {
        match &self.power {
            Some(power) => power == target.power.word(),
            None => !matches!(target.power, Power::AsShipped | Power::TenTimes | Power::Redfish),
        }
    }

    /// The smallest value, the typical one, and the largest.
    pub fn spread(&self, target: &Target) -> (f64, f64, f64) {
        let mut values = self.values.clone();
        (percentile(&mut values, 0.0), target.typical(&self.values), percentile(&mut values, 100.0))
    }
}
