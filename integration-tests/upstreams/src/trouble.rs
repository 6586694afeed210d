//! Trouble that a whole system has: what kind, for which requests, how often.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::service::Service;

/// Trouble of one system.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// Who has it.
    pub service: Service,
    /// Only requests of this method; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Only this operation, such as `POST /transitions`; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How many requests have it; none: all until it is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// How many seconds it lasts from when it is added; none: until it is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What happens.
    pub effect: Effect,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// It is refused and has no effect.
    Status {
        /// The status.
        code: u16,
        /// The body of the refusal.
        #[serde(default)]
        body: String,
        /// Seconds in a `Retry-After` header; none: no such header.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// It is handled later.
    Delay {
        /// By so much.
        seconds: f64,
    },
    /// It is read and nothing else ever happens.
    Hang,
    /// It has its effect, and no answer ever comes.
    HangAfter,
    /// The connection is cut before it has an effect.
    Drop,
    /// It has its effect, and the connection is cut instead of an answer.
    DropAfter,
    /// It has its effect twice, as when a proxy repeats it, and the second answer is given.
    Twice,
    /// It has its effect, and its answer goes to the next request for the same operation, whose answer it gets instead.
    Swap,
    /// It has its effect, and it gets the answer that the first request for the same operation got.
    Repeat,
    /// The power service accepts a transition, and the worker that is to perform it dies before it begins.
    WorkerDies,
    /// The answer trickles.
    Slow {
        /// This fast.
        bytes_per_second: u32,
    },
    /// The answer is preceded by so much white space, which is valid JSON.
    Oversized {
        /// This much.
        megabytes: u64,
    },
    /// The answer ends in the middle.
    MalformedJson,
    /// The answer is no text.
    InvalidUtf8,
    /// Lists leave out some of their members, always the same ones.
    Omit {
        /// This much of them, from 0 to 1.
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

impl Trouble {
    /// Trouble with every request, until it is cleared.
    pub fn new(service: Service, effect: Effect) -> Self {
        Self { service, method: None, operation: None, count: None, seconds: None, effect }
    }

    /// Every request is answered with this status.
    pub fn status(service: Service, code: u16) -> Self {
        Self::new(service, Effect::Status { code, body: String::new(), retry_after: None })
    }

    /// Only with this operation, such as `POST /transitions`.
    #[must_use]
    pub fn only(self, operation: &str) -> Self {
        Self { operation: Some(operation.to_owned()), ..self }
    }

    /// Only so many times.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { count: Some(count), ..self }
    }

    /// Only for so long from when it is added.
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
pub(crate) struct Troubles {
    all: BTreeMap<u64, Present>,
    last: u64,
}

#[derive(Debug)]
struct Present {
    trouble: Trouble,
    /// When it ends; none: when it is cleared.
    until: Option<Duration>,
}

impl Present {
    fn is_over(&self, now: Duration) -> bool {
        self.trouble.count == Some(0) || self.until.is_some_and(|until| until <= now)
    }
}

/// What is to happen to one request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Course {
    pub(crate) delay: Duration,
    /// Refuses the request unless it meets the requirement.
    pub(crate) requirements: Vec<Effect>,
    /// Instead of handling it.
    pub(crate) instead: Option<Effect>,
    /// Once it was handled.
    pub(crate) after: Option<Effect>,
    pub(crate) omit: f64,
    pub(crate) twice: bool,
    pub(crate) worker_dies: bool,
}

impl Troubles {
    /// Adds trouble and gives its number.
    pub(crate) fn add(&mut self, trouble: Trouble, now: Duration) -> u64 {
        self.last += 1;
        let lasts = trouble.seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        self.all.insert(self.last, Present { trouble, until: lasts.map(|lasts| now + lasts) });
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

    /// Those that last, by number.
    pub(crate) fn list(&self, now: Duration) -> BTreeMap<u64, &Trouble> {
        let present = self.all.iter().filter(|(_, present)| !present.is_over(now));
        present.map(|(number, present)| (*number, &present.trouble)).collect()
    }

    /// What is to happen to a request. Trouble that is counted is used up by it.
    pub(crate) fn course(
        &mut self,
        service: Service,
        method: &str,
        operation: &str,
        now: Duration,
    ) -> Course {
        let mut course = Course::default();
        self.all.retain(|_, present| !present.is_over(now));
        for Present { trouble, .. } in self.all.values_mut() {
            if trouble.concerns(service, method, operation) && course.takes(&trouble.effect) {
                trouble.count = trouble.count.map(|count| count - 1);
            }
        }
        self.all.retain(|_, present| !present.is_over(now));
        course
    }
}

impl Course {
    /// Adds an effect; of those that exclude each other the first counts.
    fn takes(&mut self, effect: &Effect) -> bool {
        let place = match effect {
            Effect::Delay { seconds } => {
                self.delay += Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                return true;
            }
            Effect::Omit { fraction } => {
                self.omit = fraction.max(self.omit);
                return true;
            }
            Effect::Twice => {
                self.twice = true;
                return true;
            }
            Effect::WorkerDies => {
                self.worker_dies = true;
                return true;
            }
            Effect::RequireBearer { .. } | Effect::RequireAuthorization { .. } | Effect::RequireSignature => {
                self.requirements.push(effect.clone());
                return true;
            }
            Effect::Status { .. } | Effect::Hang | Effect::Drop => &mut self.instead,
            Effect::HangAfter
            | Effect::DropAfter
            | Effect::Swap
            | Effect::Repeat
            | Effect::Slow { .. }
            | Effect::Oversized { .. }
            | Effect::MalformedJson
            | Effect::InvalidUtf8 => &mut self.after,
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
    fn trouble_meets_the_requests_it_is_for_as_often_as_it_says() {
        let mut troubles = Troubles::default();
        let start = Duration::ZERO;
        troubles.add(Trouble::status(Service::Pcs, 503).only("POST /transitions").times(2), start);
        troubles.add(Trouble::new(Service::Pcs, Effect::Delay { seconds: 1.0 }), start);
        let mut course = |operation: &str| {
            let course = troubles.course(Service::Pcs, "POST", operation, start);
            (course.delay.as_secs(), course.instead.is_some())
        };
        assert_eq!(course("POST /power-status"), (1, false));
        let seen = [0; 3].map(|_| course("POST /transitions"));
        assert_eq!(seen, [(1, true), (1, true), (1, false)]);
        assert_eq!(troubles.course(Service::Hsm, "POST", "POST /transitions", start), Course::default());
        troubles.clear_all(Some(Service::Bss));
        assert_eq!(troubles.list(start).len(), 1);
        troubles.clear_all(None);
        assert!(troubles.list(start).is_empty());
    }

    #[test]
    fn trouble_that_lasts_ends_by_itself() {
        let mut troubles = Troubles::default();
        let second = Duration::from_secs;
        troubles.add(Trouble::status(Service::Cfs, 400).lasting(second(3)), second(10));
        let seen = [10, 12, 13].map(|now| {
            let course = troubles.course(Service::Cfs, "GET", "GET /components", second(now));
            (course.instead.is_some(), troubles.list(second(now)).len())
        });
        assert_eq!(seen, [(true, 1), (true, 1), (false, 0)]);
    }

    #[test]
    fn of_trouble_that_excludes_each_other_the_first_happens_and_the_other_waits() {
        let mut troubles = Troubles::default();
        let start = Duration::ZERO;
        troubles.add(Trouble::status(Service::Cfs, 500).times(1), start);
        troubles.add(Trouble::new(Service::Cfs, Effect::Hang).times(1), start);
        let mut instead = || troubles.course(Service::Cfs, "GET", "GET /components", start).instead;
        assert!(matches!(instead(), Some(Effect::Status { code: 500, .. })));
        assert_eq!(instead(), Some(Effect::Hang));
        assert_eq!(instead(), None);
    }

    #[test]
    fn trouble_is_written_as_json() {
        let text = r#"{"service":"pcs","operation":"POST /transitions","count":3,"effect":{"kind":"status","code":503}}"#;
        let read: Trouble = serde_json::from_str(text).expect("the form that the documentation gives");
        assert_eq!(read, Trouble::status(Service::Pcs, 503).only("POST /transitions").times(3));
        assert!(serde_json::from_str::<Trouble>(r#"{"service":"pcs","effect":{"kind":"hangs"}}"#).is_err());
    }
}
