//! Calls about session templates (BOS reference 2.8).

use std::{sync::Arc, time::Duration};

use chassis::{
    Fault,
    store::{
        ledger::{Responses, Selection},
        resource::Resource,
    },
};
use domain::{
    boot::{
        bos::options::Options,
        template::{
            Finding, Known, Operation, Rules, SessionTemplate, TemplatePatch, Wanted, catalogue_findings,
            check_limits, finish, merge, prepare, with_new_images,
        },
    },
    core::{event::Actor, id::Tenant},
};
use proto::template::{self as wire, session_template_service_server::SessionTemplateService};
use tokio::{sync::mpsc, time::Instant};
use tonic::{Request, Response, Status};

use crate::{
    convert,
    lookup::ImageLookup,
    record::{TemplateRecord, wanted_key},
    review::StoredTemplate,
    shared::ManagerState,
};

/// Templates in one message of a list. Each template may list tens of thousands of nodes.
const PAGE: usize = 32;

/// Time after which a change of a template is not retried, if concurrent changes keep adding images. The last lookup
/// may take a few seconds more, and clients give up after 30 s.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) struct TemplateRpc {
    pub(crate) shared: ManagerState,
    pub(crate) lookup: Arc<ImageLookup>,
    pub(crate) reviews: mpsc::Sender<StoredTemplate>,
}

/// Decision about the change of a template.
enum TemplateDecision {
    /// The change was made.
    Made(StoredTemplate),
    /// The decision needs a lookup of these images first.
    Unknown(Wanted),
}

#[tonic::async_trait]
impl SessionTemplateService for TemplateRpc {
    type ListSessionTemplatesStream = Responses<wire::ListSessionTemplatesResponse>;

    async fn list_session_templates(
        &self,
        request: Request<wire::ListSessionTemplatesRequest>,
    ) -> Result<Response<Self::ListSessionTemplatesStream>, Status> {
        let tenant = request.into_inner().tenant.as_deref().map(Tenant::parse).transpose();
        let tenant = tenant.map_err(Fault::Invalid)?;
        let wanted =
            move |record: &TemplateRecord| tenant.as_ref().is_none_or(|one| *one == record.template.tenant);
        let selection = Selection { wanted: Box::new(wanted), ..Selection::default() };
        self.shared.templates.list(selection, PAGE).await
    }

    async fn get_session_template(
        &self,
        request: Request<wire::GetSessionTemplateRequest>,
    ) -> Result<Response<wire::GetSessionTemplateResponse>, Status> {
        let wire::GetSessionTemplateRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let session_template = Some(convert::template::to_wire(&record.template));
        Ok(Response::new(wire::GetSessionTemplateResponse { session_template }))
    }

    async fn put_session_template(
        &self,
        request: Request<wire::PutSessionTemplateRequest>,
    ) -> Result<Response<wire::PutSessionTemplateResponse>, Status> {
        let wire::PutSessionTemplateRequest { session_template, validate_only } = request.into_inner();
        let template = self.put(session_template.unwrap_or_default(), validate_only).await?;
        Ok(Response::new(wire::PutSessionTemplateResponse { session_template: Some(template) }))
    }

    async fn update_session_template(
        &self,
        request: Request<wire::UpdateSessionTemplateRequest>,
    ) -> Result<Response<wire::UpdateSessionTemplateResponse>, Status> {
        let template = self.update(request.into_inner().session_template.unwrap_or_default()).await?;
        Ok(Response::new(wire::UpdateSessionTemplateResponse { session_template: Some(template) }))
    }

    async fn delete_session_template(
        &self,
        request: Request<wire::DeleteSessionTemplateRequest>,
    ) -> Result<Response<wire::DeleteSessionTemplateResponse>, Status> {
        let wire::DeleteSessionTemplateRequest { name, tenant } = request.into_inner();
        let key = wanted_key(TemplateRecord::KIND, &tenant, &name)?;
        let delete = self.shared.templates.write_by(Actor::Client, move |draft| {
            if !draft.has_row(&key) {
                return Err(Fault::not_found(TemplateRecord::KIND, &name));
            }
            draft.delete(&key);
            Ok(())
        });
        delete.await?;
        Ok(Response::new(wire::DeleteSessionTemplateResponse {}))
    }

    async fn validate_session_template(
        &self,
        request: Request<wire::ValidateSessionTemplateRequest>,
    ) -> Result<Response<wire::ValidateSessionTemplateResponse>, Status> {
        let wire::ValidateSessionTemplateRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let options = self.shared.registry.options().await?;
        let found = match self.lookup.findings(&record.template, Operation::Boot, self.rules(&options)).await
        {
            Ok(warnings) if warnings.is_empty() => "Valid".to_owned(),
            Ok(warnings) => warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        };
        Ok(Response::new(wire::ValidateSessionTemplateResponse { findings: found }))
    }
}

