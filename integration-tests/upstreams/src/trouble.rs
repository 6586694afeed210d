//! Trouble of a whole system: its kind, its requests, its number of times.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::service::Service;

/// Trouble of one system.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTrouble {
    /// System in trouble.
    pub service: Service,
    /// Method of the affected requests; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Affected operation, such as `POST /transitions`; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Number of affected requests; `None`: all until the trouble is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Seconds from its addition to its end; `None`: until the trouble is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Effect on each request.
    pub effect: TroubleEffect,
}

/// Effect on a request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TroubleEffect {
    /// Refused without effect.
    Status {
        /// The status.
        code: u16,
        /// The body of the refusal.
        #[serde(default)]
        body: String,
        /// Seconds in a `Retry-After` header; `None`: no such header.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// Handled later.
    Delay {
        /// Length of the delay.
        seconds: f64,
    },
    /// Received, never handled or answered.
    Hang,
    /// Handled, never answered.
    HangAfter,
    /// The connection is cut before it has an effect.
    Drop,
    /// Handled; the connection is cut instead of an answer.
    DropAfter,
    /// Handled twice, as when a proxy repeats the request; the second answer is returned.
    Twice,
    /// Handled; the answer is swapped with that of the next request for the same operation.
    Swap,
    /// Handled; the answer is that of the first request for the same operation.
    Repeat,
    /// The power service accepts a transition, and the worker that is to perform it dies before it begins.
    WorkerDies,
    /// The answer trickles.
    Slow {
        /// Rate of the answer.
        bytes_per_second: u32,
    },
    /// The answer is preceded by so much white space, which is valid JSON.
    Oversized {
        /// Size of the white space.
        megabytes: u64,
    },
    /// The answer ends in the middle.
    MalformedJson,
    /// The answer is no text.
    InvalidUtf8,
    /// Lists leave out some of their members, always the same ones.
    Omit {
        /// Share of the members, from 0 to 1.
        fraction: f64,
    },
    /// Requests without this token are refused with 401.
    RequireBearer {
        /// The token.
        token: String,
    },
    /// Requests without this header are refused with 401; the value is `Basic` and the encoded credentials.
    RequireAuthorization {
        /// The whole value of the header.
        value: String,
    },
    /// Requests that are neither signed nor presigned are refused with 403. The signature is not checked.
    RequireSignature,
}

impl ServiceTrouble {
    /// Creates trouble with every request, until it is cleared.
    pub fn new(service: Service, effect: TroubleEffect) -> Self {
        Self { service, method: None, operation: None, count: None, seconds: None, effect }
    }

    /// Creates trouble in which every request is answered with this status.
    pub fn status(service: Service, code: u16) -> Self {
        Self::new(service, TroubleEffect::Status { code, body: String::new(), retry_after: None })
    }

    /// Limits the trouble to this operation, such as `POST /transitions`.
    #[must_use]
    pub fn only(self, operation: &str) -> Self {
        Self { operation: Some(operation.to_owned()), ..self }
    }

    /// Limits the trouble to so many requests.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { count: Some(count), ..self }
    }

    /// Limits the trouble to this time from when it is added.
    #[must_use]
    pub fn lasting(self, duration: Duration) -> Self {
        Self { seconds: Some(duration.as_secs_f64()), ..self }
    }

    fn concerns(&self, service: Service, method: &str, operation: &str) -> bool {
        let is =
            |wanted: &Option<String>, given: &str| wanted.as_deref().is_none_or(|wanted| wanted == given);
        self.service == service && is(&self.method, method) && is(&self.operation, operation)
    }
}

/// All trouble there is, by number.
#[derive(Debug, Default)]
pub(crate) struct TroubleList {
    all: BTreeMap<u64, ActiveTrouble>,
    last: u64,
}

#[derive(Debug)]
struct ActiveTrouble {
    trouble: ServiceTrouble,
    /// End of the trouble; `None`: when it is cleared.
    until: Option<Duration>,
}

impl ActiveTrouble {
    fn is_over(&self, now: Duration) -> bool {
        self.trouble.count == Some(0) || self.until.is_some_and(|until| until <= now)
    }
}

/// Course of one request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CallCourse {
    pub(crate) delay: Duration,
    /// Refuses the request unless it meets the requirement.
    pub(crate) requirements: Vec<TroubleEffect>,
    /// Instead of handling it.
    pub(crate) instead: Option<TroubleEffect>,
    /// Once it was handled.
    pub(crate) after: Option<TroubleEffect>,
    pub(crate) omit: f64,
    pub(crate) twice: bool,
    pub(crate) worker_dies: bool,
}

impl TroubleList {
    /// Adds trouble and returns its number.
    pub(crate) fn add(&mut self, trouble: ServiceTrouble, now: Duration) -> u64 {
        self.last += 1;
        let lasts = trouble.seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        self.all.insert(self.last, ActiveTrouble { trouble, until: lasts.map(|lasts| now + lasts) });
        self.last
    }

    /// Ends one; whether there was one.
    pub(crate) fn clear(&mut self, number: u64) -> bool {
        self.all.remove(&number).is_some()
    }

    /// Ends all of a system, or of all systems.
    pub(crate) fn clear_all(&mut self, service: Option<Service>) {
        self.all.retain(|_, present| service.is_some_and(|service| service != present.trouble.service));
    }

