//! Rules about which caller may call which method, and the names that identities have in them.
//!
//! The rules are a table that the owner of the nouns writes. A caller is known by the identity in its certificate, and has
//! the names that the table uses for it. A call that no rule allows is refused.

use std::{collections::BTreeMap, fmt};

use super::workload::{CallerPattern, WorkloadIdentity};

/// Methods of a service that the same callers may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodRule {
    /// Full name of the service, such as `shop.v1.OrderService`.
    pub service: &'static str,
    /// Names of the methods.
    pub methods: &'static [&'static str],
    /// Names of the callers.
    pub callers: &'static [&'static str],
}

/// Name of a caller in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerName {
    /// The name, such as `power-controller`.
    pub name: &'static str,
    /// Identities that have the name unless settings say otherwise.
    pub naming: DefaultNaming,
}

/// Identities that have a name without a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultNaming {
    /// The identity that differs from the part's own in its last segment, which is the name.
    Sibling,
    /// None.
    Nobody,
}

/// Rules about all methods of a mesh.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallTable {
    /// Names that the rules use.
    pub names: &'static [CallerName],
    /// Rules, at most one for each method.
    pub rules: &'static [MethodRule],
}

/// Identities by their names in the rules, as one part knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerDirectory {
    own: WorkloadIdentity,
    patterns: Vec<(&'static str, Vec<CallerPattern>)>,
}

/// Caller with its names in the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCaller {
    /// Identity in the certificate of the caller.
    pub identity: WorkloadIdentity,
    /// Whether the identity is that of the called part: another replica of the part, or a part in the same process.
    pub is_own: bool,
    /// Names in the rules.
    pub names: Vec<&'static str>,
}

/// Reason why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallRefusal {
    /// No rule is about the method.
    UnknownMethod,
    /// The rule about the method names other callers.
    OtherCallers(&'static MethodRule),
}

/// Fault in the setting that names identities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamingFault {
    /// The rules do not use this name.
    #[error("{0}: is no name of a caller; there are {1}")]
    UnknownName(String, String),
    /// The text is no list of identities.
    #[error("{0}: '{1}' is no identity such as spiffe://site/gateway, and none with /* for all below")]
    NoIdentity(String, String),
}

impl CallTable {
    /// Returns the rule about a method; `path` is as in requests, such as `/shop.v1.OrderService/GetOrder`.
    pub fn rule(&self, path: &str) -> Option<&'static MethodRule> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        self.rules.iter().find(|rule| rule.service == service && rule.methods.contains(&method))
    }

    /// Returns whether a caller is a person: its only names are such that identities get by a setting alone.
    pub fn is_person(&self, caller: &NamedCaller) -> bool {
        let is_given = |name: &&str| {
            self.names.iter().any(|known| known.name == *name && known.naming == DefaultNaming::Nobody)
        };
        !caller.is_own && !caller.names.is_empty() && caller.names.iter().all(is_given)
    }

    /// Decides about a call of the method at `path`.
    ///
    /// # Errors
    /// The reason why the call is refused.
    pub fn decide(&self, caller: &NamedCaller, path: &str) -> Result<(), CallRefusal> {
        let rule = self.rule(path).ok_or(CallRefusal::UnknownMethod)?;
        let is_named = caller.names.iter().any(|name| rule.callers.contains(name));
        if caller.is_own || is_named { Ok(()) } else { Err(CallRefusal::OtherCallers(rule)) }
    }
}

impl CallerDirectory {
    /// Creates the directory of the part with the identity `own`. `settings` has identities with commas between them by the
    /// name of a caller, in which an underscore stands for a hyphen; they replace the default of that name.
    ///
    /// # Errors
    /// The name that is not in the table, or the text that is no identity.
    pub fn new(
        table: CallTable,
        own: &WorkloadIdentity,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, NamingFault> {
        for key in settings.keys() {
            if !table.names.iter().any(|name| name.is_meant_by(key)) {
                let names: Vec<_> = table.names.iter().map(|name| name.name).collect();
                return Err(NamingFault::UnknownName(key.clone(), names.join(", ")));
            }
        }
        let patterns = table.names.iter().map(|name| Ok((name.name, name.patterns(own, settings)?)));
        Ok(Self { own: own.clone(), patterns: patterns.collect::<Result<_, _>>()? })
    }

    /// Returns an identity with its names.
    pub fn named(&self, identity: WorkloadIdentity) -> NamedCaller {
        let has_name = |patterns: &[CallerPattern]| patterns.iter().any(|pattern| pattern.matches(&identity));
        let named = self.patterns.iter().filter(|(_, patterns)| has_name(patterns));
        let names = named.map(|(name, _)| *name).collect();
        NamedCaller { is_own: identity == self.own, names, identity }
    }
}

impl CallerName {
    fn is_meant_by(&self, key: &str) -> bool {
        key.replace('_', "-") == self.name
    }

