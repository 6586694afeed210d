//! The default policy as a table: every kind of caller, and every operation of every face.

use std::{collections::BTreeSet, fmt::Write as _};

use axum::{body::Body, extract::Request};
use chassis::{Tasks, settings::IdentitySettings};
use expect_test::expect_file;
use sha2::{Digest as _, Sha256};

use crate::{
    http::admission::BodyCondition, identity::IdentityGate, kubernetes::operations as kubernetes_operations,
    port::description_at,
};

/// Node that a caller of the table is, and that paths name.
pub(super) const NODE: &str = "x1000c0s0b0n0";

/// Callers: name, tenant in the header of requests, and the entry of the token beside name and digest.
const CALLERS: [(&str, &str, Option<&str>); 12] = [
    ("nobody", "", None),
    ("bad token", "", None),
    ("expired token", "", Some("roles = [\"admin\"]\nexpires = \"2020-01-01T00:00:00Z\"")),
    ("admin", "", Some("roles = [\"admin\"]")),
    ("admin for a tenant", "blue", Some("roles = [\"admin\"]")),
    ("tenant admin", "", Some("roles = [\"tenant-admin\"]\ntenants = [\"blue\", \"red\"]")),
    (
        "tenant admin for its tenant",
        "blue",
        Some("roles = [\"tenant-admin\"]\ntenants = [\"blue\", \"red\"]"),
    ),
    ("tenant admin for another", "green", Some("roles = [\"tenant-admin\"]\ntenants = [\"blue\", \"red\"]")),
    ("wlm", "", Some("roles = [\"wlm\"]")),
    ("system-compute", "", Some("roles = [\"system-compute\"]")),
    ("the node", "", Some("node = \"x1000c0s0b0n0\"")),
    ("another node", "", Some("node = \"x1000c0s0b0n1\"")),
];

/// Returns the text of a file with these tokens, each named with words that are joined: the token of `tenant admin` is
/// `tenant-admin-token`.
pub(super) fn token_file(tokens: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, rest) in tokens {
        let digest = Sha256::digest(token(name).as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "[[token]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{rest}").unwrap();
    }
    text
}

pub(super) fn token(name: &str) -> String {
    format!("{}-token", name.replace(' ', "-"))
}

/// Returns every operation: method and path with the names in it.
fn operations() -> BTreeSet<(String, String)> {
    let document = description_at("");
    let mut operations = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = match path.strip_suffix("/{id}") {
            Some(above) => format!("{above}/{NODE}"),
            None => path.replace(['{', '}'], ""),
        };
        let methods = item.as_object().unwrap().keys().filter(|name| *name != "servers");
        operations.extend(methods.map(|method| (path.clone(), method.to_ascii_uppercase())));
    }
    operations.extend(kubernetes_operations());
    operations
}

#[tokio::test]
async fn default_policy_is_this_table() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.toml");
    let known = CALLERS.iter().filter_map(|(name, _, rest)| Some((*name, (*rest)?)));
    std::fs::write(
        &file,
        token_file(&known.chain([("unknown role", "roles = [\"chef\"]")]).collect::<Vec<_>>()),
    )
    .unwrap();
    let settings = IdentitySettings { token_file: file, ..IdentitySettings::default() };
    let gate = IdentityGate::start(&settings, &Tasks::default()).unwrap().unwrap();
    let mut callers = CALLERS.map(|(name, tenant, _)| (name, tenant)).to_vec();
    callers.push(("unknown role", ""));
    let mut table = String::new();
    for (number, (name, tenant)) in callers.iter().enumerate() {
        let header = if tenant.is_empty() { String::new() } else { format!(", Cray-Tenant-Name: {tenant}") };
        writeln!(table, "{:>3} {name}{header}", number + 1).unwrap();
    }
    let head: String = (1..=callers.len()).map(|number| format!("{number:>4}")).collect();
    writeln!(table, "\n{head}\n").unwrap();
    for (path, method) in operations() {
        let mut row = String::new();
        for (name, tenant) in &callers {
            let request = Request::builder().method(method.as_str()).uri(&path);
            let request = match *name {
                "nobody" => request,
                name => request.header("authorization", format!("Bearer {}", token(name))),
            };
            let request = match *tenant {
                "" => request,
                tenant => request.header("cray-tenant-name", tenant),
            };
            let word = match gate.admit("", request.body(Body::empty()).unwrap()).await {
                Ok(request) if request.extensions().get::<BodyCondition>().is_some() => "own".to_owned(),
                Ok(_) => "ok".to_owned(),
                Err(refusal) => refusal.problem().status.as_u16().to_string(),
            };
            write!(row, "{word:>4}").unwrap();
        }
        writeln!(table, "{row}  {method} {path}").unwrap();
    }
    table.push_str("\nok: allowed; own: allowed for a body with an actual state and nothing else\n");
    expect_file!["access.txt"].assert_eq(&table);
}
