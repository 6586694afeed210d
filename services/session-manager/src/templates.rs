//! The calls about session templates (BOS reference 2.8).

use std::sync::Arc;

use chassis::{
    Fault,
    ledger::{Responses, Selection},
    resource::Resource,
};
use domain::{
    id::Tenant,
    template::{findings, merge, sanitise},
};
use proto::template::{self as wire, session_template_service_server::SessionTemplateService};
use tonic::{Request, Response, Status};

use crate::{
    convert,
    record::{TemplateRecord, wanted_key},
    shared::Shared,
};

/// Templates in one message of a list. Each may list tens of thousands of nodes.
const PAGE: usize = 32;

pub(crate) struct TemplateRpc {
    pub(crate) shared: Shared,
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
        Ok(self.shared.templates.serve_list(selection, PAGE, |found| wire::ListSessionTemplatesResponse {
            session_templates: found
                .iter()
                .map(|record| convert::template::to_wire(&record.template))
                .collect(),
        }))
    }

    async fn get_session_template(
        &self,
        request: Request<wire::GetSessionTemplateRequest>,
    ) -> Result<Response<wire::GetSessionTemplateResponse>, Status> {
        let wire::GetSessionTemplateRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name)?;
        let session_template = Some(convert::template::to_wire(&record.template));
        Ok(Response::new(wire::GetSessionTemplateResponse { session_template }))
    }

    async fn put_session_template(
        &self,
        request: Request<wire::PutSessionTemplateRequest>,
    ) -> Result<Response<wire::PutSessionTemplateResponse>, Status> {
        let template = self.put(request.into_inner().session_template.unwrap_or_default()).await?;
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
        let delete = self.shared.templates.write(move |draft| {
            draft.get(&key).ok_or_else(|| Fault::not_found(TemplateRecord::KIND, &name))?;
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
        let record = self.record(&tenant, &name)?;
        let found = match findings(&record.template, self.shared.options()?.reject_nids) {
            Ok(warnings) if warnings.is_empty() => "Valid".to_owned(),
            Ok(warnings) => warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        };
        Ok(Response::new(wire::ValidateSessionTemplateResponse { findings: found }))
    }
}

impl TemplateRpc {
    fn record(&self, tenant: &str, name: &str) -> Result<Arc<TemplateRecord>, Fault> {
        let key = wanted_key(TemplateRecord::KIND, tenant, name)?;
        let found = self.shared.templates.view().get(&key);
        found.ok_or_else(|| Fault::not_found(TemplateRecord::KIND, name))
    }

    async fn put(&self, template: wire::SessionTemplate) -> Result<wire::SessionTemplate, Fault> {
        let template = convert::template::from_wire(template)?;
        let template = sanitise(template, self.shared.options()?.reject_nids)?;
        let answer = convert::template::to_wire(&template);
        let write = self.shared.templates.write(move |draft| {
            draft.put(TemplateRecord::new(template));
            Ok(())
        });
        let ((), revision) = write.await?;
        Ok(wire::SessionTemplate { revision, ..answer })
    }

    async fn update(&self, change: wire::SessionTemplate) -> Result<wire::SessionTemplate, Fault> {
        let key = wanted_key(TemplateRecord::KIND, &change.tenant, &change.name)?;
        let name = change.name.clone();
        let patch = convert::template::patch_from_wire(change)?;
        let reject_nids = self.shared.options()?.reject_nids;
        let write = self.shared.templates.write(move |draft| {
            let stored = draft.get(&key).ok_or_else(|| Fault::not_found(TemplateRecord::KIND, &name))?;
            let template = sanitise(merge(stored.template.clone(), patch), reject_nids)?;
            let answer = convert::template::to_wire(&template);
            draft.put(TemplateRecord::new(template));
            Ok(answer)
        });
        let (answer, revision) = write.await?;
        Ok(wire::SessionTemplate { revision, ..answer })
    }
}
