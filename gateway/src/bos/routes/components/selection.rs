//! The components of a request.

use proto::component::{
    Component as Record, ComponentFilter, ListComponentsRequest, PatchEach, PatchMany, Phase,
    patch_components_request::Selection,
};

use crate::{
    bos::{
        parameters::{session_name, word},
        tenant::RequestTenant,
        wire::{
            bulk_patch::{BulkPatch, FilteredPatch, LONGEST_IDS, PatchFilters},
            component::Component,
            primitive::{LONGEST_ID, is_name},
            strict::JsonObject,
        },
    },
    http::{extract::at, problem::RequestProblem, query::QueryParameters},
};

/// Most characters of a list of statuses (BOS reference 2.6.1).
pub(in crate::bos::routes) const LONGEST_STATUSES: usize = 512;

/// Most components on one page (BOS reference 2.6.1).
pub(in crate::bos::routes) const LARGEST_PAGE: u32 = 1_048_576;

/// Returns the list request of the query parameters (BOS reference 2.6.1). A tenant means its own sessions.
pub(super) fn listed(
    query: &QueryParameters,
    tenant: &RequestTenant,
    strict: bool,
) -> Result<ListComponentsRequest, RequestProblem> {
    let statuses = query.text("status", 0..=LONGEST_STATUSES)?.unwrap_or_default();
    let mut filter = ComponentFilter {
        ids: ids(query, strict)?,
        enabled: query.boolean("enabled")?,
        session: query.parsed("session", session_name)?,
        staged_session: query.parsed("staged_session", session_name)?,
        phase: phase(query)?.into(),
        statuses: split(statuses),
        session_tenant: tenant.filter(),
    };
    if strict && !narrows(&filter) {
        filter.enabled = filter.enabled.filter(|enabled| *enabled);
    }
    Ok(ListComponentsRequest {
        filter: Some(filter),
        start_after_id: query.text("start_after_id", 1..=LONGEST_ID)?.unwrap_or_default().to_owned(),
        page_size: query.integer("page_size", 0..=LARGEST_PAGE)?.unwrap_or(0),
        scope: None,
    })
}

/// Returns the ids of the parameter. BOS takes the whole parameter for one id and so refuses more than a few (BOS
/// reference 12, BUG-03).
fn ids(query: &QueryParameters, strict: bool) -> Result<Vec<String>, RequestProblem> {
    let longest = if strict { LONGEST_ID } else { LONGEST_IDS };
    let ids = split(query.text("ids", 1..=longest)?.unwrap_or_default());
    match ids.iter().find(|id| id.chars().count() > LONGEST_ID) {
        Some(id) => {
            let detail = format!("query parameter 'ids': '{id}' has more than {LONGEST_ID} characters");
            Err(RequestProblem::bad_request(detail))
        }
        None => Ok(ids),
    }
}

/// Returns the phase of the parameter. The empty word is a phase, but as a parameter it selects any.
fn phase(query: &QueryParameters) -> Result<Phase, RequestProblem> {
    let phase = query.parsed("phase", word::<Phase>)?.filter(|phase| *phase != Phase::None);
    Ok(phase.unwrap_or_default())
}

/// Returns whether anything but `enabled` and ids narrows the list. If not, BOS drops `enabled=false` (BOS reference
/// 12, BUG-01).
fn narrows(filter: &ComponentFilter) -> bool {
    filter.session.is_some()
        || filter.staged_session.is_some()
        || filter.phase() != Phase::Unspecified
        || !filter.statuses.is_empty()
}

/// Returns the items of a list in one text, untrimmed; an empty text has none.
fn split(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
}

/// Returns the record or patch for the component in the path, whatever its id in the body.
pub(super) fn of_one(
    id: String,
    component: Component,
    tenant: &RequestTenant,
) -> Result<Record, RequestProblem> {
    if component == Component::default() {
        return Err(RequestProblem::bad_request("the object needs at least one member"));
    }
    Ok(written(Component { id: Some(id), ..component }, tenant))
}

/// Returns records or patches that name their components.
pub(super) fn of_each(
    components: Vec<JsonObject<Component>>,
    tenant: &RequestTenant,
) -> Result<Vec<Record>, RequestProblem> {
    let named = components.into_iter().enumerate().map(|(index, JsonObject(component))| {
        if component.id.is_none() {
            return Err(RequestProblem::bad_request(at(format!("[{index}]"), "missing field `id`")));
        }
        Ok(written(component, tenant))
    });
    named.collect()
}

/// Returns the components of a bulk patch (BOS reference 2.6.4).
pub(super) fn patched(patch: BulkPatch, tenant: &RequestTenant) -> Result<Selection, RequestProblem> {
    Ok(match patch {
        BulkPatch::Each(components) => Selection::Each(PatchEach { patches: of_each(components, tenant)? }),
        BulkPatch::Filtered(filtered) => Selection::Many(of_many(*filtered, tenant)?),
    })
}