impl TemplateRpc {
    async fn record(&self, tenant: &str, name: &str) -> Result<Arc<TemplateRecord>, Fault> {
        let key = wanted_key(TemplateRecord::KIND, tenant, name)?;
        self.shared.templates.fresh().await?;
        let found = self.shared.templates.view().get(&key);
        found.ok_or_else(|| Fault::not_found(TemplateRecord::KIND, name))
    }

    fn rules<'a>(&self, options: &'a Options) -> Rules<'a> {
        Rules { options, compatibility: self.shared.compatibility }
    }

    async fn put(
        &self,
        template: wire::SessionTemplate,
        validate_only: bool,
    ) -> Result<wire::SessionTemplate, Fault> {
        let template = convert::template::from_wire(template)?;
        check_limits(&template)?;
        self.shared.tenants.nodes_in_time(&template.tenant).await?;
        let template = prepare(template)?;
        let options = self.shared.registry.options().await?;
        let known = self.lookup.known(Wanted::by(template.boot_sets.values()).in_catalogue()).await;
        let nothing = SessionTemplate::default();
        let stored = decide(&nothing, template, &known, self.rules(&options))?;
        if validate_only {
            return Ok(convert::template::to_wire(&stored.template));
        }
        let template = stored.template.clone();
        let write = self.shared.templates.write_by(Actor::Client, move |draft| {
            draft.put(TemplateRecord::new(template));
            Ok(())
        });
        let ((), revision) = write.await?;
        Ok(self.answer(stored, revision))
    }

    /// Images are looked up before the change is written, and the template may change meanwhile. So the transaction
    /// decides on the newest template, and retries if that has other images.
    async fn update(&self, change: wire::SessionTemplate) -> Result<wire::SessionTemplate, Fault> {
        let key = wanted_key(TemplateRecord::KIND, &change.tenant, &change.name)?;
        let name = change.name.clone();
        let patch = convert::template::patch_from_wire(change)?;
        let options = self.shared.registry.options().await?;
        let mut known = self.lookup.known(Wanted::default()).await;
        let until = Instant::now() + PATIENCE;
        loop {
            let key = Arc::clone(&key);
            let name = name.clone();
            let patch = patch.clone();
            let options = options.clone();
            let compatibility = self.shared.compatibility;
            let seen = known.clone();
            let write = self.shared.templates.write_by(Actor::Client, move |draft| {
                let stored = draft.get(&key).ok_or_else(|| Fault::not_found(TemplateRecord::KIND, &name))?;
                let rules = Rules { options: &options, compatibility };
                let decision = decide_change(&stored.template, patch, &seen, rules)?;
                if let TemplateDecision::Made(stored) = &decision {
                    draft.put(TemplateRecord::new(stored.template.clone()));
                }
                Ok(decision)
            });
            match write.await? {
                (TemplateDecision::Made(stored), revision) => return Ok(self.answer(stored, revision)),
                (TemplateDecision::Unknown(wanted), _) if Instant::now() < until => {
                    known.add(self.lookup.known(wanted).await);
                }
                (TemplateDecision::Unknown(_), _) => {
                    let reason = "others give it new images all the time";
                    return Err(Fault::unavailable(TemplateRecord::KIND, reason));
                }
            }
        }
    }

    /// Returns the stored template, and queues the review of its images unless too many templates are queued.
    fn answer(&self, stored: StoredTemplate, revision: u64) -> wire::SessionTemplate {
        let answer = convert::template::to_wire(&stored.template);
        if !stored.names.is_empty()
            && let Err(full) = self.reviews.try_send(stored)
        {
            tracing::debug!(reason = %full, "template images not reviewed, the queue is full");
        }
        wire::SessionTemplate { revision, ..answer }
    }
}

/// Decides the change of a template from `before` to `after`, which was prepared.
fn decide(
    before: &SessionTemplate,
    after: SessionTemplate,
    known: &Known,
    rules: Rules<'_>,
) -> Result<StoredTemplate, Fault> {
    let names = with_new_images(before, &after);
    let warnings = catalogue_findings(&after, &names, known, rules);
    for finding in warnings.map_err(Finding::refusal)? {
        tracing::warn!(%finding, "stored template has warnings");
    }
    Ok(StoredTemplate { template: finish(after, rules.options.reject_nids)?, names })
}

fn decide_change(
    before: &SessionTemplate,
    patch: TemplatePatch,
    known: &Known,
    rules: Rules<'_>,
) -> Result<TemplateDecision, Fault> {
    let merged = merge(before.clone(), patch);
    check_limits(&merged)?;
    let after = prepare(merged)?;
    let changed = with_new_images(before, &after);
    let new = after.boot_sets.iter().filter(|(name, _)| changed.contains(*name)).map(|(_, set)| set);
    let unknown = known.lacks(Wanted::by(new).in_catalogue());
    if unknown != Wanted::default() {
        return Ok(TemplateDecision::Unknown(unknown));
    }
    decide(before, after, known, rules).map(TemplateDecision::Made)
}
