//! Requests as a gRPC service: reads messages, calls, answers.

use chassis::{
    Fault,
    kinds::{
        Interner,
        device::record::labels,
        enrolment::{EnrolmentRecord, from_wire},
    },
    process::clock,
    store::ledger::{Responses, Selection},
};
use domain::{
    core::text::text,
    device::{
        enrolment::{ApprovalWish, CertificateRenewal},
        report::check_size,
        selector::{EnrolmentField, FieldSelector},
    },
};
use proto::{
    Message as _,
    fleet::{
        ApproveEnrolmentRequestRequest, ApproveEnrolmentRequestResponse, DeleteEnrolmentRequestRequest,
        DeleteEnrolmentRequestResponse, EnrolmentRequest, GetEnrolmentRequestRequest,
        GetEnrolmentRequestResponse, ListEnrolmentRequestsRequest, ListEnrolmentRequestsResponse,
        RenewCertificateRequest, RenewCertificateResponse, SubmitEnrolmentRequestRequest,
        SubmitEnrolmentRequestResponse, enrolment_service_server::EnrolmentService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::EnrolmentManager;

/// Requests in one message of a list.
const PAGE: usize = 100;

#[async_trait]
impl EnrolmentService for EnrolmentManager {
    type ListEnrolmentRequestsStream = Responses<ListEnrolmentRequestsResponse>;

    async fn list_enrolment_requests(
        &self,
        request: Request<ListEnrolmentRequestsRequest>,
    ) -> Result<Response<Self::ListEnrolmentRequestsStream>, Status> {
        let ListEnrolmentRequestsRequest { field_selector, start_after, page_size } = request.into_inner();
        let wanted = FieldSelector::<EnrolmentField>::parse(&field_selector).map_err(Fault::from)?;
        self.requests.fresh().await?;
        let revision = self.requests.view().revision();
        let selection = Selection {
            after: start_after,
            most: if page_size == 0 { usize::MAX } else { page_size as usize },
            wanted: Box::new(move |record: &EnrolmentRecord| wanted.matches_request(&record.request)),
            ..Selection::default()
        };
        Ok(self.requests.serve_list(selection, PAGE, move |found| {
            let requests = found.iter().map(|record| record.shown()).collect();
            ListEnrolmentRequestsResponse { requests, revision }
        }))
    }

    async fn get_enrolment_request(
        &self,
        request: Request<GetEnrolmentRequestRequest>,
    ) -> Result<Response<GetEnrolmentRequestResponse>, Status> {
        let record = self.read(&request.into_inner().name).await?;
        Ok(Response::new(GetEnrolmentRequestResponse { request: Some(record.shown()) }))
    }

    async fn submit_enrolment_request(
        &self,
        request: Request<SubmitEnrolmentRequestRequest>,
    ) -> Result<Response<SubmitEnrolmentRequestResponse>, Status> {
        let written: EnrolmentRequest = request.into_inner().request.unwrap_or_default();
        check_size("spec", written.encoded_len()).map_err(Fault::from)?;
        let request = from_wire(written, &mut Interner::default()).map_err(Fault::from)?;
        let record = self.submit(request).await?;
        Ok(Response::new(SubmitEnrolmentRequestResponse { request: Some(record.shown()) }))
    }

    async fn approve_enrolment_request(
        &self,
        request: Request<ApproveEnrolmentRequestRequest>,
    ) -> Result<Response<ApproveEnrolmentRequestResponse>, Status> {
        let request = request.into_inner();
        let wish = ApprovalWish {
            approved: request.approved,
            labels: labels(request.labels, &mut Interner::default()),
            replace_labels: request.replace_labels,
            approved_by: text(&request.approved_by),
        };
        let record = self.approve(&request.name, wish).await?;
        Ok(Response::new(ApproveEnrolmentRequestResponse { request: Some(record.shown()) }))
    }

    async fn renew_certificate(
        &self,
        request: Request<RenewCertificateRequest>,
    ) -> Result<Response<RenewCertificateResponse>, Status> {
        let RenewCertificateRequest { name, renewal_name, csr } = request.into_inner();
        check_size("spec.request", csr.len()).map_err(Fault::from)?;
        let renewal = CertificateRenewal { name: text(&renewal_name), csr: text(&csr), at: clock::now() };
        let record = self.renew(&name, renewal).await?;
        Ok(Response::new(RenewCertificateResponse { request: Some(record.shown()) }))
    }

    async fn delete_enrolment_request(
        &self,
        request: Request<DeleteEnrolmentRequestRequest>,
    ) -> Result<Response<DeleteEnrolmentRequestResponse>, Status> {
        self.delete(&request.into_inner().name).await?;
        Ok(Response::new(DeleteEnrolmentRequestResponse {}))
    }
}