/// Returns the ids in a selection; empty: the selection is not by ids, or is empty.
pub(super) fn about(selection: &Selection) -> Vec<String> {
    match selection {
        Selection::Each(each) => ids_of(&each.patches),
        Selection::Many(many) => many.ids.clone(),
    }
}

/// Returns the ids of records or patches.
pub(super) fn ids_of(components: &[Record]) -> Vec<String> {
    components.iter().map(|component| component.id.clone()).collect()
}

fn of_many(filtered: FilteredPatch, tenant: &RequestTenant) -> Result<PatchMany, RequestProblem> {
    let FilteredPatch { filters: JsonObject(filters), patch: JsonObject(patch) } = filtered;
    if patch == Component::default() {
        return Err(RequestProblem::bad_request(at("patch", "the object needs at least one member")));
    }
    let (ids, session) = one_of(filters)?;
    let patch = Component { id: None, ..patch };
    Ok(PatchMany { patch: Some(written(patch, tenant)), ids, session, session_tenant: tenant.filter() })
}

/// Returns the record or patch as a message. Sessions that a tenant names are its own; the administrator may mean those
/// of any tenant.
fn written(component: Component, tenant: &RequestTenant) -> Record {
    Record { session_tenant: tenant.filter(), ..component.into() }
}

/// Returns ids or the name of a session: exactly one of them.
fn one_of(filters: PatchFilters) -> Result<(Vec<String>, String), RequestProblem> {
    match (filters.ids.unwrap_or_default(), filters.session.unwrap_or_default()) {
        (ids, session) if ids.is_empty() == session.is_empty() => {
            Err(RequestProblem::bad_request(at("filters", "exactly one of ids and session is needed")))
        }
        (ids, _) if ids.chars().count() > LONGEST_IDS => {
            let detail = format!("has more than {LONGEST_IDS} characters");
            Err(RequestProblem::bad_request(at("filters.ids", detail)))
        }
        (_, session) if !session.is_empty() && !is_name(&session) => {
            Err(RequestProblem::bad_request(at("filters.session", "is not the name of a session")))
        }
        (ids, session) => Ok((split(&ids), session)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query::tests::query;

    #[tokio::test]
    async fn enabled_false_alone_is_a_filter_unless_strict() {
        for (text, lax, strict) in [
            ("", None, None),
            ("enabled=false", Some(false), None),
            ("enabled=false&ids=a&start_after_id=a&page_size=1", Some(false), None),
            ("enabled=false&phase=&status=", Some(false), None),
            ("enabled=true", Some(true), Some(true)),
            ("enabled=true&enabled=false", Some(false), None),
            ("enabled=false&session=s", Some(false), Some(false)),
            ("enabled=false&staged_session=s", Some(false), Some(false)),
            ("enabled=false&phase=configuring", Some(false), Some(false)),
            ("enabled=false&status=stable", Some(false), Some(false)),
        ] {
            let query = query(text).await;
            let enabled = [false, true].map(|strict| {
                listed(&query, &RequestTenant::default(), strict).unwrap().filter.unwrap().enabled
            });
            assert_eq!(enabled, [lax, strict], "{text}");
        }
    }

    #[tokio::test]
    async fn empty_phase_and_status_ask_for_any() {
        for (text, phase, statuses) in [
            ("phase=&status=", Phase::Unspecified, &[][..]),
            ("phase=configuring&phase=", Phase::Unspecified, &[]),
            ("phase=&phase=powering_on", Phase::PoweringOn, &[]),
            ("status=stable,%20failed", Phase::Unspecified, &["stable", " failed"]),
            ("status=stable&status=failed", Phase::Unspecified, &["failed"]),
        ] {
            let filter =
                listed(&query(text).await, &RequestTenant::default(), false).unwrap().filter.unwrap();
            assert_eq!(filter.phase(), phase, "{text}");
            assert_eq!(filter.statuses, statuses, "{text}");
        }
    }

    #[tokio::test]
    async fn lists_of_ids_may_be_long_unless_strict() {
        let ids = |count: usize| format!("ids={}", vec!["x1000c0s0b0n0"; count].join(","));
        for (text, lax, strict) in [
            (ids(9), true, true),
            (ids(10), true, false),
            (ids(4000), true, false),
            (format!("ids=a,{}", "x".repeat(128)), false, false),
        ] {
            let query = query(&text).await;
            let fits = [false, true].map(|strict| listed(&query, &RequestTenant::default(), strict).is_ok());
            assert_eq!(fits, [lax, strict], "{} characters", text.len());
        }
    }
}
