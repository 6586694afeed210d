//! What was asked, how often, and about how much: the proof of economy.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use serde::Serialize;

use crate::service::Service;

/// Requests that are remembered one by one: a large fleet's boot, at most a few megabytes.
const LONGEST_LOG: usize = 20_000;

/// How often one operation was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Of whom.
    pub service: Service,
    /// Method and path, such as `GET /transitions/{id}`; `unknown` where the system has no such operation.
    pub operation: &'static str,
    /// Requests that were seen, whatever came of them.
    pub requests: u64,
    /// Those that were refused or got no answer.
    pub failed: u64,
    /// Things, such as nodes, that those which were handled were about, together.
    pub items: u64,
}

/// One request that was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Seconds since the start.
    pub at: f64,
    /// Of whom.
    pub service: Service,
    /// Method and path pattern.
    pub operation: &'static str,
    /// Path and query as they were written.
    pub target: String,
    /// What was answered; 0: nothing.
    pub status: u16,
    /// How many things it was about.
    pub items: usize,
}

/// All counts, and the latest requests.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: HashMap<(Service, &'static str), Count>,
    log: VecDeque<Seen>,
}

impl Counters {
    /// Notes that a request arrived.
    pub(crate) fn arrived(&mut self, service: Service, operation: &'static str) {
        self.count(service, operation).requests += 1;
    }

    /// Notes what came of it.
    pub(crate) fn ended(&mut self, at: Duration, seen: Seen) {
        let count = self.count(seen.service, seen.operation);
        count.items += seen.items as u64;
        count.failed += u64::from(!(100..400).contains(&seen.status));
        if self.log.len() == LONGEST_LOG {
            self.log.pop_front();
        }
        self.log.push_back(Seen { at: at.as_secs_f64(), ..seen });
    }

    fn count(&mut self, service: Service, operation: &'static str) -> &mut Count {
        let nothing = Count { service, operation, requests: 0, failed: 0, items: 0 };
        self.counts.entry((service, operation)).or_insert(nothing)
    }

    /// All counts, by system and operation.
    pub(crate) fn list(&self) -> Vec<Count> {
        let mut counts: Vec<_> = self.counts.values().cloned().collect();
        counts.sort_by_key(|count| (count.service, count.operation));
        counts
    }

    pub(crate) fn log(&self) -> Vec<Seen> {
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
    fn counts_what_was_asked_and_forgets_the_oldest_requests() {
        let mut counters = Counters::default();
        for index in 0..LONGEST_LOG + 5 {
            let status = if index % 2 == 0 { 200 } else { 0 };
            let operation = "POST /transitions";
            let target = index.to_string();
            counters.arrived(Service::Pcs, operation);
            let seen = Seen { at: 0.0, service: Service::Pcs, operation, target, status, items: 2 };
            counters.ended(Duration::ZERO, seen);
        }
        let [count] = counters.list().try_into().expect("one operation");
        assert_eq!((count.requests, count.failed, count.items), (20_005, 10_002, 40_010));
        assert_eq!((counters.log().len(), counters.log()[0].target.as_str()), (LONGEST_LOG, "5"));
    }
}
