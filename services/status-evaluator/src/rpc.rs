//! The evaluation service: explanations, hypothetical evaluations, and a stream of decisions.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::{self as shared, Interner},
    mesh::time,
    process::clock,
    store::resource::Resource,
};
use domain::{
    boot::{
        bos::{compatibility::Compatibility, options::Options},
        component::Component,
        evaluation::evaluate,
    },
    core::invalid::Invalid,
};
use futures_util::{StreamExt, stream::BoxStream};
use proto::{
    evaluation::{
        Decision, EvaluateRequest, EvaluateResponse, ExplainRequest, ExplainResponse, WatchDecisionsRequest,
        WatchDecisionsResponse, evaluation_service_server::EvaluationService,
    },
    option,
};
use tokio::sync::broadcast;
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{convert, mirrors::EvidenceMirrors};

/// Decisions of one batch, shared by all subscribers.
pub(crate) type Announced = Arc<[Decision]>;

pub(crate) struct EvaluationRpc {
    mirrors: EvidenceMirrors,
    announced: broadcast::Sender<Announced>,
    compatibility: Compatibility,
    shutdown: CancellationToken,
}

impl EvaluationRpc {
    pub(crate) fn new(
        mirrors: EvidenceMirrors,
        announced: broadcast::Sender<Announced>,
        compatibility: Compatibility,
        shutdown: CancellationToken,
    ) -> Self {
        Self { mirrors, announced, compatibility, shutdown }
    }

    /// Returns the mirrors if they are complete: answers from half of the evidence would mislead.
    fn complete(&self) -> Result<&EvidenceMirrors, Fault> {
        match self.mirrors.lacking() {
            None => Ok(&self.mirrors),
            Some(kind) => Err(Fault::unavailable("evidence", format!("{kind} is not copied yet"))),
        }
    }
}

#[tonic::async_trait]
impl EvaluationService for EvaluationRpc {
    type WatchDecisionsStream = BoxStream<'static, Result<WatchDecisionsResponse, Status>>;

    async fn explain(&self, request: Request<ExplainRequest>) -> Result<Response<ExplainResponse>, Status> {
        let id = request.into_inner().component_id;
        let mirrors = self.complete()?;
        let component = mirrors.component(&id).ok_or_else(|| Fault::not_found(Component::KIND, &id))?;
        let decision = component.is_enabled().then(|| {
            let evidence = mirrors.evidence(&component);
            let decision = evaluate(&component, &evidence, &mirrors.options(), clock::now());
            let decision = decision.followed(&component, self.compatibility);
            convert::decision(&component.id, &decision)
        });
        Ok(Response::new(ExplainResponse {
            component: Some(shared::component::to_wire(&component)),
            power_state: mirrors.power_state(&id),
            configuration_state: mirrors.configuration_state(&id),
            decision,
        }))
    }

    async fn evaluate(
        &self,
        request: Request<EvaluateRequest>,
    ) -> Result<Response<EvaluateResponse>, Status> {
        let in_force = self.complete()?.options();
        let answer = what_if(request.into_inner(), in_force, self.compatibility);
        Ok(Response::new(answer.map_err(Fault::Invalid)?))
    }

    async fn watch_decisions(
        &self,
        request: Request<WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        let id = request.into_inner().component_id;
        let batches = BroadcastStream::new(self.announced.subscribe());
        let about = batches.filter_map(move |batch| std::future::ready(select(batch, &id)));
        Ok(Response::new(about.take_until(self.shutdown.clone().cancelled_owned()).boxed()))
    }
}

/// Evaluates the evidence in `request`.
fn what_if(
    request: EvaluateRequest,
    in_force: Options,
    compatibility: Compatibility,
) -> Result<EvaluateResponse, Invalid> {
    let component = request.component.ok_or_else(|| Invalid::new("component", "is required"))?;
    let component = shared::component::from_wire(component, &mut Interner::default())
        .map_err(|invalid| invalid.within("component"))?;
    let options = with(in_force, request.options).map_err(|invalid| invalid.within("options"))?;
    let now = request.now.map_or_else(clock::now, time::from_wire);
    let power = request.power_state;
    let configuration = request.configuration_state;
    let evidence = shared::observation::evidence(power.as_ref(), configuration.as_ref(), &component);
    let decision = evaluate(&component, &evidence, &options, now).followed(&component, compatibility);
    Ok(EvaluateResponse { decision: Some(convert::decision(&component.id, &decision)) })
}

fn with(in_force: Options, change: Option<option::Options>) -> Result<Options, Invalid> {
    match change {
        Some(change) => in_force.apply(shared::options::patch_from_wire(change)),
        None => Ok(in_force),
    }
}

