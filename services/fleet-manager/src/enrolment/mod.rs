//! Requests of agents to be enrolled, and their certificates (device reference 3.3).
//!
//! An approval is on record before the registry is called, and the certificate is shown after the registry has the
//! device. A crash between the two leaves a duty, which `upkeep` carries out; so does a device that is deleted or has
//! ended its life, whose certificates are then revoked. Each step can be repeated.
//!
//! - `rpc`, `certificates`: gRPC services
//! - `requests`: requests of agents, and decisions of people about them
//! - `revocations`: which certificates no longer count
//! - `upkeep`: duties
//! - `registry`: devices at the component registry

mod certificates;
mod registry;
mod requests;
mod revocations;
mod rpc;
#[cfg(test)]
mod tests;
mod upkeep;

use std::{sync::Arc, time::Duration};

use chassis::{
    Channel, Context, Server,
    mesh::channel::LARGEST_MESSAGE,
    store::ledger::{EventHistories, Ledger},
};
use proto::fleet::{
    certificate_service_server::CertificateServiceServer, enrolment_service_server::EnrolmentServiceServer,
};
use sea_orm::DatabaseConnection;

use crate::{
    signer::{self, DeviceSigner},
    store::{AuthorityTable, EnrolmentTable, RevocationTable},
};
pub(crate) use upkeep::EnrolmentUpkeep;

use registry::DeviceRegistry;

/// Requests, certificates, and the registry. Clones share them.
#[derive(Clone)]
pub(crate) struct EnrolmentManager {
    requests: Ledger<EnrolmentTable>,
    revocations: Ledger<RevocationTable>,
    authorities: Ledger<AuthorityTable>,
    /// Authority of this replica; `None`: it has none, and signs nothing.
    signer: Option<Arc<DeviceSigner>>,
    /// Longest time for which a certificate is valid.
    validity: Duration,
    registry: DeviceRegistry,
}

impl EnrolmentManager {
    /// Opens the ledgers and the authority, which is put on record for the parts that check certificates.
    ///
    /// # Errors
    /// When a table or the authority cannot be read.
    pub(crate) async fn open(
        context: &Context,
        registry: Channel,
        database: DatabaseConnection,
    ) -> anyhow::Result<Self> {
        let enrolments = Self {
            requests: Ledger::open(context, database.clone()).await?,
            revocations: Ledger::open(context, database.clone()).await?,
            authorities: Ledger::open(context, database).await?,
            signer: signer::open(&context.settings)?.map(Arc::new),
            validity: signer::validity(&context.settings)?,
            registry: DeviceRegistry::new(registry),
        };
        enrolments.record_authority().await?;
        Ok(enrolments)
    }

    /// Serves requests and certificates.
    pub(crate) fn serve(&self, server: &mut Server) {
        let requests = EnrolmentServiceServer::new(self.clone());
        server.add(requests.max_decoding_message_size(LARGEST_MESSAGE));
        server.add(CertificateServiceServer::new(self.clone()));
    }

    /// Adds the events of requests.
    pub(crate) fn with_events(&self, histories: EventHistories) -> EventHistories {
        histories.with(&self.requests)
    }
}
