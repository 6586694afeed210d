//! Parameters of the timeline.

use chassis::{
    kinds::history::{COMPONENT, SESSION, TRANSITION, session_key},
    limits::LONGEST_NAME,
};
use proto::insight::{ListTimelineRequest, TimelineFilter, TimelineSubject};

use crate::{
    http::{
        document::{ApiParameter, BoundedText, SeparatedTexts, WholeNumber, ZonedTime, query},
        problem::RequestProblem,
        query::QueryParameters,
    },
    reveille::history::{
        self, LONGEST, LONGEST_PLACE, MOST, MOST_ITEMS,
        words::{self, HistoryPlace, ResourceWord, SeparatedEvents},
    },
};

/// Kind of resources whose keys have a tenant, beside sessions.
const TEMPLATE: &str = "session_template";

/// Names of the parameters. Any other is refused, because a filter with a slip would show what nobody asked for.
const NAMES: [&str; 12] = [
    "resource", "name", "tenant", "session", "kind", "reason", "actor", "since", "until", "limit", "before",
    "after",
];

pub(super) fn parameters() -> [ApiParameter; 12] {
    [
        query::<ResourceWord>("resource", "Kind of resources; absent: all"),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "name",
            "Names or ids of at most 100 resources of the kind `resource`, separated by commas; hosts as `metal/host-1`",
        ),
        query::<BoundedText<0, LONGEST_NAME>>(
            "tenant",
            "Tenant of the sessions or templates that `name` or `session` names; absent or empty: none",
        ),
        query::<BoundedText<1, LONGEST_NAME>>(
            "session",
            "Name of a session: its own entries, and those of the components while they had its desired state",
        ),
        query::<SeparatedEvents>(
            "kind",
            "At most 100 kinds of events, separated by commas, such as `boot_reported`; absent: all",
        ),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "reason",
            "At most 100 reasons, separated by commas, such as `retries_exhausted`; absent: all",
        ),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "actor",
            "At most 100 authors, separated by commas, such as `client`; absent: all",
        ),
        query::<ZonedTime>("since", "Earliest time, such as `2026-01-31T12:00:00Z`"),
        query::<ZonedTime>("until", "Time before which entries are wanted"),
        query::<WholeNumber<1, MOST>>("limit", "Most entries; absent: 100, and all of them as lines"),
        query::<HistoryPlace>("before", "Place before which entries are wanted: `older` of an answer"),
        query::<HistoryPlace>("after", "Place after which entries are wanted: `newer` of an answer"),
    ]
}

/// Entries of a page that sets no limit.
const PAGE: u32 = 100;

/// Wishes of a client.
#[derive(Debug, Clone)]
pub(super) struct WantedEntries {
    pub(super) filter: TimelineFilter,
    /// Most entries; `None`: the client sets no limit.
    pub(super) limit: Option<u32>,
    pub(super) before: String,
    pub(super) after: String,
}

impl WantedEntries {
    /// Reads the parameters.
    ///
    /// # Errors
    /// Names the parameter that is wrong.
    pub(super) fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        query.only(&NAMES)?;
        let (before, after) = (place(query, "before")?, place(query, "after")?);
        if !before.is_empty() && !after.is_empty() {
            return Err(RequestProblem::of_parameter("after", "excludes 'before'"));
        }
        let limit = query.integer("limit", 1..=MOST)?;
        Ok(Self { filter: filter(query)?, limit, before, after })
    }

    /// Returns the request for the page.
    pub(super) fn page(self) -> ListTimelineRequest {
        let page_size = self.limit.unwrap_or(PAGE);
        ListTimelineRequest { filter: Some(self.filter), page_size, before: self.before, after: self.after }
    }
}

fn place(query: &QueryParameters, name: &str) -> Result<String, RequestProblem> {
    Ok(query.text(name, 1..=LONGEST_PLACE)?.unwrap_or_default().to_owned())
}

fn filter(query: &QueryParameters) -> Result<TimelineFilter, RequestProblem> {
    let resource = query.parsed("resource", words::resource)?;
    let tenant = query.text("tenant", 0..=LONGEST_NAME)?.unwrap_or_default();
    let names = query.texts("name", MOST_ITEMS, LONGEST)?;
    if resource.is_none() && !names.is_empty() {
        return Err(RequestProblem::of_parameter("name", "needs 'resource'"));
    }
    let subjects = resource.iter().flat_map(|resource| subjects(resource, tenant, &names)).collect();
    Ok(TimelineFilter {
        subjects,
        // The transitions that name a component are part of its story.
        resources: resource.into_iter().filter(|_| names.is_empty()).collect(),
        events: query.parsed("kind", words::events)?.unwrap_or_default(),
        reasons: query.texts("reason", MOST_ITEMS, LONGEST)?,
        actors: query.texts("actor", MOST_ITEMS, LONGEST)?,
        since: query.parsed("since", history::time)?,
        until: query.parsed("until", history::time)?,
        session: query.text("session", 1..=LONGEST_NAME)?.unwrap_or_default().to_owned(),
        tenant: tenant.to_owned(),
    })
}

