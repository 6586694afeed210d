//! Policy as a TOML file.

use domain::access::{
    decision::ContentRule,
    pattern::{PathPattern, SubjectPattern},
    policy::{
        AccessPolicy, AccessRule, AllowConditions, CallerSelector, PolicyDefect, RuleEffect, TenantRule,
    },
};
use serde::Deserialize;

/// Policy that holds where no other is set.
pub const DEFAULT_POLICY: &str = include_str!("default-policy.toml");

/// Reason why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The text is no TOML, or has another shape.
    #[error(transparent)]
    Unreadable(#[from] toml::de::Error),
    /// A rule contradicts itself or another one.
    #[error(transparent)]
    Defect(#[from] PolicyDefect),
    /// A path is no pattern.
    #[error("rule '{rule}': paths: '{path}' {reason}")]
    Path {
        /// Name of the rule.
        rule: String,
        /// Text in the place of a pattern.
        path: String,
        /// Reason why the text is none.
        reason: &'static str,
    },
    /// A rule names no caller.
    #[error("rule '{0}': names no callers: set callers, roles, subjects or issuers")]
    NoCallers(String),
    /// A rule that denies has a condition.
    #[error("rule '{0}': denies, and has tenant or content, which only rules that allow may have")]
    ConditionalDenial(String),
    /// There is no rule.
    #[error("the policy has no rules, and so would refuse even probes")]
    Empty,
}

/// Reads a policy.
///
/// # Errors
/// Names the rule and the defect.
pub fn parse_policy(text: &str) -> Result<AccessPolicy, PolicyError> {
    let PolicyFile { rule: rules } = toml::from_str(text)?;
    if rules.is_empty() {
        return Err(PolicyError::Empty);
    }
    let rules = rules.into_iter().map(RuleEntry::rule).collect::<Result<_, _>>()?;
    Ok(AccessPolicy::new(rules)?)
}

/// Returns the policy that holds where no other is set.
pub fn default_policy() -> AccessPolicy {
    parse_policy(DEFAULT_POLICY).expect("the tests read this text")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    rule: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    name: String,
    #[serde(default)]
    effect: EffectWord,
    callers: Option<CallersWord>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    subjects: Vec<String>,
    #[serde(default)]
    issuers: Vec<String>,
    #[serde(default)]
    methods: Vec<String>,
    paths: Vec<String>,
    tenant: Option<TenantWord>,
    content: Option<ContentWord>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EffectWord {
    #[default]
    Allow,
    Deny,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum CallersWord {
    Everybody,
    Authenticated,
    Nodes,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum TenantWord {
    Ignored,
    None,
    Own,
    Any,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum ContentWord {
    ActualState,
}

impl RuleEntry {
    fn rule(self) -> Result<AccessRule, PolicyError> {
        let effect = self.effect()?;
        let Self { name, callers, roles, subjects, issuers, methods, paths, .. } = self;
        if callers.is_none() && roles.is_empty() && subjects.is_empty() && issuers.is_empty() {
            return Err(PolicyError::NoCallers(name));
        }
        let patterns = paths.into_iter().map(|path| match PathPattern::parse(&path) {
            Ok(pattern) => Ok(pattern),
            Err(reason) => Err(PolicyError::Path { rule: name.clone(), path, reason }),
        });
        let paths = patterns.collect::<Result<_, _>>()?;
        let callers = CallerSelector {
            is_everybody: callers == Some(CallersWord::Everybody),
            roles,
            subjects: subjects.iter().map(|subject| SubjectPattern::parse(subject)).collect(),
            issuers,
            is_node: callers == Some(CallersWord::Nodes),
        };
        Ok(AccessRule { name, callers, methods, paths, effect })
    }

    fn effect(&self) -> Result<RuleEffect, PolicyError> {
        match self.effect {
            EffectWord::Deny if self.tenant.is_some() || self.content.is_some() => {
                Err(PolicyError::ConditionalDenial(self.name.clone()))
            }
            EffectWord::Deny => Ok(RuleEffect::Deny),
            EffectWord::Allow => {
                let tenant = match self.tenant {
                    Some(TenantWord::Ignored) => TenantRule::Ignored,
                    Some(TenantWord::Own) => TenantRule::Own,
                    Some(TenantWord::Any) => TenantRule::Any,
                    Some(TenantWord::None) | None => TenantRule::None,
                };
                let content = match self.content {
                    Some(ContentWord::ActualState) => ContentRule::ActualState,
                    None => ContentRule::Any,
                };
                Ok(RuleEffect::Allow(AllowConditions { tenant, content }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn default_policy_can_be_used() {
        let names: Vec<_> = default_policy().rules().iter().map(|rule| rule.name.clone()).collect();
        expect![[r#"
            probes
            descriptions
            metrics
            firmware
            notifications
            administrators
            tenant administrators read
            tenant administrators act
            workload managers start
            workload managers follow
            nodes report
            compute reports
            introductions
            questions about rights"#]]
        .assert_eq(&names.join("\n"));
    }

    #[test]
    fn mistakes_are_named() {
        let rule = |rest: &str| format!("[[rule]]\nname = \"r\"\n{rest}");
        let texts = [
            String::new(),
            "rules = []".to_owned(),
            rule("paths = [\"/a\"]"),
            rule("paths = [\"a\"]\nroles = [\"admin\"]"),
            rule("paths = []\nroles = [\"admin\"]"),
            rule("paths = [\"/a\"]\nrole = \"admin\""),
            rule("paths = [\"/a\"]\nroles = [\"admin\"]\neffect = \"deny\"\ntenant = \"own\""),
            rule("paths = [\"/a\"]\nroles = [\"admin\"]\neffect = \"forbid\""),
            rule("paths = [\"/a\"]\ncallers = \"everybody\""),
            rule("paths = [\"/a\"]\ncallers = \"authenticated\""),
        ];
        let rows = texts.map(|text| match parse_policy(&text) {
            Ok(_) => "good\n".to_owned(),
            Err(error) => format!("{}\n", error.to_string().trim().replace('\n', " / ")),
        });
        expect![[r#"
            the policy has no rules, and so would refuse even probes
            TOML parse error at line 1, column 1 /   | / 1 | rules = [] /   | ^^^^^ / unknown field `rules`, expected `rule`
            rule 'r': names no callers: set callers, roles, subjects or issuers
            rule 'r': paths: 'a' has to begin with /
            rule 'r': has no paths
            TOML parse error at line 4, column 1 /   | / 4 | role = "admin" /   | ^^^^ / unknown field `role`, expected one of `name`, `effect`, `callers`, `roles`, `subjects`, `issuers`, `methods`, `paths`, `tenant`, `content`
            rule 'r': denies, and has tenant or content, which only rules that allow may have
            TOML parse error at line 5, column 10 /   | / 5 | effect = "forbid" /   |          ^^^^^^^^ / unknown variant `forbid`, expected `allow` or `deny`
            rule 'r': is about everybody, so that tenant has to be "ignored"
            good
        "#]].assert_eq(&rows.concat());
    }
}
