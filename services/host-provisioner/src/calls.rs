//! Calls of hosts, as the dispatcher has them carried out.

use domain::host::{
    dispatch::{wants_listing, was_answered_elsewhere},
    record::{
        call::{DriverAnswer, DriverCall},
        progress::{HostProgress, HostWork},
    },
};
use host_calls::{CallDriver, CallJournal as _, CallOrder, HostIdentity, HostTarget};
use proto::host as wire;
use tonic::Status;

use crate::{
    convert, documents,
    driver::{DeployDocuments, FirmwareOrder, WorkOrder},
    sources::HostSources,
};

/// Data that a call needs: the host with its login, the documents of a system to be deployed, and wishes about firmware.
pub(crate) struct CallInputs {
    target: HostTarget,
    documents: DeployDocuments,
    firmware: FirmwareOrder,
}

impl CallDriver for HostSources {
    type Inputs = CallInputs;

    async fn inputs(
        &self,
        identity: &HostIdentity,
        host: &wire::Host,
        work: &HostWork,
    ) -> Result<CallInputs, Status> {
        let target = self.target(identity, host).await?;
        let firmware = self.firmware.order(&target.key, work.parts.or(work.call.parts())).await?;
        let documents = match &work.call {
            DriverCall::Provision(_) => documents::read(&self.logins, host).await?,
            _ => DeployDocuments::default(),
        };
        Ok(CallInputs { target, documents, firmware })
    }

    async fn carry_out(&self, inputs: CallInputs, call: CallOrder) -> DriverAnswer {
        let CallInputs { target, documents, firmware } = inputs;
        self.driver.carry_out(&target, &WorkOrder { call, documents, firmware }).await
    }

    fn answered(&self, answer: &DriverAnswer) {
        if wants_listing(answer) {
            self.listing_wanted.notify_one();
        }
    }

    fn progressed(&self, identity: &HostIdentity, progress: &HostProgress) {
        let known = self.sights.view().get(&identity.key);
        let recorded = convert::sight(known.as_deref(), &identity.uid);
        let report = known.and_then(|known| known.calls(&identity.uid).report);
        if was_answered_elsewhere(progress, &recorded, report.as_ref()) {
            self.listing_wanted.notify_one();
        }
    }

    fn forget(&self, key: &str) {
        self.logins.forget(key);
    }
}
