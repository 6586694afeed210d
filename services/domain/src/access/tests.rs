//! Decisions as tables.

use std::fmt::Write as _;

use expect_test::expect;

use super::{
    caller::{AccessCaller, NodeSubject},
    decision::{AccessDecision, ContentRule, GrantedTenant, RefusalReason},
    operation::{AccessOperation, RequestedTenant},
    pattern::{PathPattern, SubjectPattern},
    policy::{
        AccessPolicy, AccessRule, AllowConditions, CallerSelector, PolicyDefect, RuleEffect, TenantRule,
    },
};

fn rule(name: &str, roles: &[&str], methods: &[&str], path: &str, effect: RuleEffect) -> AccessRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    AccessRule {
        name: name.to_owned(),
        callers: CallerSelector { roles: owned(roles), ..CallerSelector::default() },
        methods: owned(methods),
        paths: vec![PathPattern::parse(path).unwrap()],
        effect,
    }
}

fn allow(tenant: TenantRule) -> RuleEffect {
    RuleEffect::Allow(AllowConditions { tenant, content: ContentRule::Any })
}

fn site() -> AccessPolicy {
    let mut probes = rule("probes", &[], &["GET"], "/livez", allow(TenantRule::Ignored));
    probes.callers.is_everybody = true;
    let report =
        RuleEffect::Allow(AllowConditions { tenant: TenantRule::None, content: ContentRule::ActualState });
    let mut reporters = rule("reporters", &[], &["PATCH"], "/v2/components/{own_node}", report);
    reporters.callers.is_node = true;
    let mut robots = rule("robots", &[], &["GET"], "/v2/sessions", allow(TenantRule::None));
    robots.callers.subjects = vec![SubjectPattern::parse("robot-*")];
    robots.callers.issuers = vec!["site".to_owned()];
    AccessPolicy::new(vec![
        probes,
        rule("no deletion", &["trainee"], &["DELETE"], "/v2/**", RuleEffect::Deny),
        rule("administrators", &["admin"], &[], "/**", allow(TenantRule::Any)),
        rule("tenants", &["tenant-admin"], &["GET", "DELETE"], "/v2/sessions/**", allow(TenantRule::Own)),
        rule("wlm", &["wlm"], &["GET"], "/v2/sessions/*", allow(TenantRule::None)),
        reporters,
        robots,
    ])
    .unwrap()
}

fn caller(text: &str) -> Option<AccessCaller> {
    let mut caller = AccessCaller { issuer: "site".to_owned(), ..AccessCaller::default() };
    let mut words = text.split(' ');
    caller.subject = words.next().filter(|name| *name != "-")?.to_owned();
    for word in words {
        match word.split_once(':').unwrap() {
            ("role", role) => caller.roles.push(role.to_owned()),
            ("tenant", tenant) => caller.tenants.push(tenant.to_owned()),
            ("node", node) => caller.node = Some(node.to_owned()),
            ("issuer", issuer) => caller.issuer = issuer.to_owned(),
            other => panic!("{other:?}"),
        }
    }
    Some(caller)
}

fn shown(decision: &AccessDecision<'_>) -> String {
    match decision {
        AccessDecision::Allowed(grant) => {
            let tenant = match &grant.tenant {
                GrantedTenant::AsRequested => "as requested",
                GrantedTenant::Without => "without a tenant",
                GrantedTenant::Of(tenant) => tenant,
            };
            let content = match grant.content {
                ContentRule::Any => "",
                ContentRule::ActualState => ", actual state only",
            };
            format!("allowed by '{}', {tenant}{content}", grant.rule)
        }
        AccessDecision::Refused(refusal) => {
            format!("{} by {:?}", refusal.reason.word(), refusal.rule)
        }
    }
}

