//! What holds for every body: it fits or is a bad request, and what was taken can be sent again.

use proptest::{collection::vec, option, prelude::*};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{
    bos::{
        convert::{component::stored, template::named},
        wire::{
            bulk_patch::BulkPatch,
            component::Component,
            options::Options,
            session::{NewSession, SessionPatch},
            strict::JsonObject,
            template::SessionTemplate,
        },
    },
    http::{extract::parse, query::tests::query},
};

/// Few enough to take no time. What fails is named in full by the message, so nothing is kept in files.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

/// Any JSON, often with members that the contract has.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let name = prop_oneof![
        any::<String>(),
        proptest::sample::select(vec![
            "id",
            "enabled",
            "status",
            "phase",
            "filters",
            "patch",
            "ids",
            "session",
            "boot_sets",
            "cfs",
            "path",
            "type",
            "limit",
            "operation",
            "clear_stage",
            "desired_state",
            "boot_artifacts",
            "kernel",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((name.clone(), inner), 0..6)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// Reads `body` as everything that the contract takes; a refusal is a bad request that says something.
fn every_reading(body: &[u8]) -> Result<(), TestCaseError> {
    fn one<T: DeserializeOwned>(body: &[u8]) -> Result<(), TestCaseError> {
        if let Err(problem) = parse::<T>(body) {
            let document: Value = serde_json::from_slice(&problem.document())
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&document["status"], 400);
            prop_assert_ne!(problem.detail, "");
        }
        Ok(())
    }
    one::<JsonObject<Component>>(body)?;
    one::<Vec<JsonObject<Component>>>(body)?;
    one::<BulkPatch>(body)?;
    one::<JsonObject<Options>>(body)?;
    one::<JsonObject<SessionTemplate>>(body)?;
    one::<JsonObject<NewSession>>(body)?;
    one::<JsonObject<SessionPatch>>(body)
}

/// An object with some of `members`.
fn some_of(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| option::of(value).prop_map(move |value| (name, value)))
        .collect();
    let present = |members: Vec<(&str, Option<Value>)>| {
        members
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into()
    };
    members.prop_map(present).boxed()
}

fn text() -> BoxedStrategy<Value> {
    any::<String>().prop_map(Value::from).boxed()
}

fn truth() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn number() -> BoxedStrategy<Value> {
    any::<u32>().prop_map(Value::from).boxed()
}

fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::sample::select(words).prop_map(Value::from).boxed()
}

/// What people may say about a component.
fn component() -> BoxedStrategy<Value> {
    let artifacts = || some_of(vec![("kernel", text()), ("initrd", text()), ("kernel_parameters", text())]);
    let actual = some_of(vec![("boot_artifacts", artifacts()), ("bss_token", text())]);
    let desired =
        some_of(vec![("boot_artifacts", artifacts()), ("bss_token", text()), ("configuration", text())]);
    let staged =
        some_of(vec![("boot_artifacts", artifacts()), ("configuration", text()), ("session", text())]);
    let stats = some_of(vec![
        ("power_on_attempts", number()),
        ("power_off_graceful_attempts", number()),
        ("power_off_forceful_attempts", number()),
    ]);
    let action = word(&["apply_staged", "powering_on", "session_setup"]);
    let phase = word(&["", "configuring", "powering_off", "powering_on"]);
    some_of(vec![
        ("actual_state", actual),
        ("desired_state", desired),
        ("staged_state", staged),
        ("event_stats", stats),
        ("last_action", some_of(vec![("action", action), ("failed", truth())])),
        ("status", some_of(vec![("phase", phase), ("status_override", text())])),
        ("enabled", truth()),
        ("error", text()),
        ("session", text()),
        ("retry_policy", number()),
    ])
}

fn list() -> BoxedStrategy<Value> {
    vec(text(), 0..3).prop_map(Value::from).boxed()
}

fn cfs() -> BoxedStrategy<Value> {
    some_of(vec![("configuration", text())])
}

/// A session template as a client may write it.
fn template() -> BoxedStrategy<Value> {
    let rest = some_of(vec![
        ("cfs", cfs()),
        ("etag", text()),
        ("kernel_parameters", text()),
        ("node_list", list()),
        ("node_groups", list()),
        ("node_roles_groups", list()),
        ("arch", text()),
        ("rootfs_provider", text()),
        ("rootfs_provider_passthrough", text()),
    ]);
    let boot_set = (rest, text(), text()).prop_map(|(mut boot_set, path, kind)| {
        boot_set["path"] = path;
        boot_set["type"] = kind;
        boot_set
    });
    let sets =
        vec((any::<String>(), boot_set), 1..3).prop_map(|sets| sets.into_iter().collect::<Map<_, _>>());
    let head = some_of(vec![("cfs", cfs()), ("description", text()), ("enable_cfs", truth())]);
    let template = (head, sets).prop_map(|(mut template, sets)| {
        template["boot_sets"] = sets.into();
        template
    });
    template.boxed()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_fit_or_are_a_bad_request(body in vec(any::<u8>(), 0..200), text in "[\\[\\]{}\",:0-9a-z\\\\\\. -]{0,80}") {
        every_reading(&body)?;
        every_reading(text.as_bytes())?;
    }

    #[test]
    fn any_json_fits_or_is_a_bad_request(value in json_value()) {
        every_reading(value.to_string().as_bytes())?;
    }

    #[test]
    fn a_damaged_body_is_a_bad_request_or_another_good_one(
        value in component(),
        place: prop::sample::Index,
        byte: u8,
    ) {
        let mut body = value.to_string().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        every_reading(&body)?;
        every_reading(&body[..place])?;
    }

    #[test]
    fn what_is_stored_of_a_component_can_be_sent_again(sent in component()) {
        let JsonObject(read) = parse::<JsonObject<Component>>(sent.to_string().as_bytes()).map_err(|problem| {
            TestCaseError::fail(problem.detail)
        })?;
        let record = stored(Component { id: Some("x1".to_owned()), ..read }.into());
        let mut answered = serde_json::to_value(record).unwrap();
        prop_assert_eq!(answered.as_object_mut().unwrap().remove("id"), Some(json!("x1")));
        prop_assert_eq!(answered, sent);
    }

    #[test]
    fn what_is_stored_of_a_template_can_be_sent_again(sent in template()) {
        let JsonObject(read) = parse::<JsonObject<SessionTemplate>>(sent.to_string().as_bytes()).map_err(|problem| {
            TestCaseError::fail(problem.detail)
        })?;
        let kept = SessionTemplate::from(named(read, "t".to_owned(), String::new()));
        let mut answered = serde_json::to_value(kept).unwrap();
        for only_read in ["name", "tenant"] {
            answered.as_object_mut().unwrap().remove(only_read);
        }
        prop_assert_eq!(answered, sent);
    }

    #[test]
    fn any_query_is_read_or_a_bad_request(text in "[a-z0-9%=&+;,._~!$'()*:@/?-]{0,60}", value in "(%[0-9a-f]{2}){0,8}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let query = runtime.block_on(query(&format!("{text}&x={value}")));
        prop_assert_eq!(query.text("x", 0..=8).is_ok(), {
            let bytes: Vec<u8> = (1..value.len()).step_by(3)
                .map(|at| u8::from_str_radix(&value[at..at + 2], 16).unwrap()).collect();
            std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'))
        });
    }
}
