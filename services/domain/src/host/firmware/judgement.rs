//! Judgement of wishes about firmware: do they differ from the present state, and can they be fulfilled (host reference
//! 2.6)?

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::reading::{
    FirmwareComponent, FirmwareUpdate, FirmwareWishes, SettingKind, SettingRule, is_password,
};

/// Judgement of wishes about settings, or about versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareJudgement {
    /// Whether a wish differs from the present state.
    pub is_changed: bool,
    /// Reasons for which wishes cannot be fulfilled, one for each such wish.
    pub flaws: Vec<FirmwareFlaw>,
}

/// Wish that cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareFlaw {
    /// Setting or component.
    pub name: Arc<str>,
    /// Reason.
    pub problem: FlawKind,
}

/// Reason for which a wish cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the others are named as they are")]
pub enum FlawKind {
    /// The hardware offers nothing of the kind.
    NotOffered,
    /// The hardware has no such setting or component.
    Unknown,
    /// Passwords are not set in this way.
    Password,
    ReadOnly,
    /// The value is none of the allowed ones.
    NotAllowed,
    NotInteger,
    NotBoolean,
    OutOfBounds,
    WrongLength,
    /// The kind of the setting is not known.
    UnknownKind,
    /// The image has no address of a known protocol.
    Address,
}

impl fmt::Display for FirmwareFlaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.problem {
            FlawKind::NotOffered => "the hardware offers no such change",
            FlawKind::Unknown => "the hardware has none of that name",
            FlawKind::Password => "passwords cannot be set",
            FlawKind::ReadOnly => "is read-only",
            FlawKind::NotAllowed => "is none of the allowed values",
            FlawKind::NotInteger => "is no whole number",
            FlawKind::NotBoolean => "is neither true nor false",
            FlawKind::OutOfBounds => "is out of bounds",
            FlawKind::WrongLength => "is too short or too long",
            FlawKind::UnknownKind => "has a kind that is not known",
            FlawKind::Address => "has no address of a known protocol",
        };
        write!(formatter, "{}: {words}", self.name)
    }
}

/// Protocols from which images of firmware are fetched.
const PROTOCOLS: [&str; 3] = ["http://", "https://", "file://"];

/// Judges wishes about settings by the present values and their rules. `known` is `None` where the hardware offers no
/// settings; a setting without a rule takes any value, and a wish for the present value is no change.
pub fn judge_settings(
    wishes: &FirmwareWishes,
    known: Option<&BTreeMap<Arc<str>, Arc<str>>>,
    rules: &BTreeMap<Arc<str>, SettingRule>,
) -> FirmwareJudgement {
    let none = BTreeMap::new();
    let flaw = |name: &Arc<str>, value: &str| match known {
        _ if is_password(name) => Some(FlawKind::Password),
        None => Some(FlawKind::NotOffered),
        Some(known) if !known.contains_key(name) => Some(FlawKind::Unknown),
        Some(_) => rules.get(name).and_then(|rule| value_flaw(rule, value)),
    };
    let changed: Vec<_> = wishes.changed_settings(known.unwrap_or(&none)).collect();
    let flaws = changed.iter().filter_map(|(name, value)| {
        Some(FirmwareFlaw { name: Arc::clone(name), problem: flaw(name, value)? })
    });
    FirmwareJudgement { is_changed: !changed.is_empty(), flaws: flaws.collect() }
}

fn value_flaw(rule: &SettingRule, value: &str) -> Option<FlawKind> {
    if rule.read_only {
        return Some(FlawKind::ReadOnly);
    }
    let is_within = |number: i64, lower: Option<i64>, upper: Option<i64>| {
        lower.is_none_or(|lower| number >= lower) && upper.is_none_or(|upper| number <= upper)
    };
    let fault = |is_good: bool, problem: FlawKind| (!is_good).then_some(problem);
    match &rule.kind {
        SettingKind::Untyped => None,
        SettingKind::Enumeration => {
            fault(rule.allowed.iter().any(|allowed| &**allowed == value), FlawKind::NotAllowed)
        }
        SettingKind::Integer => match value.parse() {
            Ok(number) => fault(is_within(number, rule.lower_bound, rule.upper_bound), FlawKind::OutOfBounds),
            Err(_) => Some(FlawKind::NotInteger),
        },
        SettingKind::Text => {
            let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
            fault(is_within(length, rule.min_length, rule.max_length), FlawKind::WrongLength)
        }
        SettingKind::Boolean => fault(
            value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false"),
            FlawKind::NotBoolean,
        ),
        SettingKind::Password => Some(FlawKind::Password),
        SettingKind::Other(_) => Some(FlawKind::UnknownKind),
    }
}