fn check(rows: &[(&str, &str, &str, &str)], expected: expect_test::Expect) {
    let policy = site();
    let mut table = String::new();
    for (who, method, path, tenant) in rows {
        let operation = AccessOperation {
            method,
            path: path.split('/').filter(|one| !one.is_empty()).map(str::to_owned).collect(),
            tenant: match *tenant {
                "" => RequestedTenant::None,
                "?" => RequestedTenant::Unreadable,
                named => RequestedTenant::Named(named.to_owned()),
            },
        };
        let decision = policy.decide(caller(who).as_ref(), &operation);
        writeln!(table, "{who} | {method} {path} | {tenant} -> {}", shown(&decision)).unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn first_rule_that_fits_decides() {
    check(
        &[
            ("-", "GET", "/livez", ""),
            ("-", "HEAD", "/livez", "blue"),
            ("-", "POST", "/livez", ""),
            ("-", "GET", "/v2/sessions", ""),
            ("amy role:admin", "DELETE", "/v2/sessions/s", ""),
            ("amy role:admin", "DELETE", "/v2/sessions/s", "blue"),
            ("amy role:admin role:trainee", "DELETE", "/v2/sessions/s", ""),
            ("amy role:admin role:trainee", "GET", "/v2/sessions/s", ""),
            ("wim role:wlm", "GET", "/v2/sessions/s", ""),
            ("wim role:wlm", "HEAD", "/v2/sessions/s", ""),
            ("wim role:wlm", "GET", "/v2/sessions/s/status", ""),
            ("wim role:wlm", "GET", "/v2/sessions/s", "blue"),
            ("wim role:wlm", "DELETE", "/v2/sessions/s", ""),
            ("robot-1", "GET", "/v2/sessions", ""),
            ("robot-1 issuer:other", "GET", "/v2/sessions", ""),
            ("robin", "GET", "/v2/sessions", ""),
            ("zoe role:chef", "GET", "/v2/sessions", ""),
        ],
        expect![[r#"
            - | GET /livez |  -> allowed by 'probes', without a tenant
            - | HEAD /livez | blue -> allowed by 'probes', without a tenant
            - | POST /livez |  -> unauthenticated by None
            - | GET /v2/sessions |  -> unauthenticated by None
            amy role:admin | DELETE /v2/sessions/s |  -> allowed by 'administrators', as requested
            amy role:admin | DELETE /v2/sessions/s | blue -> allowed by 'administrators', as requested
            amy role:admin role:trainee | DELETE /v2/sessions/s |  -> denied by Some("no deletion")
            amy role:admin role:trainee | GET /v2/sessions/s |  -> allowed by 'administrators', as requested
            wim role:wlm | GET /v2/sessions/s |  -> allowed by 'wlm', without a tenant
            wim role:wlm | HEAD /v2/sessions/s |  -> allowed by 'wlm', without a tenant
            wim role:wlm | GET /v2/sessions/s/status |  -> no_rule by None
            wim role:wlm | GET /v2/sessions/s | blue -> tenant_not_allowed by Some("wlm")
            wim role:wlm | DELETE /v2/sessions/s |  -> no_rule by None
            robot-1 | GET /v2/sessions |  -> allowed by 'robots', without a tenant
            robot-1 issuer:other | GET /v2/sessions |  -> no_rule by None
            robin | GET /v2/sessions |  -> no_rule by None
            zoe role:chef | GET /v2/sessions |  -> no_rule by None
        "#]],
    );
}

#[test]
fn callers_with_tenants_never_leave_them() {
    check(
        &[
            ("tom role:tenant-admin tenant:blue", "GET", "/v2/sessions", ""),
            ("tom role:tenant-admin tenant:blue", "GET", "/v2/sessions", "blue"),
            ("tom role:tenant-admin tenant:blue", "GET", "/v2/sessions", "red"),
            ("tom role:tenant-admin tenant:blue", "GET", "/v2/sessions", "?"),
            ("tom role:tenant-admin tenant:blue tenant:red", "GET", "/v2/sessions", ""),
            ("tom role:tenant-admin tenant:blue tenant:red", "GET", "/v2/sessions", "red"),
            ("tom role:tenant-admin", "GET", "/v2/sessions", "blue"),
            ("tom role:tenant-admin", "GET", "/v2/sessions", ""),
            ("tom role:tenant-admin tenant:blue", "GET", "/v2/options", "blue"),
            ("amy role:admin tenant:blue", "GET", "/v2/options", ""),
            ("wim role:wlm tenant:blue", "GET", "/v2/sessions/s", ""),
            ("wim role:wlm tenant:blue", "GET", "/v2/sessions/s", "blue"),
            ("tom role:tenant-admin tenant:blue", "GET", "/livez", ""),
        ],
        expect![[r#"
            tom role:tenant-admin tenant:blue | GET /v2/sessions |  -> allowed by 'tenants', blue
            tom role:tenant-admin tenant:blue | GET /v2/sessions | blue -> allowed by 'tenants', blue
            tom role:tenant-admin tenant:blue | GET /v2/sessions | red -> foreign_tenant by Some("tenants")
            tom role:tenant-admin tenant:blue | GET /v2/sessions | ? -> foreign_tenant by Some("tenants")
            tom role:tenant-admin tenant:blue tenant:red | GET /v2/sessions |  -> tenant_needed by Some("tenants")
            tom role:tenant-admin tenant:blue tenant:red | GET /v2/sessions | red -> allowed by 'tenants', red
            tom role:tenant-admin | GET /v2/sessions | blue -> no_tenant by Some("tenants")
            tom role:tenant-admin | GET /v2/sessions |  -> no_tenant by Some("tenants")
            tom role:tenant-admin tenant:blue | GET /v2/options | blue -> no_rule by None
            amy role:admin tenant:blue | GET /v2/options |  -> beyond_tenants by Some("administrators")
            wim role:wlm tenant:blue | GET /v2/sessions/s |  -> beyond_tenants by Some("wlm")
            wim role:wlm tenant:blue | GET /v2/sessions/s | blue -> beyond_tenants by Some("wlm")
            tom role:tenant-admin tenant:blue | GET /livez |  -> allowed by 'probes', without a tenant
        "#]],
    );
}

#[test]
fn no_tenant_in_a_request_changes_a_denial() {
    for tenants in ["", " tenant:blue", " tenant:blue tenant:red"] {
        for requested in [
            RequestedTenant::None,
            RequestedTenant::Named("blue".to_owned()),
            RequestedTenant::Named("red".to_owned()),
            RequestedTenant::Unreadable,
        ] {
            let who = caller(&format!("tom role:tenant-admin role:admin role:trainee{tenants}"));
            let path = ["v2", "sessions", "s"].map(str::to_owned).to_vec();
            let operation = AccessOperation { method: "DELETE", path, tenant: requested };
            let policy = site();
            let AccessDecision::Refused(refusal) = policy.decide(who.as_ref(), &operation) else {
                panic!("{operation:?}")
            };
            assert_eq!((refusal.reason, refusal.rule), (RefusalReason::Denied, Some("no deletion")));
        }
    }
}

#[test]
fn nodes_report_about_themselves() {
    check(
        &[
            ("n node:x1c0s0b0n0", "PATCH", "/v2/components/x1c0s0b0n0", ""),
            ("n node:x1c0s0b0n0", "PATCH", "/v2/components/X1c0s0b0n0", ""),
            ("n node:x1c0s0b0n0", "PATCH", "/v2/components/x1c0s0b0n1", ""),
            ("n node:x1c0s0b0n0", "PATCH", "/v2/components", ""),
            ("n node:x1c0s0b0n0", "PUT", "/v2/components/x1c0s0b0n0", ""),
            ("n node:x1c0s0b0n0", "PATCH", "/v2/components/x1c0s0b0n0", "blue"),
            ("n", "PATCH", "/v2/components/n", ""),
        ],
        expect![[r#"
            n node:x1c0s0b0n0 | PATCH /v2/components/x1c0s0b0n0 |  -> allowed by 'reporters', without a tenant, actual state only
            n node:x1c0s0b0n0 | PATCH /v2/components/X1c0s0b0n0 |  -> foreign_node by Some("reporters")
            n node:x1c0s0b0n0 | PATCH /v2/components/x1c0s0b0n1 |  -> foreign_node by Some("reporters")
            n node:x1c0s0b0n0 | PATCH /v2/components |  -> no_rule by None
            n node:x1c0s0b0n0 | PUT /v2/components/x1c0s0b0n0 |  -> no_rule by None
            n node:x1c0s0b0n0 | PATCH /v2/components/x1c0s0b0n0 | blue -> tenant_not_allowed by Some("reporters")
            n | PATCH /v2/components/n |  -> no_rule by None
        "#]],
    );
}

#[test]
fn subjects_of_nodes_hold_one_name() {
    let pattern = NodeSubject::parse("spiffe://site/*/{xname}/workload/bos-reporter").unwrap();
    let mut table = String::new();
    for subject in [
        "spiffe://site/compute/x1000c0s0b0n0/workload/bos-reporter",
        "spiffe://site/compute/X01000C0S0B0N0/workload/bos-reporter",
        "spiffe://site/compute/login-1/workload/bos-reporter",
        "spiffe://site/compute/x1000c0s0b0n0/workload/cfs-reporter",
        "spiffe://site//x1000c0s0b0n0/workload/bos-reporter",
        "spiffe://site/compute/more/x1000c0s0b0n0/workload/bos-reporter",
        "spiffe://other/compute/x1000c0s0b0n0/workload/bos-reporter",
    ] {
        writeln!(table, "{subject}: {:?}", pattern.node(subject)).unwrap();
    }
    expect![[r#"
        spiffe://site/compute/x1000c0s0b0n0/workload/bos-reporter: Some("x1000c0s0b0n0")
        spiffe://site/compute/X01000C0S0B0N0/workload/bos-reporter: Some("x1000c0s0b0n0")
        spiffe://site/compute/login-1/workload/bos-reporter: None
        spiffe://site/compute/x1000c0s0b0n0/workload/cfs-reporter: None
        spiffe://site//x1000c0s0b0n0/workload/bos-reporter: None
        spiffe://site/compute/more/x1000c0s0b0n0/workload/bos-reporter: None
        spiffe://other/compute/x1000c0s0b0n0/workload/bos-reporter: None
    "#]]
    .assert_eq(&table);
    for wrong in ["spiffe://site/compute", "a/{xname}/{xname}", "a/x{xname}", "a/{name}/{xname}"] {
        assert_eq!(NodeSubject::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn patterns_of_paths_are_read_strictly() {
    let texts =
        ["/", "/**", "/v2/*", "/v2/{own_node}/**", "v2", "/v2/", "/v2//a", "/v2**", "/a/**/b", "/a/{name}"];
    let rows = texts.map(|text| match PathPattern::parse(text) {
        Ok(_) => format!("{text}: pattern\n"),
        Err(reason) => format!("{text}: {reason}\n"),
    });
    expect![[r#"
        /: pattern
        /**: pattern
        /v2/*: pattern
        /v2/{own_node}/**: pattern
        v2: has to begin with /
        /v2/: has an empty segment
        /v2//a: has an empty segment
        /v2**: ** has to be a segment of its own
        /a/**/b: a segment is *, {own_node}, or a text without these characters
        /a/{name}: a segment is *, {own_node}, or a text without these characters
    "#]]
    .assert_eq(&rows.concat());
}

#[test]
fn defects_of_rules_are_named() {
    let good = || rule("good", &["admin"], &["GET"], "/**", allow(TenantRule::Any));
    let everybody = |effect| {
        let mut rule = rule("open", &[], &[], "/**", effect);
        rule.callers.is_everybody = true;
        rule
    };
    let named_everybody = AccessRule {
        callers: CallerSelector { is_everybody: true, is_node: true, ..CallerSelector::default() },
        ..good()
    };
    let rules = [
        vec![good(), good()],
        vec![AccessRule { name: String::new(), ..good() }],
        vec![AccessRule { paths: Vec::new(), ..good() }],
        vec![AccessRule { methods: vec!["HEAD".to_owned()], ..good() }],
        vec![AccessRule { methods: vec!["get".to_owned()], ..good() }],
        vec![named_everybody],
        vec![rule("own", &["a"], &[], "/{own_node}", RuleEffect::Deny)],
        vec![everybody(allow(TenantRule::Any))],
        vec![everybody(allow(TenantRule::Ignored)), good()],
    ];
    let rows = rules.map(|rules| match AccessPolicy::new(rules) {
        Ok(policy) => format!("{} rules\n", policy.rules().len()),
        Err(defect) => format!("{defect}\n"),
    });
    expect![[r#"
        rule 'good': another rule has this name
        a rule has no name
        rule 'good': has no paths
        rule 'good': methods: 'HEAD' is no method in capital letters, or HEAD, which GET stands for
        rule 'good': methods: 'get' is no method in capital letters, or HEAD, which GET stands for
        rule 'good': is about everybody, and names callers too
        rule 'own': denies, and has {own_node} in a path, which only rules that allow may have
        rule 'open': is about everybody, so that tenant has to be "ignored"
        2 rules
    "#]]
    .assert_eq(&rows.concat());
    assert!(matches!(AccessPolicy::new(vec![good(), good()]), Err(PolicyDefect::RepeatedName(_))));
}

#[test]
fn reasons_have_words_and_texts_of_their_own() {
    let words = RefusalReason::ALL.map(RefusalReason::word);
    let texts = RefusalReason::ALL.map(|reason| reason.to_string());
    for (number, word) in words.iter().enumerate() {
        assert!(!words[..number].contains(word), "{word}");
        assert!(!texts[..number].contains(&texts[number]), "{word}");
    }
}
