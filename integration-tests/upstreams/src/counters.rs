//! Counts of calls and of the nodes they were about: the proof of economy.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use serde::Serialize;

use crate::service::Service;

/// Requests that are remembered one by one: a large fleet's boot, at most a few megabytes.
const LONGEST_LOG: usize = 20_000;

/// Number of calls of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallCount {
    /// System that was called.
    pub service: Service,
    /// Method and path, such as `GET /transitions/{id}`; `unknown` where the system has no such operation.
    pub operation: &'static str,
    /// Requests that arrived, answered or not.
    pub requests: u64,
    /// Requests that were refused or got no answer.
    pub failed: u64,
    /// Things, such as nodes, that those which were handled were about, together.
    pub items: u64,
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenCall {
    /// Seconds since the start.
    pub at: f64,
    /// System that was called.
    pub service: Service,
    /// Method and path pattern.
    pub operation: &'static str,
    /// Path and query as they were written.
    pub target: String,
    /// Status of the answer; 0: no answer.
    pub status: u16,
    /// Number of items in the request.
    pub items: usize,
    /// Header `traceparent`; empty: there was none.
    pub trace: String,
}

/// All counts, and the latest requests.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    counts: HashMap<(Service, &'static str), CallCount>,
    log: VecDeque<SeenCall>,
}

impl CallCounters {
    /// Notes that a request arrived.
    pub(crate) fn arrived(&mut self, service: Service, operation: &'static str) {
        self.count(service, operation).requests += 1;
    }

    /// Records the end of a request.
    pub(crate) fn ended(&mut self, at: Duration, seen: SeenCall) {
        let count = self.count(seen.service, seen.operation);
        count.items += seen.items as u64;
        count.failed += u64::from(!(100..400).contains(&seen.status));
        if self.log.len() == LONGEST_LOG {
            self.log.pop_front();
        }
        self.log.push_back(SeenCall { at: at.as_secs_f64(), ..seen });
    }

    fn count(&mut self, service: Service, operation: &'static str) -> &mut CallCount {
        let nothing = CallCount { service, operation, requests: 0, failed: 0, items: 0 };
        self.counts.entry((service, operation)).or_insert(nothing)
    }

    /// All counts, by system and operation.
    pub(crate) fn list(&self) -> Vec<CallCount> {
        let mut counts: Vec<_> = self.counts.values().cloned().collect();
        counts.sort_by_key(|count| (count.service, count.operation));
        counts
    }

    pub(crate) fn log(&self) -> Vec<SeenCall> {
        self.log.iter().cloned().collect()
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_calls_and_forgets_the_oldest_requests() {
        let mut counters = CallCounters::default();
        for index in 0..LONGEST_LOG + 5 {
            let status = if index % 2 == 0 { 200 } else { 0 };
            let operation = "POST /transitions";
            let target = index.to_string();
            counters.arrived(Service::Pcs, operation);
            let (service, trace) = (Service::Pcs, String::new());
            let seen = SeenCall { at: 0.0, service, operation, target, status, items: 2, trace };
            counters.ended(Duration::ZERO, seen);
        }
        let [count] = counters.list().try_into().expect("one operation");
        assert_eq!((count.requests, count.failed, count.items), (20_005, 10_002, 40_010));
        assert_eq!((counters.log().len(), counters.log()[0].target.as_str()), (LONGEST_LOG, "5"));
    }
}
