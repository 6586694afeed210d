//! `reveille policy`: the policy of the gateway, and which of its rules decides about an operation. The command reads a file, so
//! that a policy can be tried before a gateway has it.

use std::path::PathBuf;

use access_policy::{
    AccessCaller, AccessDecision, AccessOperation, AccessPolicy, ContentRule, DEFAULT_POLICY, GrantedTenant,
    RequestedTenant, default_policy, node_xname, operation_path, parse_policy,
};
use clap::{Args, Subcommand};

use crate::{
    error::{CommandError, ExitReason},
    output::print,
};

/// Examples for the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  reveille policy explain role=wlm 'POST /v2/sessions'
  reveille policy explain node=x1000c0s0b0n0 'PATCH /v2/components/x1000c0s0b0n1'
  reveille policy explain role=tenant-admin,tenant=blue 'GET /v2/components' --for-tenant red
  reveille policy explain nobody 'GET /v2/components' --policy policy.toml";

/// Command about policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Print the default policy, to copy and change, or a file once it was checked
    Show(PolicyFlags),
    /// Say which rule decides about an operation of a caller
    #[command(after_help = EXAMPLES)]
    Explain(ExplainFlags),
}

/// Flags that choose the policy.
#[derive(Debug, Args)]
pub struct PolicyFlags {
    /// File with the policy, as gateway.identity.policy_file names it [default: the default policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// Flags of `reveille policy explain`.
#[derive(Debug, Args)]
pub struct ExplainFlags {
    /// Caller: nobody, or role=, subject=, issuer=, tenant= and node= with commas between them
    #[arg(value_parser = caller)]
    who: Caller,
    /// Method and path, such as 'PATCH /v2/components/x1000c0s0b0n0'
    #[arg(value_parser = operation)]
    what: Operation,
    /// Tenant that the request names in Cray-Tenant-Name
    #[arg(long, value_name = "NAME", default_value = "")]
    for_tenant: String,
    #[command(flatten)]
    policy: PolicyFlags,
}

/// Caller of a question; `None`: nobody.
#[derive(Debug, Clone)]
struct Caller(Option<AccessCaller>);

/// Operation of a question.
#[derive(Debug, Clone)]
struct Operation {
    method: String,
    path: String,
}

fn caller(text: &str) -> Result<Caller, String> {
    if text == "nobody" {
        return Ok(Caller(None));
    }
    let mut caller = AccessCaller::default();
    for word in text.split(',') {
        let (key, value) = word.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or_else(|| {
            format!("'{word}' is neither nobody nor such as role=admin, tenant=blue or node=x1000c0s0b0n0")
        })?;
        match key {
            "role" => caller.roles.push(value.to_owned()),
            "tenant" => caller.tenants.push(value.to_owned()),
            "subject" => value.clone_into(&mut caller.subject),
            "issuer" => value.clone_into(&mut caller.issuer),
            "node" => {
                let node = node_xname(value);
                caller.node =
                    Some(node.ok_or_else(|| format!("'{value}' is no node such as x1000c0s0b0n0"))?);
            }
            other => return Err(format!("'{other}' is none of role, subject, issuer, tenant and node")),
        }
    }
    Ok(Caller(Some(caller)))
}

fn operation(text: &str) -> Result<Operation, String> {
    let (method, path) = text.split_once(' ').ok_or("has no space between method and path")?;
    let path = path.trim().split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(format!("'{path}' is no path: it has to begin with /"));
    }
    Ok(Operation { method: method.to_ascii_uppercase(), path: path.to_owned() })
}

/// Carries a command out.
///
/// # Errors
/// A policy that cannot be read, or standard output that cannot be written.
pub(crate) fn run(command: &PolicyCommand) -> Result<ExitReason, CommandError> {
    match command {
        PolicyCommand::Show(flags) => {
            print(&flags.text()?)?;
            Ok(ExitReason::Done)
        }
        PolicyCommand::Explain(flags) => {
            let policy = flags.policy.read()?;
            print(&explained(&policy, flags))?;
            Ok(ExitReason::Done)
        }
    }
}

impl PolicyFlags {
    fn read(&self) -> Result<AccessPolicy, CommandError> {
        let Some(path) = &self.policy else { return Ok(default_policy()) };
        let unusable = |reason: String| CommandError::File { path: path.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        parse_policy(&text).map_err(|error| unusable(error.to_string()))
    }

    /// Returns the text of the policy, once it was found to be one.
    fn text(&self) -> Result<String, CommandError> {
        self.read()?;
        match &self.policy {
            None => Ok(DEFAULT_POLICY.to_owned()),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| CommandError::File { path: path.clone(), reason: error.to_string() }),
        }
    }
}

