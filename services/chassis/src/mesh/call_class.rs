//! The class of a call, by which calls are admitted: its caller names it, and it goes with every call made on the way.

use std::future::Future;

use http::HeaderMap;
use tonic::metadata::{MetadataMap, MetadataValue};

/// Metadata key of the class of a call. Lists and watches of callers outside the mesh are recognised by the name of the
/// method.
pub const HEADER: &str = "x-reveille-class";

/// Classes of calls, from those that arrive in thousands to those on which everything rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// Reports and questions of nodes.
    Report,
    /// Calls of people and their tools, lists aside.
    Operator,
    /// A list, from its first to its last message.
    List,
    /// A watch, as long as it lasts.
    Watch,
    /// Calls of the parts of the mesh to each other, lists and watches included.
    Control,
}

impl CallClass {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Report, Self::Operator, Self::List, Self::Watch, Self::Control];

    /// The word for the class in metadata, metrics and errors.
    pub fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Operator => "operator",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Control => "control",
        }
    }

    /// Returns the class of a call of the method at `path`; `None`: it is always admitted, as are health checks.
    ///
    /// A caller that names no class counts as a person: parts of the mesh name one in every call.
    pub(crate) fn of(path: &str, headers: &HeaderMap) -> Option<Self> {
        let (service, method) = path.trim_start_matches('/').split_once('/')?;
        if !service.starts_with("reveille.") {
            return None;
        }
        let told = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let is = |class: Self| told == Some(class.word());
        Some(match method {
            _ if is(Self::Control) => Self::Control,
            list if list.starts_with("List") => Self::List,
            watch if watch.starts_with("Watch") => Self::Watch,
            _ if is(Self::Report) => Self::Report,
            _ => Self::Operator,
        })
    }
}

/// Whether a part of the mesh makes the call on its own behalf, and not on behalf of a node or an operator.
pub fn is_control(metadata: &MetadataMap) -> bool {
    metadata.get(HEADER).is_some_and(|class| class == CallClass::Control.word())
}

tokio::task_local! {
    static CURRENT: CallClass;
}

/// Runs `work` with its outgoing calls in `class`.
pub async fn scope<F: Future>(class: CallClass, work: F) -> F::Output {
    CURRENT.scope(class, work).await
}

/// Sets the class of an outgoing call. A call outside of any [`scope`] is one of the mesh itself.
pub(crate) fn mark(metadata: &mut MetadataMap) {
    let class = CURRENT.try_with(|class| *class).unwrap_or(CallClass::Control);
    metadata.insert(HEADER, MetadataValue::from_static(class.word()));
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn calls_are_told_apart_by_their_method_and_what_they_say() {
        let mut rows = String::new();
        for path in [
            "/reveille.component.v1.ComponentService/PatchComponents",
            "/reveille.component.v1.ComponentService/ListComponents",
            "/reveille.component.v1.ComponentService/WatchComponents",
            "/grpc.health.v1.Health/Check",
            "/metrics",
        ] {
            for told in ["", "report", "operator", "control", "list", "king"] {
                let mut headers = HeaderMap::new();
                headers.insert(HEADER, told.parse().unwrap());
                let class = CallClass::of(path, &headers).map_or("always let in", CallClass::word);
                write!(rows, "{}: {class}; ", if told.is_empty() { "-" } else { told }).unwrap();
            }
            writeln!(rows, "{}", path.rsplit('/').next().unwrap()).unwrap();
        }
        expect![[r#"
            -: operator; report: report; operator: operator; control: control; list: operator; king: operator; PatchComponents
            -: list; report: list; operator: list; control: control; list: list; king: list; ListComponents
            -: watch; report: watch; operator: watch; control: control; list: watch; king: watch; WatchComponents
            -: always let in; report: always let in; operator: always let in; control: always let in; list: always let in; king: always let in; Check
            -: always let in; report: always let in; operator: always let in; control: always let in; list: always let in; king: always let in; metrics
        "#]].assert_eq(&rows);
    }
}