/// Judges wishes about versions by the present components. `known` is `None` where the hardware offers no updates;
/// `begun` are the updates that were begun since the wishes changed last.
pub fn judge_updates(
    wishes: &[FirmwareUpdate],
    known: Option<&[FirmwareComponent]>,
    begun: &[FirmwareUpdate],
) -> FirmwareJudgement {
    let flaw = |update: &FirmwareUpdate| match known {
        None => Some(FlawKind::NotOffered),
        Some(known) if known.iter().all(|one| one.name != update.component) => Some(FlawKind::Unknown),
        Some(_) if !PROTOCOLS.iter().any(|protocol| update.url.starts_with(protocol)) => {
            Some(FlawKind::Address)
        }
        Some(_) => None,
    };
    let flaws = wishes.iter().filter_map(|update| {
        Some(FirmwareFlaw { name: Arc::clone(&update.component), problem: flaw(update)? })
    });
    FirmwareJudgement { is_changed: !wishes.is_empty() && wishes != begun, flaws: flaws.collect() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    fn rules() -> BTreeMap<Arc<str>, SettingRule> {
        let rule = |kind, change: fn(&mut SettingRule)| {
            let mut rule = SettingRule { kind, ..SettingRule::default() };
            change(&mut rule);
            rule
        };
        BTreeMap::from([
            (
                "Turbo".into(),
                rule(SettingKind::Enumeration, |one| one.allowed = vec!["On".into(), "Off".into()]),
            ),
            (
                "Delay".into(),
                rule(SettingKind::Integer, |one| {
                    one.lower_bound = Some(0);
                    one.upper_bound = Some(20);
                }),
            ),
            (
                "Asset".into(),
                rule(SettingKind::Text, |one| {
                    one.min_length = Some(1);
                    one.max_length = Some(4);
                }),
            ),
            ("Quiet".into(), rule(SettingKind::Boolean, |_| {})),
            ("Serial".into(), rule(SettingKind::Text, |one| one.read_only = true)),
            ("Secret".into(), rule(SettingKind::Password, |_| {})),
            ("Odd".into(), rule(SettingKind::Other("Matrix".into()), |_| {})),
        ])
    }

    fn known() -> BTreeMap<Arc<str>, Arc<str>> {
        let values = [
            ("Turbo", "On"),
            ("Delay", "5"),
            ("Asset", "a"),
            ("Quiet", "True"),
            ("Serial", "S1"),
            ("Secret", ""),
            ("Odd", "x"),
            ("Free", "y"),
        ];
        values.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn show(judgement: &FirmwareJudgement) -> String {
        let flaws: Vec<_> = judgement.flaws.iter().map(ToString::to_string).collect();
        let word = if judgement.is_changed { "changed" } else { "same" };
        format!("{word}; {}", if flaws.is_empty() { "valid".to_owned() } else { flaws.join(", ") })
    }

    #[test]
    fn settings_are_judged_by_their_rules() {
        let mut table = String::new();
        for (name, value) in [
            ("Turbo", "On"),
            ("Turbo", "Off"),
            ("Turbo", "off"),
            ("Delay", "20"),
            ("Delay", "21"),
            ("Delay", "-1"),
            ("Delay", "five"),
            ("Asset", "abcd"),
            ("Asset", "abcde"),
            ("Asset", ""),
            ("Quiet", "true"),
            ("Quiet", "False"),
            ("Quiet", "1"),
            ("Serial", "S1"),
            ("Serial", "S2"),
            ("Secret", "x"),
            ("Odd", "y"),
            ("Free", "anything"),
            ("Missing", "x"),
            ("AdminPassword", "x"),
        ] {
            let settings = BTreeMap::from([(name.into(), value.into())]);
            let wishes = FirmwareWishes { settings, ..FirmwareWishes::default() };
            let judged = judge_settings(&wishes, Some(&known()), &rules());
            writeln!(table, "{name}={value}: {}", show(&judged)).unwrap();
        }
        expect![[r#"
            Turbo=On: same; valid
            Turbo=Off: changed; valid
            Turbo=off: changed; Turbo: is none of the allowed values
            Delay=20: changed; valid
            Delay=21: changed; Delay: is out of bounds
            Delay=-1: changed; Delay: is out of bounds
            Delay=five: changed; Delay: is no whole number
            Asset=abcd: changed; valid
            Asset=abcde: changed; Asset: is too short or too long
            Asset=: changed; Asset: is too short or too long
            Quiet=true: same; valid
            Quiet=False: changed; valid
            Quiet=1: changed; Quiet: is neither true nor false
            Serial=S1: same; valid
            Serial=S2: changed; Serial: is read-only
            Secret=x: changed; Secret: passwords cannot be set
            Odd=y: changed; Odd: has a kind that is not known
            Free=anything: changed; valid
            Missing=x: changed; Missing: the hardware has none of that name
            AdminPassword=x: changed; AdminPassword: passwords cannot be set
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn every_flaw_of_the_wishes_is_named() {
        let wishes = [("Turbo", "Of"), ("Delay", "21"), ("Missing", "1")];
        let settings = wishes.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let wishes = FirmwareWishes { settings, ..FirmwareWishes::default() };
        let judged = [Some(known()), None].map(|known| judge_settings(&wishes, known.as_ref(), &rules()));
        expect![[r#"
            changed; Delay: is out of bounds, Missing: the hardware has none of that name, Turbo: is none of the allowed values
            changed; Delay: the hardware offers no such change, Missing: the hardware offers no such change, Turbo: the hardware offers no such change"#]].assert_eq(&judged.map(|one| show(&one)).join("\n"));
        let nothing = judge_settings(&FirmwareWishes::default(), None, &rules());
        assert_eq!(show(&nothing), "same; valid");
    }

    #[test]
    fn updates_are_judged_by_the_components() {
        let update =
            |component: &str, url: &str| FirmwareUpdate { component: component.into(), url: url.into() };
        let known = ["bios", "bmc"].map(|name| FirmwareComponent { name: name.into(), version: "1".into() });
        let wishes =
            [update("bios", "http://i/b"), update("nic:1", "http://i/n"), update("bmc", "ftp://i/m")];
        let rows = [
            judge_updates(&wishes, Some(&known), &[]),
            judge_updates(&wishes, None, &[]),
            judge_updates(&wishes[..1], Some(&known), &wishes[..1]),
            judge_updates(&[], None, &[]),
        ];
        expect![[r#"
            changed; nic:1: the hardware has none of that name, bmc: has no address of a known protocol
            changed; bios: the hardware offers no such change, nic:1: the hardware offers no such change, bmc: the hardware offers no such change
            same; valid
            same; valid"#]].assert_eq(&rows.map(|one| show(&one)).join("\n"));
    }
}