    /// Trouble that is not over, by number.
    pub(crate) fn list(&self, now: Duration) -> BTreeMap<u64, &ServiceTrouble> {
        let present = self.all.iter().filter(|(_, present)| !present.is_over(now));
        present.map(|(number, present)| (*number, &present.trouble)).collect()
    }

    /// Chooses the course of a request, and uses up trouble with a count.
    pub(crate) fn course(
        &mut self,
        service: Service,
        method: &str,
        operation: &str,
        now: Duration,
    ) -> CallCourse {
        let mut course = CallCourse::default();
        self.all.retain(|_, present| !present.is_over(now));
        for ActiveTrouble { trouble, .. } in self.all.values_mut() {
            if trouble.concerns(service, method, operation) && course.takes(&trouble.effect) {
                trouble.count = trouble.count.map(|count| count - 1);
            }
        }
        self.all.retain(|_, present| !present.is_over(now));
        course
    }
}

impl CallCourse {
    /// Adds an effect; of those that exclude each other the first counts.
    fn takes(&mut self, effect: &TroubleEffect) -> bool {
        let place = match effect {
            TroubleEffect::Delay { seconds } => {
                self.delay += Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                return true;
            }
            TroubleEffect::Omit { fraction } => {
                self.omit = fraction.max(self.omit);
                return true;
            }
            TroubleEffect::Twice => {
                self.twice = true;
                return true;
            }
            TroubleEffect::WorkerDies => {
                self.worker_dies = true;
                return true;
            }
            TroubleEffect::RequireBearer { .. }
            | TroubleEffect::RequireAuthorization { .. }
            | TroubleEffect::RequireSignature => {
                self.requirements.push(effect.clone());
                return true;
            }
            TroubleEffect::Status { .. } | TroubleEffect::Hang | TroubleEffect::Drop => &mut self.instead,
            TroubleEffect::HangAfter
            | TroubleEffect::DropAfter
            | TroubleEffect::Swap
            | TroubleEffect::Repeat
            | TroubleEffect::Slow { .. }
            | TroubleEffect::Oversized { .. }
            | TroubleEffect::MalformedJson
            | TroubleEffect::InvalidUtf8 => &mut self.after,
        };
        let free = place.is_none();
        if free {
            *place = Some(effect.clone());
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_hits_matching_requests_as_often_as_set() {
        let mut troubles = TroubleList::default();
        let start = Duration::ZERO;
        troubles.add(ServiceTrouble::status(Service::Pcs, 503).only("POST /transitions").times(2), start);
        troubles.add(ServiceTrouble::new(Service::Pcs, TroubleEffect::Delay { seconds: 1.0 }), start);
        let mut course = |operation: &str| {
            let course = troubles.course(Service::Pcs, "POST", operation, start);
            (course.delay.as_secs(), course.instead.is_some())
        };
        assert_eq!(course("POST /power-status"), (1, false));
        let seen = [0; 3].map(|_| course("POST /transitions"));
        assert_eq!(seen, [(1, true), (1, true), (1, false)]);
        assert_eq!(troubles.course(Service::Hsm, "POST", "POST /transitions", start), CallCourse::default());
        troubles.clear_all(Some(Service::Bss));
        assert_eq!(troubles.list(start).len(), 1);
        troubles.clear_all(None);
        assert!(troubles.list(start).is_empty());
    }

    #[test]
    fn trouble_that_lasts_ends_by_itself() {
        let mut troubles = TroubleList::default();
        let second = Duration::from_secs;
        troubles.add(ServiceTrouble::status(Service::Cfs, 400).lasting(second(3)), second(10));
        let seen = [10, 12, 13].map(|now| {
            let course = troubles.course(Service::Cfs, "GET", "GET /components", second(now));
            (course.instead.is_some(), troubles.list(second(now)).len())
        });
        assert_eq!(seen, [(true, 1), (true, 1), (false, 0)]);
    }

    #[test]
    fn exclusive_troubles_take_effect_in_order() {
        let mut troubles = TroubleList::default();
        let start = Duration::ZERO;
        troubles.add(ServiceTrouble::status(Service::Cfs, 500).times(1), start);
        troubles.add(ServiceTrouble::new(Service::Cfs, TroubleEffect::Hang).times(1), start);
        let mut instead = || troubles.course(Service::Cfs, "GET", "GET /components", start).instead;
        assert!(matches!(instead(), Some(TroubleEffect::Status { code: 500, .. })));
        assert_eq!(instead(), Some(TroubleEffect::Hang));
        assert_eq!(instead(), None);
    }

    #[test]
    fn trouble_is_written_as_json() {
        let text = r#"{"service":"pcs","operation":"POST /transitions","count":3,"effect":{"kind":"status","code":503}}"#;
        let read: ServiceTrouble = serde_json::from_str(text).expect("the form that the documentation gives");
        assert_eq!(read, ServiceTrouble::status(Service::Pcs, 503).only("POST /transitions").times(3));
        assert!(
            serde_json::from_str::<ServiceTrouble>(r#"{"service":"pcs","effect":{"kind":"hangs"}}"#).is_err()
        );
    }
}
