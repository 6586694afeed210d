//! Events and the selectors of them (device reference 2.9, 4.3).

use std::collections::BTreeSet;

use proto::event::EventFilter;

use super::wire::event::Event;
use crate::http::problem::RequestProblem;

/// Field by which events are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventField {
    Kind,
    Name,
    Reason,
    Weight,
}

impl EventField {
    const ALL: [Self; 4] = [Self::Kind, Self::Name, Self::Reason, Self::Weight];

    fn key(self) -> &'static str {
        match self {
            Self::Kind => "involvedObject.kind",
            Self::Name => "involvedObject.name",
            Self::Reason => "reason",
            Self::Weight => "type",
        }
    }

    fn of(self, event: &Event) -> &str {
        match self {
            Self::Kind => &event.involved_object.kind,
            Self::Name => &event.involved_object.name,
            Self::Reason => &event.reason,
            Self::Weight => event.weight.as_str(),
        }
    }
}

/// Condition on a field: it has one of the texts, or none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EventCondition {
    field: EventField,
    texts: Vec<String>,
    is_negated: bool,
}

/// Selector of events: every condition has to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EventSelector(Vec<EventCondition>);

impl EventSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// When the text is no selector, or names an unknown field.
    pub(super) fn parse(text: &str) -> Result<Self, RequestProblem> {
        let conditions = parts(text).map(str::trim).filter(|part| !part.is_empty());
        conditions.map(EventCondition::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether an event is selected.
    pub(super) fn matches(&self, event: &Event) -> bool {
        self.0.iter().all(|condition| {
            let text = condition.field.of(event);
            condition.texts.iter().any(|wanted| wanted == text) != condition.is_negated
        })
    }

    /// Returns whether events about a kind of resources may be selected.
    pub(super) fn concerns(&self, kind: &str) -> bool {
        let mut kinds = self.0.iter().filter(|condition| condition.field == EventField::Kind);
        kinds.all(|condition| condition.texts.iter().any(|wanted| wanted == kind) != condition.is_negated)
    }

    /// Returns the part of the filter that a service applies faster than we do: every selected event passes the filter.
    pub(super) fn filter(&self, resource: &str) -> EventFilter {
        EventFilter {
            keys: self.wanted(EventField::Name),
            kinds: self.wanted(EventField::Reason),
            resource: resource.to_owned(),
            ..EventFilter::default()
        }
    }

    /// Returns texts of which the field of every selected event has one; empty: any text.
    fn wanted(&self, field: EventField) -> Vec<String> {
        let mut conditions =
            self.0.iter().filter(|condition| condition.field == field && !condition.is_negated);
        let texts: BTreeSet<_> =
            conditions.next().map(|condition| condition.texts.iter().cloned().collect()).unwrap_or_default();
        texts.into_iter().collect()
    }
}

impl EventCondition {
    fn parse(part: &str) -> Result<Self, RequestProblem> {
        for (operator, is_negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some((field, text)) = part.split_once(operator) {
                return Self::new(field, vec![text.trim().to_owned()], is_negated);
            }
        }
        for (operator, is_negated) in [(" notin ", true), (" notin(", true), (" in ", false), (" in(", false)]
        {
            if let Some((field, list)) = part.split_once(operator) {
                return Self::new(field, texts(list)?, is_negated);
            }
        }
        Err(refused(&format!("'{part}' has none of the operators =, ==, !=, in and notin")))
    }

    fn new(field: &str, texts: Vec<String>, is_negated: bool) -> Result<Self, RequestProblem> {
        let field = field.trim();
        let known = EventField::ALL.into_iter().find(|known| known.key() == field);
        let known = known.ok_or_else(|| {
            let all = EventField::ALL.map(EventField::key).join(", ");
            refused(&format!("'{field}' is no field of events, which are {all}"))
        })?;
        Ok(Self { field: known, texts, is_negated })
    }
}

/// Returns the parts of a selector: commas divide them, but not those within parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

/// Reads a list in parentheses, of which the first may have been read already.
fn texts(list: &str) -> Result<Vec<String>, RequestProblem> {
    let list = list.trim();
    let inner = list.strip_prefix('(').unwrap_or(list).strip_suffix(')');
    let inner = inner.ok_or_else(|| refused(&format!("'{list}' is no list in parentheses")))?;
    Ok(inner.split(',').map(|text| text.trim().to_owned()).collect())
}

fn refused(why: &str) -> RequestProblem {
    RequestProblem::bad_request(format!("fieldSelector: {why}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn selectors_name_fields_of_events() {
        let texts = [
            "",
            "involvedObject.kind=Device",
            "involvedObject.name in (a, b),type!=Warning",
            "reason==DeviceConnected, involvedObject.kind notin (Fleet)",
            "reason in(x)",
            "metadata.name=x",
            "reason",
            "reason in x",
        ];
        let lines = texts.map(|text| match EventSelector::parse(text) {
            Ok(selector) => {
                let filter = selector.filter("device");
                let concerned = ["Device", "Fleet"].into_iter().filter(|kind| selector.concerns(kind));
                let concerned: Vec<_> = concerned.collect();
                format!("{text} -> {concerned:?} {:?} {:?}\n", filter.keys, filter.kinds)
            }
            Err(problem) => format!("{text} -> {}\n", problem.detail),
        });
        expect![[r#"
             -> ["Device", "Fleet"] [] []
            involvedObject.kind=Device -> ["Device"] [] []
            involvedObject.name in (a, b),type!=Warning -> ["Device", "Fleet"] ["a", "b"] []
            reason==DeviceConnected, involvedObject.kind notin (Fleet) -> ["Device"] [] ["DeviceConnected"]
            reason in(x) -> ["Device", "Fleet"] [] ["x"]
            metadata.name=x -> fieldSelector: 'metadata.name' is no field of events, which are involvedObject.kind, involvedObject.name, reason, type
            reason -> fieldSelector: 'reason' has none of the operators =, ==, !=, in and notin
            reason in x -> fieldSelector: 'x' is no list in parentheses
        "#]]
        .assert_eq(&lines.concat());
    }
}