/// Returns the decisions of a batch for a subscriber of the component `id`; an empty id subscribes to all. A lagging
/// subscriber gets an error rather than a gap.
fn select(
    batch: Result<Announced, BroadcastStreamRecvError>,
    id: &str,
) -> Option<Result<WatchDecisionsResponse, Status>> {
    let batch = match batch {
        Ok(batch) => batch,
        Err(BroadcastStreamRecvError::Lagged(missed)) => {
            let text = format!("too slow: {missed} batches of decisions were missed");
            return Some(Err(Status::data_loss(text)));
        }
    };
    let decisions: Vec<_> =
        batch.iter().filter(|decision| id.is_empty() || decision.id == id).cloned().collect();
    (!decisions.is_empty()).then_some(Ok(WatchDecisionsResponse { decisions }))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::{
        component::{Component, EventStats, Phase, Status as ComponentStatus},
        power::{PowerReading, PowerState},
    };

    use super::*;

    fn enabled(generation: u64) -> Component {
        Component { id: "x1".into(), enabled: Some(true), generation, ..Default::default() }
    }

    fn reading(reading: PowerReading) -> Option<PowerState> {
        Some(PowerState { reading: reading.into(), generation: 1, ..Default::default() })
    }

    #[test]
    fn an_evaluation_uses_the_evidence_of_its_request() {
        let mut exhausted = enabled(1);
        exhausted.status =
            Some(ComponentStatus { phase: Some(Phase::PoweringOff.into()), ..Default::default() });
        exhausted.event_stats =
            Some(EventStats { power_off_graceful_attempts: Some(2), ..Default::default() });
        let lenient = option::Options { default_retry_policy: Some(3), ..Default::default() };
        let wrong = option::Options { bss_read_timeout: Some(1), ..Default::default() };
        let rows = [
            ("nothing", EvaluateRequest::default()),
            (
                "a nameless component",
                EvaluateRequest { component: Some(Component::default()), ..Default::default() },
            ),
            (
                "a disabled one",
                EvaluateRequest {
                    component: Some(Component { id: "x1".into(), ..Default::default() }),
                    ..Default::default()
                },
            ),
            ("no evidence", EvaluateRequest { component: Some(enabled(1)), ..Default::default() }),
            (
                "off",
                EvaluateRequest {
                    component: Some(enabled(1)),
                    power_state: reading(PowerReading::Off),
                    ..Default::default()
                },
            ),
            (
                "off, long ago",
                EvaluateRequest {
                    component: Some(enabled(2)),
                    power_state: reading(PowerReading::Off),
                    ..Default::default()
                },
            ),
            (
                "on",
                EvaluateRequest {
                    component: Some(enabled(1)),
                    power_state: reading(PowerReading::On),
                    ..Default::default()
                },
            ),
            (
                "on, tried too often",
                EvaluateRequest {
                    component: Some(exhausted.clone()),
                    power_state: reading(PowerReading::On),
                    ..Default::default()
                },
            ),
            (
                "on, may try again",
                EvaluateRequest {
                    component: Some(exhausted),
                    power_state: reading(PowerReading::On),
                    options: Some(lenient),
                    ..Default::default()
                },
            ),
            (
                "wrong options",
                EvaluateRequest { component: Some(enabled(1)), options: Some(wrong), ..Default::default() },
            ),
        ];
        let strict = Options { default_retry_policy: 2, ..Options::default() };
        let mut seen = String::new();
        for (name, request) in rows {
            let lagged = match what_if(request, strict.clone(), Compatibility::default()) {
                Ok(answer) => {
                    let decision = answer.decision.unwrap();
                    format!("{} ({:?}, settled {})", decision.reason, decision.phase(), decision.settled)
                }
                Err(invalid) => format!("refused: {invalid}"),
            };
            seen += &format!("{name}: {lagged}\n");
        }
        expect![[r#"
            nothing: refused: component: is required
            a nameless component: refused: component.id: has 0 characters but needs at least 1
            a disabled one: not_enabled (None, settled false)
            no evidence: awaiting_power (None, settled false)
            off: off_as_wanted (None, settled true)
            off, long ago: awaiting_power (None, settled false)
            on: awaiting_configuration (None, settled false)
            on, tried too often: retries_exhausted (PoweringOff, settled true)
            on, may try again: power_off_needed (PoweringOff, settled false)
            wrong options: refused: options.bss_read_timeout: 1 is not between 10 and 86400
        "#]]
        .assert_eq(&seen);
    }

    #[test]
    fn a_subscriber_gets_its_statuses_or_the_gap() {
        let batch: Announced = ["x1", "x2"].map(|id| Decision { id: id.into(), ..Default::default() }).into();
        let ids = |id: &str| {
            let response = select(Ok(Arc::clone(&batch)), id)?.unwrap();
            Some(response.decisions.into_iter().map(|one| one.id).collect::<Vec<_>>())
        };
        assert_eq!(ids(""), Some(vec!["x1".to_owned(), "x2".to_owned()]));
        assert_eq!(ids("x2"), Some(vec!["x2".to_owned()]));
        assert_eq!(ids("x3"), None);
        let lagged = select(Err(BroadcastStreamRecvError::Lagged(7)), "x1").unwrap().unwrap_err();
        assert_eq!(lagged.code(), tonic::Code::DataLoss);
    }
}
