//! Callers, and the nodes that some of them are.

use crate::core::xname::node_xname;

/// Caller whose credentials were verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessCaller {
    /// Name of the caller at its issuer.
    pub subject: String,
    /// Word of the settings for the issuer of the credentials.
    pub issuer: String,
    /// Roles of the caller.
    pub roles: Vec<String>,
    /// Tenants that the caller acts for; empty: the caller is bound to no tenant. No name is empty.
    pub tenants: Vec<String>,
    /// Id of the node that the caller is, in its canonical spelling.
    pub node: Option<String>,
}

impl AccessCaller {
    /// Returns the name for events and logs, such as `alice@keycloak`.
    pub fn shown(&self) -> String {
        format!("{}@{}", self.subject, self.issuer)
    }
}

/// Placeholder for the id of the node in a pattern.
const XNAME: &str = "{xname}";

/// Pattern of subjects that are nodes, such as `spiffe://site/compute/{xname}/workload/bos-reporter`. A segment that is `*`
/// stands for any one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSubject(Vec<String>);

impl NodeSubject {
    /// Reads a pattern; `None`: it does not have exactly one segment that is `{xname}`.
    pub fn parse(text: &str) -> Option<Self> {
        let segments: Vec<_> = text.split('/').map(str::to_owned).collect();
        let nodes = segments.iter().filter(|segment| *segment == XNAME).count();
        let is_plain = |segment: &String| segment == XNAME || !segment.contains(['{', '}']);
        (nodes == 1 && segments.iter().all(is_plain)).then_some(Self(segments))
    }

    /// Returns the node that a subject is, in its canonical spelling; `None`: the subject is no node.
    pub fn node(&self, subject: &str) -> Option<String> {
        let segments: Vec<_> = subject.split('/').collect();
        if segments.len() != self.0.len() {
            return None;
        }
        let mut node = None;
        for (pattern, segment) in self.0.iter().zip(segments) {
            match pattern.as_str() {
                XNAME => node = node_xname(segment),
                "*" if !segment.is_empty() => {}
                exact if exact == segment => {}
                _ => return None,
            }
        }
        node
    }
}
