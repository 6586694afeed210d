//! The REST contract, rule by rule, as `rules/*.rules` state it: the tables are meant to be read, one file for a part
//! of the BOS reference. Each runs on every kind of database.
//!
//! Only the parts that answer REST run: gateway, component registry and session manager. So nothing acts on a node,
//! nothing is decided about one, and every answer is the same every time.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod parts;
mod pattern;
mod table;

use parts::ContractMesh;
use table::ContractRule;

#[tokio::test(flavor = "multi_thread")]
async fn transport() {
    check(include_str!("rules/transport.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options() {
    check(include_str!("rules/options.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn components() {
    check(include_str!("rules/components.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn component_writes() {
    check(include_str!("rules/component_writes.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_writes() {
    check(include_str!("rules/bulk_writes.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn templates() {
    check(include_str!("rules/templates.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions() {
    check(include_str!("rules/sessions.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_status() {
    check(include_str!("rules/session_status.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants() {
    check(include_str!("rules/tenants.rules"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staging() {
    check(include_str!("rules/staging.rules"), false).await;
}

/// Rules that differ where BOS is followed strictly (BOS reference 12).
#[tokio::test(flavor = "multi_thread")]
async fn strict() {
    check(include_str!("rules/strict.rules"), true).await;
}

/// Holds every rule of a table against both databases, each rule beginning with nothing stored, and shows all that are
/// broken.
async fn check(text: &str, strict: bool) {
    let rules = table::parse(text);
    let mut broken = Vec::new();
    let mut databases = Vec::new();
    for parts in ContractMesh::on_every_database(strict).await {
        for rule in &rules {
            parts.clear().await;
            if let Err(why) = parts.hold(rule).await {
                broken.push(format!("on {}: {why}", parts.database));
            }
        }
        databases.push(parts.database);
        parts.stop().await;
    }
    assert!(broken.is_empty(), "{}\nof {} rules on {databases:?}", broken.join("\n"), rules.len());
}

impl ContractMesh {
    /// Sends the requests of a rule and compares the answers.
    ///
    /// # Errors
    /// Shows rule, request, expected answer and actual answer.
    async fn hold(&self, rule: &ContractRule) -> Result<(), String> {
        for step in &rule.steps {
            let mut mismatch = self.mismatch(step).await;
            for _ in 0..if step.eventually { table::LOOKS } else { 0 } {
                if mismatch.is_none() {
                    break;
                }
                tokio::time::sleep(table::PAUSE).await;
                mismatch = self.mismatch(step).await;
            }
            if let Some((why, got)) = mismatch {
                return Err(format!(
                    "{}\n  request   {}\n  expected  {}\n  got       {got}\n  because   {why}",
                    rule.title, step.request, step.expected
                ));
            }
        }
        Ok(())
    }

    async fn mismatch(&self, step: &table::RuleStep) -> Option<(String, String)> {
        let answer = self.send(&step.request).await;
        step.expected.mismatch(&answer).map(|why| (why, answer.to_string()))
    }
}
