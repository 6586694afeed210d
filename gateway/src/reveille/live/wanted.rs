//! Parameters of a live stream.

use std::collections::HashSet;

use chassis::{
    kinds::history::{COMPONENT, SESSION, session_key},
    limits::LONGEST_NAME,
    node_set::NodeSet,
};
use proto::{
    component::Component,
    event::{Event, EventFilter},
    session::Session,
};

use super::source::LiveSource;
use crate::http::{
    document::{ApiParameter, BoundedText, SeparatedTexts, header, query},
    problem::RequestProblem,
    query::QueryParameters,
};

/// Header with the place at which a stream resumes.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

/// Longest node set in an address.
const LONGEST_SET: usize = 32 << 10;

/// Most nodes of a filter: twice the largest machine that Reveille is measured with would fit.
const MOST_NODES: usize = 20_000;

/// Most keys that a service takes in a filter of events.
const MOST_KEYS: usize = 100;

/// Longest id of an event of a stream.
const LONGEST_PLACE: usize = 1 << 10;

/// Words of the parameter `kind`.
const KINDS: [&str; 3] = [COMPONENT, SESSION, EVENT];

/// Word for events.
const EVENT: &str = "event";

/// Names of the parameters.
const NAMES: [&str; 4] = ["kind", "component", "session", "tenant"];

pub(super) fn parameters() -> [ApiParameter; 5] {
    [
        query::<SeparatedTexts<3, 32>>(
            "kind",
            "Kinds of changes: `component`, `session` and `event`, separated by commas; absent: all",
        ),
        query::<BoundedText<1, LONGEST_SET>>(
            "component",
            "Node set, such as `x1000c0s[0-7]b0n0`: only these components; sessions are only shown if `session` is there",
        ),
        query::<BoundedText<1, LONGEST_NAME>>(
            "session",
            "Name of a session: only it, and the components that have its desired state",
        ),
        query::<BoundedText<0, LONGEST_NAME>>(
            "tenant",
            "Only what belongs to that tenant, empty for none; absent: to any, or with `session` to none",
        ),
        header::<BoundedText<0, LONGEST_PLACE>>(
            "Last-Event-ID",
            "Id of the last event: the stream goes on after it",
        ),
    ]
}

/// Selection of changes.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveFilter {
    kinds: Vec<&'static str>,
    /// Ids of components; `None`: any.
    components: Option<HashSet<String>>,
    session: Option<String>,
    tenant: Option<String>,
}

impl LiveFilter {
    /// Reads the parameters.
    ///
    /// # Errors
    /// Names the parameter that is wrong.
    pub(super) fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        query.only(&NAMES)?;
        let session = query.text("session", 1..=LONGEST_NAME)?.map(str::to_owned);
        let tenant = query.text("tenant", 0..=LONGEST_NAME)?.map(str::to_owned);
        let tenant = tenant.or_else(|| session.is_some().then(String::new));
        query.text("component", 1..=LONGEST_SET)?;
        Ok(Self {
            kinds: query.parsed("kind", kinds)?.unwrap_or_else(|| KINDS.to_vec()),
            components: query.parsed("component", nodes)?,
            session,
            tenant,
        })
    }

    /// Returns the sources that can have wanted changes.
    pub(super) fn sources(&self) -> Vec<LiveSource> {
        let has_sessions = self.components.is_none() || self.session.is_some();
        let is_wanted = |source: &LiveSource| match source {
            LiveSource::Components => self.kinds.contains(&COMPONENT),
            LiveSource::Sessions => self.kinds.contains(&SESSION) && has_sessions,
            LiveSource::ComponentEvents => self.kinds.contains(&EVENT),
            LiveSource::SessionEvents => self.kinds.contains(&EVENT) && has_sessions,
        };
        LiveSource::ALL.into_iter().filter(is_wanted).collect()
    }

    /// Returns whether a component can cease to be wanted while it exists.
    pub(super) fn may_lose_components(&self) -> bool {
        self.session.is_some() || self.tenant.is_some()
    }

    /// Returns whether a component of that id can be wanted.
    pub(super) fn is_about(&self, id: &str) -> bool {
        self.components.as_ref().is_none_or(|ids| ids.contains(id))
    }

    pub(super) fn wants_component(&self, component: &Component) -> bool {
        let session = component.session.as_deref().unwrap_or_default();
        let tenant = component.session_tenant.as_deref().unwrap_or_default();
        self.is_about(&component.id) && self.is_within(session, tenant)
    }

    pub(super) fn wants_session(&self, session: &Session) -> bool {
        self.is_within(&session.name, &session.tenant)
    }

    /// Returns whether an event is wanted, as far as the service that has it did not judge.
    pub(super) fn wants_event(&self, event: &Event) -> bool {
        let tenant = event.body.as_ref().map(|body| body.session_tenant.as_str()).unwrap_or_default();
        let is_session = event.resource == SESSION;
        (is_session || self.is_about(&event.key))
            && self.tenant.as_deref().is_none_or(|wanted| wanted == tenant)
    }

    /// Returns the filter for the service that has the events of a source.
    pub(super) fn events_of(&self, source: LiveSource) -> EventFilter {
        let session = self.session.clone().unwrap_or_default();
        let tenant = self.tenant.clone().unwrap_or_default();
        match source {
            LiveSource::Sessions | LiveSource::SessionEvents => EventFilter {
                resource: SESSION.to_owned(),
                keys: self.session.iter().map(|name| session_key(&tenant, name)).collect(),
                ..EventFilter::default()
            },
            LiveSource::Components | LiveSource::ComponentEvents => {
                let ids = self.components.iter().filter(|ids| ids.len() <= MOST_KEYS);
                EventFilter {
                    resource: COMPONENT.to_owned(),
                    keys: ids.flatten().cloned().collect(),
                    session_tenant: if session.is_empty() { String::new() } else { tenant },
                    session,
                    ..EventFilter::default()
                }
            }
        }
    }

    fn is_within(&self, session: &str, tenant: &str) -> bool {
        self.session.as_deref().is_none_or(|wanted| wanted == session)
            && self.tenant.as_deref().is_none_or(|wanted| wanted == tenant)
    }
}

