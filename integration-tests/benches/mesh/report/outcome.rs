//! Outcome of one row on one database.

use serde::{Deserialize, Serialize};

use super::host::{self, BenchHost};
use crate::{
    samples::percentile,
    targets::{PowerSource, RowTarget},
};

/// Outcome of one row on one database, with its date and commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowOutcome {
    /// Time of the measurement, in UTC.
    pub date: String,
    /// Measured commit.
    pub commit: String,
    /// Scale of the measurement.
    pub scale: String,
    /// The average load of the last minute when the last value was there.
    pub load: f64,
    /// Number of components, nodes, streams or decisions.
    pub n: usize,
    /// Values, one for each run.
    pub values: Vec<f64>,
    /// Duration of the measurement, with the rows measured together but without the set-up.
    pub seconds: f64,
    /// The power service. Missing in earlier reports.
    #[serde(default)]
    pub power: Option<String>,
    /// Reason why there is no value, or why there are not more.
    pub trouble: Option<String>,
}

impl RowOutcome {
    /// An outcome without values.
    pub fn new(host: &BenchHost, scale: &str, target: &RowTarget) -> Self {
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

    /// Returns whether a measurement was tried, rather than skipped with a reason.
    pub fn was_tried(&self) -> bool {
        self.seconds > 0.0
    }

    /// Returns whether there are values.
    pub fn is_measured(&self) -> bool {
        !self.values.is_empty()
    }

    /// Returns whether the outcome belongs to the row's present power service. In the reports without this field no row
    /// used one as shipped, or none at all.
    pub fn is_of(&self, target: &RowTarget) -> bool {
        match &self.power {
            Some(power) => power == target.power.word(),
            None => {
                !matches!(target.power, PowerSource::AsShipped | PowerSource::TenTimes | PowerSource::Redfish)
            }
        }
    }

    /// The smallest value, the typical one, and the largest.
    pub fn spread(&self, target: &RowTarget) -> (f64, f64, f64) {
        let mut values = self.values.clone();
        (percentile(&mut values, 0.0), target.typical(&self.values), percentile(&mut values, 100.0))
    }
}
