//! Tenant and partition management service (BOS reference 6.6).
//!
//! A proxy before the service answers 404 too. So only a 404 in the form of the service is a statement about a tenant;
//! every other one, such as one without a body or with a page, is trouble.

use std::collections::BTreeSet;

use domain::core::{
    confirmed_set::SetAnswer,
    id::{ComponentId, Tenant},
};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer};
use upstream::{Answer, Failure, FirstCall, Peer, Request};

use crate::{
    dependency::{Dependency, DependencyError, DependencyOutage},
    questions,
};

/// Longest name of a tenant in an error, in characters.
const LONGEST_NAME: usize = 127;

/// Client of the service.
#[derive(Clone)]
pub(super) struct TapmsClient {
    peer: Peer,
}

/// Statement of the service about a tenant.
enum TenantStatement {
    Exists(TapmsTenant),
    DoesNotExist,
}

/// The relevant part of an answer. Empty lists may be omitted; a tenant without status has no nodes yet.
#[derive(Deserialize)]
struct TapmsTenant {
    spec: Option<TapmsSpec>,
    status: TapmsStatus,
}

#[derive(Deserialize)]
struct TapmsSpec {
    tenantname: Option<String>,
}

#[derive(Deserialize)]
struct TapmsStatus {
    uuid: Option<String>,
    tenantresources: Option<Vec<TapmsResource>>,
}

#[derive(Deserialize)]
struct TapmsResource {
    xnames: Option<Vec<String>>,
}

/// Body of a 404: a text, as the service is shipped, or a document that has nothing but an error.
#[derive(Deserialize)]
#[serde(untagged)]
enum TapmsDenial {
    Text(String),
    Document(ErrorDocument),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorDocument {
    message: Option<String>,
    error: Option<String>,
    detail: Option<String>,
    #[serde(rename = "title")]
    _title: Option<String>,
    #[serde(rename = "type")]
    _type: Option<String>,
    #[serde(rename = "status")]
    _status: Option<u16>,
}

/// The list of tenants, as the custom resources of the cluster or as a plain array.
#[derive(Deserialize)]
#[serde(untagged)]
enum TapmsTenants {
    Resources {
        #[serde(deserialize_with = "list_or_null")]
        items: Vec<ListedTenant>,
    },
    Array(Vec<ListedTenant>),
}

#[derive(Deserialize)]
struct ListedTenant {
    metadata: Option<ListedName>,
    spec: Option<TapmsSpec>,
    status: Option<ListedStatus>,
}

#[derive(Deserialize)]
struct ListedName {
    name: Option<String>,
}

#[derive(Deserialize)]
struct ListedStatus {
    uuid: Option<String>,
}

impl TapmsClient {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer }
    }

    pub(super) fn first_call(&self) -> FirstCall {
        FirstCall { peer: self.peer.clone(), request: questions::of_tenants() }
    }

    /// Requests the nodes of a tenant.
    pub(super) async fn nodes(&self, tenant: &Tenant) -> Result<SetAnswer<ComponentId>, DependencyError> {
        let name = tenant.as_str();
        // No path addresses a tenant with such a name, however it is encoded.
        if [".", ".."].contains(&name) {
            return Ok(SetAnswer::NoSuchSet);
        }
        let path = format!("/tenants/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        // A tenant has its own circuit: the service may fail for a single tenant, for example during its creation.
        let request = Request::get("tenant_get", path).about(name).also_answer(StatusCode::NOT_FOUND);
        match self.peer.ask(request, statement).await {
            Ok(TenantStatement::DoesNotExist) => Ok(SetAnswer::NoSuchSet),
            Ok(TenantStatement::Exists(answer)) => match answer.other_name(name) {
                None => Ok(SetAnswer::Elements(answer.nodes())),
                Some(other) => Err(outage(about_another(name, other))),
            },
            Err(failure) => Err(outage(failure.text)),
        }
    }

    /// Returns whether the list of tenants has the tenant.
    pub(super) async fn lists(&self, tenant: &Tenant) -> Result<bool, Failure> {
        let tenants = self.peer.json::<TapmsTenants>(questions::of_tenants()).await?;
        Ok(tenants.has(tenant.as_str()))
    }
}

fn outage(error: String) -> DependencyError {
    DependencyError::Retryable(DependencyOutage { what: Dependency::Tenants, error })
}

fn about_another(name: &str, other: &str) -> String {
    let other: String = other.chars().filter(|one| !one.is_control()).take(LONGEST_NAME).collect();
    format!("TAPMS was asked about tenant '{name}' and answered about '{other}'")
}

/// Reads the statement in an answer.
fn statement(answer: Answer) -> Result<TenantStatement, String> {
    if answer.status != StatusCode::NOT_FOUND {
        return answer.json().map(TenantStatement::Exists);
    }
    match answer.json::<TapmsDenial>() {
        Ok(denial) if denial.says_something() => Ok(TenantStatement::DoesNotExist),
        Ok(_) | Err(_) => Err(format!("{}, which is no statement of TAPMS about the tenant", answer.status)),
    }
}

fn list_or_null<'de, D: Deserializer<'de>>(items: D) -> Result<Vec<ListedTenant>, D::Error> {
    Ok(Option::deserialize(items)?.unwrap_or_default())
}