fn kinds(text: &str) -> Result<Vec<&'static str>, String> {
    let known = |word: &str| KINDS.into_iter().find(|kind| *kind == word);
    let items = text
        .split(',')
        .map(|word| known(word).ok_or_else(|| format!("'{word}' is none of {}", KINDS.join(", "))));
    items.collect()
}

fn nodes(text: &str) -> Result<HashSet<String>, String> {
    let set = NodeSet::parse(text).map_err(|error| error.to_string())?;
    let names: HashSet<_> = set.names().into_iter().map(str::to_owned).collect();
    match names.len() {
        0..=MOST_NODES => Ok(names),
        many => Err(format!("has {many} nodes, more than {MOST_NODES}")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::event::EventBody;

    use super::*;
    use crate::http::query::tests::{check, query};

    fn read(query: &QueryParameters) -> Result<String, RequestProblem> {
        let filter = LiveFilter::read(query)?;
        let sources: Vec<_> = filter.sources().into_iter().map(LiveSource::word).collect();
        let mut ids: Vec<_> = filter.components.into_iter().flatten().collect();
        ids.sort_unstable();
        Ok(format!("{} of {ids:?} in {:?} {:?}", sources.join(" "), filter.session, filter.tenant))
    }

    #[tokio::test]
    async fn parameters_select_sources() {
        let queries = [
            "",
            "kind=component",
            "kind=event,session",
            "component=x[0-2],!x1",
            "component=x1&session=s",
            "session=s&tenant=blue",
            "tenant=",
            "kind=host",
            "component=x[",
            "component=x[0-30000]",
            "node=x1",
        ];
        check(&queries, read, expect![[r#"
             -> "component session component_event session_event of [] in None None"
            kind=component -> "component of [] in None None"
            kind=event,session -> "session component_event session_event of [] in None None"
            component=x[0-2],!x1 -> "component component_event of [\"x0\", \"x2\"] in None None"
            component=x1&session=s -> "component session component_event session_event of [\"x1\"] in Some(\"s\") Some(\"\")"
            session=s&tenant=blue -> "component session component_event session_event of [] in Some(\"s\") Some(\"blue\")"
            tenant= -> "component session component_event session_event of [] in None Some(\"\")"
            kind=host -> query parameter 'kind': 'host' is none of component, session, event
            component=x[ -> query parameter 'component': the bracket is not closed (character 2)
            component=x[0-30000] -> query parameter 'component': has 30001 nodes, more than 20000
            node=x1 -> query parameter 'node': is unknown; known are kind, component, session, tenant
        "#]]).await;
    }

    #[tokio::test]
    async fn changes_pass_by_id_session_and_tenant() {
        let component = |id: &str, session: &str, tenant: &str| Component {
            id: id.to_owned(),
            session: Some(session.to_owned()),
            session_tenant: Some(tenant.to_owned()),
            ..Component::default()
        };
        for (text, expected) in [
            ("", [true, true, true]),
            ("component=x1", [true, true, false]),
            ("session=s", [true, false, false]),
            ("tenant=blue", [false, true, false]),
            ("component=x1&session=t&tenant=blue", [false, true, false]),
        ] {
            let filter = LiveFilter::read(&query(text).await).unwrap();
            let records = [component("x1", "s", ""), component("x1", "t", "blue"), component("x2", "", "")];
            assert_eq!(records.each_ref().map(|one| filter.wants_component(one)), expected, "{text}");
            let event = |one: &Component| Event {
                key: one.id.clone(),
                resource: COMPONENT.to_owned(),
                body: Some(EventBody {
                    session_tenant: one.session_tenant.clone().unwrap_or_default(),
                    ..EventBody::default()
                }),
                ..Event::default()
            };
            let wanted = filter.events_of(LiveSource::ComponentEvents);
            let is_shown = |one: &Component| {
                let is_session = wanted.session.is_empty() || Some(&wanted.session) == one.session.as_ref();
                is_session && filter.wants_event(&event(one))
            };
            assert_eq!(records.each_ref().map(is_shown), expected, "{text}");
        }
    }
}
