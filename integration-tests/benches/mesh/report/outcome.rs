//! What came of one row on one database.

use serde::{Deserialize, Serialize};

use super::host::{self, Host};
use crate::samples::{median, percentile};

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
    /// Why there is no value, or why there are not more.
    pub trouble: Option<String>,
}

impl Outcome {
    /// One without values.
    pub fn new(host: &Host, scale: &str) -> Self {
        Self {
            date: host::now(),
            commit: host.commit.clone(),
            scale: scale.to_owned(),
            load: host::load(),
            n: 0,
            values: Vec::new(),
            seconds: 0.0,
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

    /// The smallest value, the one in the middle, and the largest.
    pub fn spread(&self) -> (f64, f64, f64) {
        let mut values = self.values.clone();
        (percentile(&mut values, 0.0), median(&self.values), percentile(&mut values, 100.0))
    }
}
