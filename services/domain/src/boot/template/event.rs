//! Events of session templates.

use crate::{boot::template::SessionTemplate, core::event::EventContent};

/// Words for the kinds of events of a template.
pub const KINDS: [&str; 3] = [CREATED, DELETED, WRITTEN];

const CREATED: &str = "created";
const DELETED: &str = "deleted";
const WRITTEN: &str = "written";

/// Returns the event of a change. The record has the content of the template; a session names the template that it used.
pub fn event(before: Option<&SessionTemplate>, after: Option<&SessionTemplate>) -> Option<EventContent> {
    match (before, after) {
        (None, Some(_)) => Some(EventContent::of(CREATED)),
        (Some(_), None) => Some(EventContent::of(DELETED)),
        (Some(before), Some(after)) => (!same_template(before, after)).then(|| EventContent::of(WRITTEN)),
        (None, None) => None,
    }
}

fn same_template(before: &SessionTemplate, after: &SessionTemplate) -> bool {
    *before == SessionTemplate { revision: before.revision, ..after.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_created_written_and_deleted() {
        let stored = SessionTemplate { revision: 7, ..SessionTemplate::default() };
        let same = SessionTemplate::default();
        let described = SessionTemplate { description: Some("d".to_owned()), ..same.clone() };
        for (before, after, expected) in [
            (None, Some(&same), Some("created")),
            (Some(&stored), Some(&same), None),
            (Some(&stored), Some(&described), Some("written")),
            (Some(&stored), None, Some("deleted")),
            (None, None, None),
        ] {
            assert_eq!(event(before, after).map(|event| event.kind), expected);
        }
    }
}