impl TapmsDenial {
    fn says_something(&self) -> bool {
        let texts = match self {
            Self::Text(text) => [Some(text), None, None],
            Self::Document(ErrorDocument { message, error, detail, .. }) => {
                [message.as_ref(), error.as_ref(), detail.as_ref()]
            }
        };
        texts.into_iter().flatten().any(|text| !text.trim().is_empty())
    }
}

impl TapmsTenants {
    /// Returns whether the list has the tenant of that name or UUID.
    fn has(&self, tenant: &str) -> bool {
        let (Self::Resources { items: tenants } | Self::Array(tenants)) = self;
        tenants.iter().any(|one| one.is(tenant))
    }
}

impl ListedTenant {
    fn is(&self, tenant: &str) -> bool {
        let name = self.metadata.as_ref().and_then(|one| one.name.as_deref());
        let spec_name = self.spec.as_ref().and_then(|one| one.tenantname.as_deref());
        let uuid = self.status.as_ref().and_then(|one| one.uuid.as_deref());
        [name, spec_name, uuid].contains(&Some(tenant))
    }
}

impl TapmsTenant {
    /// Returns the name in the answer, if it is not about the tenant `asked` for, which may be a name or a UUID. An
    /// answer without a name is about the tenant in the request.
    fn other_name(&self, asked: &str) -> Option<&str> {
        let name = self.spec.as_ref()?.tenantname.as_deref().filter(|name| !name.is_empty())?;
        let is_asked = name == asked || self.status.uuid.as_deref() == Some(asked);
        (!is_asked).then_some(name)
    }

    /// Returns the nodes of all resources. A name without a valid id is skipped.
    fn nodes(&self) -> BTreeSet<ComponentId> {
        let resources = self.status.tenantresources.iter().flatten();
        let names = resources.flat_map(|resource| resource.xnames.iter().flatten());
        names.filter_map(|name| ComponentId::parse(name).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use http::HeaderMap;

    use super::*;

    #[test]
    fn only_the_service_itself_denies_a_tenant() {
        let mut rows = String::new();
        for (status, body) in [
            (404, r#""Tenant with name/uuid 'a' not found.""#),
            (404, r#"{"message": "Tenant a not found"}"#),
            (404, r#"{"error": "tenant not found"}"#),
            (
                404,
                r#"{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such tenant"}"#,
            ),
            (404, ""),
            (404, "no such thing"),
            (404, "404 page not found"),
            (404, "<html>"),
            (404, "{}"),
            (404, "[]"),
            (404, "null"),
            (404, r#""""#),
            (404, r#"{"message": ""}"#),
            (404, r#"{"message": "no Route matched with those values", "request_id": "7"}"#),
            (404, r#"{"kind": "Status", "status": "Failure", "message": "not found", "code": 404}"#),
            (404, r#"{"error": {"code": 404}}"#),
            (404, r#"{"status": {"tenantresources": []}}"#),
            (200, r#"{"status": {"tenantresources": [{"xnames": ["n1"]}]}}"#),
            (200, r#"{"message": "Tenant a not found"}"#),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let answer = Answer { status, headers: HeaderMap::new(), body: body.into() };
            let stated = match statement(answer) {
                Ok(TenantStatement::Exists(tenant)) => format!("exists with {}", tenant.nodes().len()),
                Ok(TenantStatement::DoesNotExist) => "does not exist".to_owned(),
                Err(trouble) => format!("trouble: {trouble}"),
            };
            rows += &format!("{} {body}: {stated}\n", status.as_u16());
        }
        expect![[r#"
            404 "Tenant with name/uuid 'a' not found.": does not exist
            404 {"message": "Tenant a not found"}: does not exist
            404 {"error": "tenant not found"}: does not exist
            404 {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such tenant"}: does not exist
            404 : trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 no such thing: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 404 page not found: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 <html>: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 []: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 null: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 "": trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {"message": ""}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {"message": "no Route matched with those values", "request_id": "7"}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {"kind": "Status", "status": "Failure", "message": "not found", "code": 404}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {"error": {"code": 404}}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            404 {"status": {"tenantresources": []}}: trouble: 404 Not Found, which is no statement of TAPMS about the tenant
            200 {"status": {"tenantresources": [{"xnames": ["n1"]}]}}: exists with 1
            200 {"message": "Tenant a not found"}: trouble: not the JSON that was expected: missing field `status` at line 1 column 33
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn list_of_tenants_has_several_forms() {
        for (list, expected) in [
            (r#"{"items": [{"metadata": {"name": "a"}}]}"#, Some(true)),
            (r#"{"items": [{"metadata": {"name": "b"}}]}"#, Some(false)),
            (r#"{"items": null}"#, Some(false)),
            (r#"[{"spec": {"tenantname": "a"}}]"#, Some(true)),
            (r#"[{"status": {"uuid": "a"}}]"#, Some(true)),
            ("[]", Some(false)),
            ("{}", None),
            ("null", None),
        ] {
            let tenants = serde_json::from_str::<TapmsTenants>(list).ok();
            assert_eq!(tenants.map(|tenants| tenants.has("a")), expected, "{list}");
        }
    }
}
