//! Authorities and revocations as a gRPC service, for parts that check certificates.

use chassis::store::ledger::Responses;
use proto::{
    Encoded,
    fleet::{
        WatchCertificateAuthoritiesRequest, WatchCertificateAuthoritiesResponse,
        WatchCertificateRevocationsRequest, WatchCertificateRevocationsResponse,
        certificate_service_server::CertificateService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::EnrolmentManager;

#[async_trait]
impl CertificateService for EnrolmentManager {
    type WatchCertificateAuthoritiesStream = Responses<Encoded<WatchCertificateAuthoritiesResponse>>;

    async fn watch_certificate_authorities(
        &self,
        request: Request<WatchCertificateAuthoritiesRequest>,
    ) -> Result<Response<Self::WatchCertificateAuthoritiesStream>, Status> {
        self.authorities.serve_watch(request).await
    }

    type WatchCertificateRevocationsStream = Responses<Encoded<WatchCertificateRevocationsResponse>>;

    async fn watch_certificate_revocations(
        &self,
        request: Request<WatchCertificateRevocationsRequest>,
    ) -> Result<Response<Self::WatchCertificateRevocationsStream>, Status> {
        self.revocations.serve_watch(request).await
    }
}