fn explained(policy: &AccessPolicy, flags: &ExplainFlags) -> String {
    let tenant = match flags.for_tenant.as_str() {
        "" => RequestedTenant::None,
        name => RequestedTenant::Named(name.to_owned()),
    };
    let operation =
        AccessOperation { method: &flags.what.method, path: operation_path(&flags.what.path), tenant };
    match policy.decide(flags.who.0.as_ref(), &operation) {
        AccessDecision::Allowed(grant) => {
            let tenant = match &grant.tenant {
                GrantedTenant::AsRequested if flags.for_tenant.is_empty() => "for every tenant".to_owned(),
                GrantedTenant::AsRequested => format!("for the tenant {}", flags.for_tenant),
                GrantedTenant::Without => "without a tenant".to_owned(),
                GrantedTenant::Of(tenant) => format!("for the tenant {tenant}"),
            };
            let content = match grant.content {
                ContentRule::Any => "",
                ContentRule::ActualState => ", if the body has an actual state and nothing else",
            };
            format!("allowed by rule '{}', {tenant}{content}\n", grant.rule)
        }
        AccessDecision::Refused(refusal) => format!("refused: {refusal}\n"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn questions_are_answered_with_the_rule() {
        let mut lines = String::new();
        for (who, what, for_tenant) in [
            ("nobody", "GET /livez", ""),
            ("nobody", "GET /apis/bos/v2/components?ids=x", ""),
            ("role=admin", "delete /v2/sessions", ""),
            ("role=admin", "GET /v2/sessions", "blue"),
            ("role=wlm", "POST /v2/sessions", ""),
            ("role=wlm", "GET /v2/components", ""),
            ("role=tenant-admin,tenant=blue", "GET /v2/components", ""),
            ("role=tenant-admin,tenant=blue", "GET /v2/components", "red"),
            ("node=X1000C0S0B0N0", "PATCH /v2/components/x1000c0s0b0n0", ""),
            ("node=x1000c0s0b0n0", "PATCH /v2/components/x1000c0s0b0n1", ""),
            ("node=login", "GET /", ""),
            ("somebody", "GET /", ""),
            ("role=", "GET /", ""),
            ("kind=x", "GET /", ""),
            ("nobody", "GET", ""),
            ("nobody", "GET v2", ""),
        ] {
            let answer = caller(who).and_then(|who| {
                let what = operation(what)?;
                let policy = PolicyFlags { policy: None };
                let flags = ExplainFlags { who, what, for_tenant: for_tenant.to_owned(), policy };
                Ok(explained(&default_policy(), &flags))
            });
            let answer = answer.unwrap_or_else(|error| format!("wrong: {error}\n"));
            lines += &format!("{who} | {what} | {for_tenant}: {answer}");
        }
        expect![[r#"
            nobody | GET /livez | : allowed by rule 'probes', without a tenant
            nobody | GET /apis/bos/v2/components?ids=x | : refused: the request needs credentials
            role=admin | delete /v2/sessions | : allowed by rule 'administrators', for every tenant
            role=admin | GET /v2/sessions | blue: allowed by rule 'administrators', for the tenant blue
            role=wlm | POST /v2/sessions | : allowed by rule 'workload managers start', without a tenant
            role=wlm | GET /v2/components | : refused: no rule of the policy allows this to the caller
            role=tenant-admin,tenant=blue | GET /v2/components | : allowed by rule 'tenant administrators read', for the tenant blue
            role=tenant-admin,tenant=blue | GET /v2/components | red: refused: the caller does not act for the tenant of the request (rule 'tenant administrators read')
            node=X1000C0S0B0N0 | PATCH /v2/components/x1000c0s0b0n0 | : allowed by rule 'nodes report', without a tenant, if the body has an actual state and nothing else
            node=x1000c0s0b0n0 | PATCH /v2/components/x1000c0s0b0n1 | : refused: the caller may do this for its own node only (rule 'nodes report')
            node=login | GET / | : wrong: 'login' is no node such as x1000c0s0b0n0
            somebody | GET / | : wrong: 'somebody' is neither nobody nor such as role=admin, tenant=blue or node=x1000c0s0b0n0
            role= | GET / | : wrong: 'role=' is neither nobody nor such as role=admin, tenant=blue or node=x1000c0s0b0n0
            kind=x | GET / | : wrong: 'kind' is none of role, subject, issuer, tenant and node
            nobody | GET | : wrong: has no space between method and path
            nobody | GET v2 | : wrong: 'v2' is no path: it has to begin with /
        "#]].assert_eq(&lines);
    }
}