/// Returns the resources of a kind with these names.
fn subjects(resource: &str, tenant: &str, names: &[String]) -> Vec<TimelineSubject> {
    let subject = |resource: &str, key: String, node: String| TimelineSubject {
        resource: resource.to_owned(),
        key,
        node,
    };
    let named = |name: &String| match resource {
        SESSION | TEMPLATE => vec![subject(resource, session_key(tenant, name), String::new())],
        COMPONENT => vec![
            subject(resource, name.clone(), String::new()),
            subject(TRANSITION, String::new(), name.clone()),
        ],
        _ => vec![subject(resource, name.clone(), String::new())],
    };
    names.iter().flat_map(named).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::http::query::tests::check;

    fn read(query: &QueryParameters) -> Result<String, RequestProblem> {
        let wanted = WantedEntries::read(query)?;
        let filter = &wanted.filter;
        let subjects =
            filter.subjects.iter().map(|one| format!("{} {:?}{}", one.resource, one.key, one.node));
        let times = [filter.since, filter.until].map(|time| time.map(|time| time.seconds.to_string()));
        let [since, until] = times.map(Option::unwrap_or_default);
        let mut line = format!("{:?}", wanted.limit);
        for (name, text) in [
            ("of", subjects.collect::<Vec<_>>().join(" ")),
            ("resource", filter.resources.join(" ")),
            ("session", filter.session.clone()),
            ("tenant", filter.tenant.clone()),
            ("events", filter.events.join(" ")),
            ("reasons", filter.reasons.join(" ")),
            ("actors", filter.actors.join(" ")),
            ("since", since),
            ("until", until),
            ("before", wanted.before.clone()),
            ("after", wanted.after.clone()),
        ] {
            if !text.is_empty() {
                line.push_str(&format!(" {name} {text}"));
            }
        }
        Ok(line)
    }

    #[tokio::test]
    async fn parameters_select_entries() {
        let queries = [
            "",
            "resource=component",
            "resource=component&name=x1,x2&kind=boot_reported&until=1970-01-01T00:00:07Z&limit=1",
            "resource=session&name=s&tenant=blue",
            "resource=host&name=metal/host-1&reason=error&actor=client,status-evaluator",
            "session=s&tenant=blue&since=1970-01-01T00:00:07Z",
            "before=component:7:0",
            "after=component:7:0",
            "name=x1",
            "resource=node",
            "kind=exploded",
            "node=x1",
            "since=yesterday",
            "until=tomorrow",
            "limit=1001",
            "before=component:7:0&after=component:7:0",
        ];
        check(&queries, read, expect![[r#"
             -> "None"
            resource=component -> "None resource component"
            resource=component&name=x1,x2&kind=boot_reported&until=1970-01-01T00:00:07Z&limit=1 -> "Some(1) of component \"x1\" transition \"\"x1 component \"x2\" transition \"\"x2 events boot_reported until 7"
            resource=session&name=s&tenant=blue -> "None of session \"blue\\ts\" tenant blue"
            resource=host&name=metal/host-1&reason=error&actor=client,status-evaluator -> "None of host \"metal/host-1\" reasons error actors client status-evaluator"
            session=s&tenant=blue&since=1970-01-01T00:00:07Z -> "None session s tenant blue since 7"
            before=component:7:0 -> "None before component:7:0"
            after=component:7:0 -> "None after component:7:0"
            name=x1 -> query parameter 'name': needs 'resource'
            resource=node -> query parameter 'resource': 'node' has no events
            kind=exploded -> query parameter 'kind': 'exploded' is no kind of event
            node=x1 -> query parameter 'node': is unknown; known are resource, name, tenant, session, kind, reason, actor, since, until, limit, before, after
            since=yesterday -> query parameter 'since': is no time such as 2026-01-31T12:00:00Z
            until=tomorrow -> query parameter 'until': is no time such as 2026-01-31T12:00:00Z
            limit=1001 -> query parameter 'limit': 1001 is not between 1 and 1000
            before=component:7:0&after=component:7:0 -> query parameter 'after': excludes 'before'
        "#]]).await;
    }
}