    fn patterns(
        &self,
        own: &WorkloadIdentity,
        settings: &BTreeMap<String, String>,
    ) -> Result<Vec<CallerPattern>, NamingFault> {
        if let Some((key, text)) = settings.iter().find(|(key, _)| self.is_meant_by(key)) {
            let fault = |entry| NamingFault::NoIdentity(key.clone(), entry);
            return CallerPattern::parse_list(text).map_err(fault);
        }
        Ok(match self.naming {
            DefaultNaming::Sibling => {
                own.sibling(self.name).map(CallerPattern::Identity).into_iter().collect()
            }
            DefaultNaming::Nobody => Vec::new(),
        })
    }
}

impl fmt::Display for NamedCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.as_slice() {
            [] => write!(f, "{}, which is no caller by name,", self.identity),
            names => write!(f, "{} ({})", self.identity, names.join(", ")),
        }
    }
}

impl CallRefusal {
    /// Returns the text for the caller: the caller, the method, and the way out.
    pub fn text(&self, caller: &NamedCaller, path: &str) -> String {
        let method = path.trim_start_matches('/');
        match self {
            Self::UnknownMethod => format!(
                "{caller} may not call {method}: no rule of this part is about the method; run the same version of both parts"
            ),
            Self::OtherCallers(rule) => format!(
                "{caller} may not call {method}, which takes calls of {}; call with the certificate of one of them, or name the \
                 identity in tls.names of the called part",
                rule.callers.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    const TABLE: CallTable = CallTable {
        names: &[
            CallerName { name: "till", naming: DefaultNaming::Sibling },
            CallerName { name: "stock-keeper", naming: DefaultNaming::Sibling },
            CallerName { name: "auditor", naming: DefaultNaming::Nobody },
        ],
        rules: &[
            MethodRule {
                service: "shop.v1.OrderService",
                methods: &["GetOrder", "ListOrders"],
                callers: &["till", "auditor"],
            },
            MethodRule {
                service: "shop.v1.OrderService",
                methods: &["ReportStock"],
                callers: &["stock-keeper"],
            },
        ],
    };

    fn identity(uri: &str) -> WorkloadIdentity {
        WorkloadIdentity::parse(uri).unwrap()
    }

    fn directory(own: &str, settings: &[(&str, &str)]) -> Result<CallerDirectory, NamingFault> {
        let settings = settings.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        CallerDirectory::new(TABLE, &identity(own), &settings.collect())
    }

    #[test]
    fn identities_have_names_by_their_place_or_by_setting() {
        let named =
            [("stock_keeper", "spiffe://shop/a/keeper, spiffe://other/*"), ("auditor", "spiffe://shop/eve")];
        let mut rows = String::new();
        for (own, settings) in [
            ("spiffe://shop/orders", &[][..]),
            ("spiffe://shop/ns/a/orders", &[]),
            ("spiffe://shop/orders", &named),
        ] {
            let directory = directory(own, settings).unwrap();
            for caller in [
                own,
                "spiffe://shop/till",
                "spiffe://shop/ns/a/till",
                "spiffe://shop/stock-keeper",
                "spiffe://shop/auditor",
                "spiffe://shop/a/keeper",
                "spiffe://other/x/y",
                "spiffe://shop/eve",
            ] {
                let NamedCaller { identity, is_own, names } = directory.named(identity(caller));
                writeln!(rows, "{own} {}: {identity}: own {is_own} {names:?}", settings.len()).unwrap();
            }
        }
        expect![[r#"
            spiffe://shop/orders 0: spiffe://shop/orders: own true []
            spiffe://shop/orders 0: spiffe://shop/till: own false ["till"]
            spiffe://shop/orders 0: spiffe://shop/ns/a/till: own false []
            spiffe://shop/orders 0: spiffe://shop/stock-keeper: own false ["stock-keeper"]
            spiffe://shop/orders 0: spiffe://shop/auditor: own false []
            spiffe://shop/orders 0: spiffe://shop/a/keeper: own false []
            spiffe://shop/orders 0: spiffe://other/x/y: own false []
            spiffe://shop/orders 0: spiffe://shop/eve: own false []
            spiffe://shop/ns/a/orders 0: spiffe://shop/ns/a/orders: own true []
            spiffe://shop/ns/a/orders 0: spiffe://shop/till: own false []
            spiffe://shop/ns/a/orders 0: spiffe://shop/ns/a/till: own false ["till"]
            spiffe://shop/ns/a/orders 0: spiffe://shop/stock-keeper: own false []
            spiffe://shop/ns/a/orders 0: spiffe://shop/auditor: own false []
            spiffe://shop/ns/a/orders 0: spiffe://shop/a/keeper: own false []
            spiffe://shop/ns/a/orders 0: spiffe://other/x/y: own false []
            spiffe://shop/ns/a/orders 0: spiffe://shop/eve: own false []
            spiffe://shop/orders 2: spiffe://shop/orders: own true []
            spiffe://shop/orders 2: spiffe://shop/till: own false ["till"]
            spiffe://shop/orders 2: spiffe://shop/ns/a/till: own false []
            spiffe://shop/orders 2: spiffe://shop/stock-keeper: own false []
            spiffe://shop/orders 2: spiffe://shop/auditor: own false []
            spiffe://shop/orders 2: spiffe://shop/a/keeper: own false ["stock-keeper"]
            spiffe://shop/orders 2: spiffe://other/x/y: own false ["stock-keeper"]
            spiffe://shop/orders 2: spiffe://shop/eve: own false ["auditor"]
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn wrong_names_are_faults() {
        let faults =
            [[("king", "spiffe://shop/king")], [("till", "spiffe://shop/till, till")], [("till", "")]]
                .map(|settings| format!("{}\n", directory("spiffe://shop/orders", &settings).unwrap_err()));
        expect![[r#"
            king: is no name of a caller; there are till, stock-keeper, auditor
            till: 'till' is no identity such as spiffe://site/gateway, and none with /* for all below
            till: '' is no identity such as spiffe://site/gateway, and none with /* for all below
        "#]]
        .assert_eq(&faults.concat());
        // The identity of a whole trust domain has no siblings.
        assert_eq!(
            directory("spiffe://shop", &[]).unwrap().named(identity("spiffe://shop/till")).names,
            [""; 0]
        );
    }

    #[test]
    fn calls_are_decided_by_the_names_of_their_caller() {
        let directory = directory("spiffe://shop/orders", &[("auditor", "spiffe://shop/eve")]).unwrap();
        let mut rows = String::new();
        for caller in [
            "spiffe://shop/orders",
            "spiffe://shop/till",
            "spiffe://shop/stock-keeper",
            "spiffe://shop/eve",
            "spiffe://shop/mallory",
        ] {
            let caller = directory.named(identity(caller));
            for path in ["/shop.v1.OrderService/GetOrder", "/shop.v1.OrderService/ReportStock"] {
                let decided = TABLE.decide(&caller, path);
                let decided =
                    decided.map_or_else(|refusal| refusal.text(&caller, path), |()| "allowed".into());
                writeln!(rows, "{} {path}: {decided}", caller.identity).unwrap();
            }
        }
        expect![[r#"
            spiffe://shop/orders /shop.v1.OrderService/GetOrder: allowed
            spiffe://shop/orders /shop.v1.OrderService/ReportStock: allowed
            spiffe://shop/till /shop.v1.OrderService/GetOrder: allowed
            spiffe://shop/till /shop.v1.OrderService/ReportStock: spiffe://shop/till (till) may not call shop.v1.OrderService/ReportStock, which takes calls of stock-keeper; call with the certificate of one of them, or name the identity in tls.names of the called part
            spiffe://shop/stock-keeper /shop.v1.OrderService/GetOrder: spiffe://shop/stock-keeper (stock-keeper) may not call shop.v1.OrderService/GetOrder, which takes calls of till, auditor; call with the certificate of one of them, or name the identity in tls.names of the called part
            spiffe://shop/stock-keeper /shop.v1.OrderService/ReportStock: allowed
            spiffe://shop/eve /shop.v1.OrderService/GetOrder: allowed
            spiffe://shop/eve /shop.v1.OrderService/ReportStock: spiffe://shop/eve (auditor) may not call shop.v1.OrderService/ReportStock, which takes calls of stock-keeper; call with the certificate of one of them, or name the identity in tls.names of the called part
            spiffe://shop/mallory /shop.v1.OrderService/GetOrder: spiffe://shop/mallory, which is no caller by name, may not call shop.v1.OrderService/GetOrder, which takes calls of till, auditor; call with the certificate of one of them, or name the identity in tls.names of the called part
            spiffe://shop/mallory /shop.v1.OrderService/ReportStock: spiffe://shop/mallory, which is no caller by name, may not call shop.v1.OrderService/ReportStock, which takes calls of stock-keeper; call with the certificate of one of them, or name the identity in tls.names of the called part
        "#]].assert_eq(&rows);
    }

    #[test]
    fn people_have_names_that_no_part_has() {
        let settings = [("auditor", "spiffe://shop/eve, spiffe://shop/till")];
        let directory = directory("spiffe://shop/orders", &settings).unwrap();
        let people =
            ["spiffe://shop/eve", "spiffe://shop/till", "spiffe://shop/orders", "spiffe://shop/mallory"]
                .map(|caller| TABLE.is_person(&directory.named(identity(caller))));
        assert_eq!(people, [true, false, false, false]);
    }

    #[test]
    fn methods_without_a_rule_are_refused_to_everybody() {
        let caller = directory("spiffe://shop/orders", &[]).unwrap().named(identity("spiffe://shop/orders"));
        for path in [
            "/shop.v1.OrderService/DeleteOrder",
            "/shop.v1.OrderService",
            "shop.v1.OrderService/GetOrder",
            "//shop.v1.OrderService/GetOrder",
            "/shop.v1.OrderService/GetOrder/",
            "",
        ] {
            assert_eq!(TABLE.decide(&caller, path), Err(CallRefusal::UnknownMethod), "{path}");
        }
        expect!["spiffe://shop/orders, which is no caller by name, may not call shop.v1.OrderService/DeleteOrder: no rule of this part is about the method; run the same version of both parts"]
            .assert_eq(&CallRefusal::UnknownMethod.text(&caller, "/shop.v1.OrderService/DeleteOrder"));
    }
}
