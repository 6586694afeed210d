//! The caller that the claims of a verified token name.

use access_policy::{AccessCaller, NodeSubject};
use serde_json::Value;

use super::credentials::CredentialFault;

/// Claims that name a caller, by the settings of an issuer.
#[derive(Debug, Clone)]
pub(super) struct ClaimNames {
    /// Word for the issuer in the settings.
    pub issuer: String,
    pub subject: String,
    pub roles: Vec<ClaimPath>,
    pub tenants: Vec<ClaimPath>,
    /// Roles of every caller of the issuer.
    pub given_roles: Vec<String>,
    pub nodes: Vec<NodeSubject>,
}

/// Place of claims: names of members, of which `*` stands for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimPath(Vec<String>);

impl ClaimPath {
    /// Reads a path such as `realm_access.roles`. A name with dots in it, such as `https://site.example/roles`, is found too.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// Adds the texts at the place: those of a list, or the words of a text. Returns whether everything at the place could be
    /// read.
    fn collect(&self, claims: &Value, found: &mut Vec<String>) -> bool {
        match claims.get(self.0.join(".")) {
            Some(whole) if self.0.len() > 1 => texts(whole, found),
            Some(_) | None => below(&self.0, claims, found),
        }
    }
}

fn below(path: &[String], value: &Value, found: &mut Vec<String>) -> bool {
    match path.split_first() {
        None => texts(value, found),
        Some((name, rest)) if name == "*" => {
            let mut is_readable = true;
            for member in value.as_object().into_iter().flat_map(|members| members.values()) {
                is_readable &= below(rest, member, found);
            }
            is_readable
        }
        Some((name, rest)) => value.get(name).is_none_or(|member| below(rest, member, found)),
    }
}

fn texts(value: &Value, found: &mut Vec<String>) -> bool {
    match value {
        Value::Array(items) => {
            found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            items.iter().all(Value::is_string)
        }
        Value::String(words) => {
            found.extend(words.split_whitespace().map(str::to_owned));
            true
        }
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

impl ClaimNames {
    /// Returns the caller that verified claims name.
    ///
    /// # Errors
    /// When they name none.
    pub(super) fn caller(&self, claims: &Value) -> Result<AccessCaller, CredentialFault> {
        let subject = claims.get(&self.subject).and_then(Value::as_str).filter(|name| !name.is_empty());
        let subject = subject.ok_or(CredentialFault::Invalid("it does not name its subject"))?;
        let mut roles = self.given_roles.clone();
        for path in &self.roles {
            // Without a role that cannot be read the caller has fewer rights.
            path.collect(claims, &mut roles);
        }
        let mut tenants = Vec::new();
        // Without a tenant that cannot be read the caller would be bound to fewer tenants, or to none.
        if !self.tenants.iter().all(|path| path.collect(claims, &mut tenants)) {
            return Err(CredentialFault::Invalid("its tenants cannot be read"));
        }
        // An empty name is no tenant, but the administrator of all.
        tenants.retain(|tenant| !tenant.is_empty());
        let proved = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        let node = self.nodes.iter().find_map(|pattern| pattern.node(proved));
        Ok(AccessCaller { subject: subject.to_owned(), issuer: self.issuer.clone(), roles, tenants, node })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_name_callers_roles_tenants_and_nodes() {
        let paths = |texts: &[&str]| texts.iter().map(|text| ClaimPath::parse(text)).collect();
        let names = ClaimNames {
            issuer: "site".to_owned(),
            subject: "sub".to_owned(),
            roles: paths(&[
                "roles",
                "realm_access.roles",
                "resource_access.*.roles",
                "https://site.example/roles",
            ]),
            tenants: paths(&["tenants"]),
            given_roles: vec!["given".to_owned()],
            nodes: vec![NodeSubject::parse("spiffe://site/compute/{xname}/workload/bos-reporter").unwrap()],
        };
        let rows = [
            json!({ "sub": "alice", "realm_access": { "roles": ["admin", 3] } }),
            json!({ "sub": "bob", "resource_access": { "a": { "roles": ["x"] }, "b": { "roles": ["y"] }, "c": 1 } }),
            json!({ "sub": "carl", "roles": "wlm  more", "https://site.example/roles": ["url"] }),
            json!({ "sub": "tom", "tenants": ["blue", ""], "roles": { "admin": true } }),
            json!({ "sub": "spiffe://site/compute/X1000C0S0B0N0/workload/bos-reporter" }),
            json!({ "sub": "" }),
            json!({ "sub": "tim", "tenants": { "blue": true } }),
            json!({ "sub": "tim", "tenants": [1] }),
            json!({ "sub": "tim", "tenants": null }),
            json!({ "roles": ["admin"] }),
        ]
        .map(|claims| match names.caller(&claims) {
            Ok(AccessCaller { subject, roles, tenants, node, .. }) => {
                format!("{subject} {roles:?} {tenants:?} {node:?}\n")
            }
            Err(fault) => format!("{fault}\n"),
        });
        expect![[r#"
            alice ["given", "admin"] [] None
            bob ["given", "x", "y"] [] None
            carl ["given", "wlm", "more", "url"] [] None
            tom ["given"] ["blue"] None
            spiffe://site/compute/X1000C0S0B0N0/workload/bos-reporter ["given"] [] Some("x1000c0s0b0n0")
            the token is not valid: it does not name its subject
            the token is not valid: its tenants cannot be read
            the token is not valid: its tenants cannot be read
            tim ["given"] [] None
            the token is not valid: it does not name its subject
        "#]]
        .assert_eq(&rows.concat());
    }
}
