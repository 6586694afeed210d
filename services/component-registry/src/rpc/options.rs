//! Reads, changes and watches of the options.

use chassis::{
    Fault,
    kinds::options::{self as convert, OptionsRecord},
    store::{ledger::Responses, resource::WireForm},
};
use domain::core::event::Actor;
use proto::{
    Encoded,
    option::{
        GetOptionsRequest, GetOptionsResponse, UpdateOptionsRequest, UpdateOptionsResponse,
        WatchOptionsRequest, WatchOptionsResponse, options_service_server::OptionsService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use crate::RegistryState;

#[async_trait]
impl OptionsService for RegistryState {
    async fn get_options(
        &self,
        _: Request<GetOptionsRequest>,
    ) -> Result<Response<GetOptionsResponse>, Status> {
        self.options.fresh().await?;
        let record = self.options.view().get(OptionsRecord::KEY).unwrap_or_default();
        Ok(Response::new(GetOptionsResponse { record: Some(record.to_wire().into_owned()) }))
    }

    async fn update_options(
        &self,
        request: Request<UpdateOptionsRequest>,
    ) -> Result<Response<UpdateOptionsResponse>, Status> {
        let UpdateOptionsRequest { options, validate_only } = request.into_inner();
        let patch = convert::patch_from_wire(options.unwrap_or_default());
        let compatibility = self.compatibility;
        if validate_only {
            self.options.fresh().await?;
            let stored = self.options.view().get(OptionsRecord::KEY).unwrap_or_default();
            let options = stored.options.apply(patch).map_err(Fault::Invalid)?.heeded(compatibility);
            let record = OptionsRecord { options, revision: stored.revision };
            return Ok(Response::new(UpdateOptionsResponse { record: Some(record.to_wire().into_owned()) }));
        }
        let change = move |draft: &mut chassis::store::ledger::Draft<'_, OptionsRecord>| {
            let stored = draft.get(OptionsRecord::KEY).unwrap_or_default();
            let options = stored.options.apply(patch)?.heeded(compatibility);
            draft.put(OptionsRecord { options: options.clone(), revision: stored.revision });
            Ok(options)
        };
        let (options, revision) = self.options.write_by(Actor::Client, change).await?;
        let record = OptionsRecord { options, revision };
        Ok(Response::new(UpdateOptionsResponse { record: Some(record.to_wire().into_owned()) }))
    }

    type WatchOptionsStream = Responses<Encoded<WatchOptionsResponse>>;

    async fn watch_options(
        &self,
        request: Request<WatchOptionsRequest>,
    ) -> Result<Response<Self::WatchOptionsStream>, Status> {
        self.options.serve_watch(request).await
    }
}
