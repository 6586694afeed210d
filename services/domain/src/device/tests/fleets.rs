//! Fleets: ownership, templates, rollout.

use expect_test::expect;
use proptest::prelude::*;

use super::{
    check, scene,
    scene::{NOW, fleet_name},
    show,
};
use crate::device::{
    event::events,
    fleet::{
        event::event,
        management::{FleetEvidence, manage},
        ownership::assign,
        parameter::substitute,
        record::{Fleet, FleetSelector, FleetSpec, TemplateVersion},
        rollout::{RolloutDecision, roll_out},
        template,
        version::{MOST_VERSIONS, settle},
    },
    record::{
        Device, DeviceLabels, annotations::SpecHash, condition::ConditionKind, spec::DeviceSpec,
        version::TemplateVersionName,
    },
    render::RenderResult,
    selector::{FieldSelector, FleetField},
};

/// Makes a fleet of the labels that its selector names and of a template.
fn fleet(name: &str, selected: &str, template: &str) -> Fleet {
    let match_labels = scene(selected).device.meta.labels;
    let selector = FleetSelector { match_labels, match_expressions: "".into() };
    let spec = FleetSpec { selector, template: scene(template).device.spec, rollout_policy: "".into() };
    Fleet::new(fleet_name(name), DeviceLabels::new(), spec, NOW).expect("a fleet")
}

#[test]
fn one_matching_fleet_owns_a_device() {
    let rows = [
        // A33, A34. Fleets are a, which selects x:1, b, which selects y:1, and n, which selects nothing.
        "label:x:1",
        "label:x:2",
        "",
        "owner:a",
        "owner:a label:x:1",
        "owner:a label:y:1",
        "label:x:1 label:y:1",
        "owner:b label:x:1 label:y:1",
        "label:x:1 decommissioning",
    ];
    let owned = |words: &str| {
        let device = scene(words).device;
        let fleets = [fleet("b", "label:y:1", ""), fleet("a", "label:x:1", ""), fleet("n", "", "")];
        let Some(first) = assign(&device, fleets.iter(), NOW) else { return "nothing".to_owned() };
        let without_b = assign(&first, fleets[1..].iter(), NOW);
        let then = without_b.map_or("nothing".to_owned(), |second| show_owner(&first, &second));
        format!("{}, without b: {then}", show_owner(&device, &first))
    };
    check(
        &rows,
        owned,
        expect![[r#"
        label:x:1
            Fleet/a several=- !ResourceUpdated:owner, without b: nothing
        label:x:2
            nothing

            nothing
        owner:a
            - several=- !ResourceUpdated:owner, without b: nothing
        owner:a label:x:1
            nothing
        owner:a label:y:1
            Fleet/b several=- !ResourceUpdated:owner, without b: - several=- !ResourceUpdated:owner
        label:x:1 label:y:1
            - several=True'a,b' !W DeviceMultipleOwnersDetected, without b: Fleet/a several=False'' !ResourceUpdated:owner !DeviceMultipleOwnersResolved
        owner:b label:x:1 label:y:1
            Fleet/b several=True'a,b' !W DeviceMultipleOwnersDetected, without b: Fleet/a several=False'' !ResourceUpdated:owner !DeviceMultipleOwnersResolved
        label:x:1 decommissioning
            nothing
    "#]],
    );
}

fn show_owner(before: &Device, after: &Device) -> String {
    let owner = after.meta.owner.as_ref().map_or("-".to_owned(), |fleet| fleet.owner());
    let several = after.condition(ConditionKind::MultipleOwners);
    let several = several.map_or("-".to_owned(), |one| format!("{}'{}'", one.status.word(), one.message));
    format!("{owner} several={several}{}", show::reasons(&events(Some(before), Some(after))))
}

#[test]
fn another_owner_starts_without_a_template() {
    let mut moved = scene("owner:b label:x:1 template:v1 rendered-template:v1 updated:UpToDate fleet:a@v1");
    moved.device = assign(&moved.device, [fleet("a", "label:x:1", "")].iter(), NOW).unwrap();
    assert_eq!(moved.device.meta.annotations.template_version, None);
    assert_eq!(moved.evaluate().status.updated.status.word(), "OutOfDate");
}

#[test]
fn another_template_is_another_version() {
    let first = fleet("f", "label:x:1", "document:a");
    let with = |fleet: &Fleet, selected: &str, template: &str| {
        let spec = self::fleet("f", selected, template).spec;
        fleet.replaced(DeviceLabels::new(), spec).expect("a fleet")
    };
    let second = with(&first, "label:y:1", "document:a");
    let third = with(&second, "label:y:1", "document:b");
    let fourth = with(&third, "label:y:1", "document:b");
    let seen = [&first, &second, &third, &fourth].map(|fleet| (fleet.generation, &*fleet.template_version.0));
    assert_eq!(seen, [(1, "v1"), (2, "v1"), (3, "v3"), (3, "v3")]);
}

#[test]
fn fleets_are_refused_by_field() {
    for (words, field) in [
        ("label:-x:1", "spec.selector.matchLabels"),
        ("decommissioning", "spec.template.spec.decommissioning"),
    ] {
        let device = scene(words).device;
        let selector = FleetSelector { match_labels: device.meta.labels, match_expressions: "".into() };
        let spec = FleetSpec { selector, template: device.spec, rollout_policy: "".into() };
        let refused = Fleet::new(fleet_name("f"), DeviceLabels::new(), spec, NOW).unwrap_err();
        assert_eq!(refused.field, field);
    }
}

#[test]
fn templates_reach_devices_that_lack_them() {
    let rows = [
        "owner:f label:site:north",
        "owner:f label:site:north template:v1 rendered-template:v1 image:os-north",
        "owner:f label:site:north template:v1 image:os-north",
        "owner:f label:site:north template:v1 rendered-template:v1 image:os-south",
        "owner:f label:site:north template:v0 rendered-template:v0 image:os-north rollout-error:old",
        "owner:f",
        "owner:g label:site:north",
        "label:site:north",
        "owner:f label:site:north decommissioning",
        "owner:f label:site:north awaiting",
    ];
    let decide = |words: &str| {
        let device = scene(words).device;
        match roll_out(&fleet("f", "label:x:1", "image:os-{{.metadata.labels.site}}"), &device) {
            RolloutDecision::Skip(skip) => format!("skip: {}", skip.word()),
            RolloutDecision::RollOut(after) => format!("roll out: {}", show_rollout(&after)),
            RolloutDecision::Fail(after) => format!("fail: {}", show_rollout(&after)),
        }
    };
    check(
        &rows,
        decide,
        expect![[r#"
        owner:f label:site:north
            roll out: Some(Image("os-north")) template=v1 generation=2 error=''
        owner:f label:site:north template:v1 rendered-template:v1 image:os-north
            skip: current
        owner:f label:site:north template:v1 image:os-north
            roll out: Some(Image("os-north")) template=v1 generation=1 error=''
        owner:f label:site:north template:v1 rendered-template:v1 image:os-south
            roll out: Some(Image("os-north")) template=v1 generation=2 error=''
        owner:f label:site:north template:v0 rendered-template:v0 image:os-north rollout-error:old
            roll out: Some(Image("os-north")) template=v1 generation=1 error=''
        owner:f
            fail: None template=- generation=1 error='parameter '.metadata.labels.site': the device has no label 'site''
        owner:g label:site:north
            skip: not_owned
        label:site:north
            skip: not_owned
        owner:f label:site:north decommissioning
            skip: decommissioning
        owner:f label:site:north awaiting
            roll out: Some(Image("os-north")) template=v1 generation=2 error=''
    "#]],
    );
}

fn show_rollout(device: &Device) -> String {
    let annotations = &device.meta.annotations;
    let version = annotations.template_version.as_ref().map_or("-", |version| &*version.0);
    let (os, error) = (&device.spec.os, &annotations.last_rollout_error);
    format!("{os:?} template={version} generation={} error='{error}'", device.meta.generation)
}

#[test]
fn several_owners_stop_a_rollout() {
    let device = scene("owner:a label:x:1 label:y:1").device;
    let fleets = [fleet("a", "label:x:1", ""), fleet("b", "label:y:1", "")];
    let contested = assign(&device, fleets.iter(), NOW).unwrap();
    let RolloutDecision::Skip(skip) = roll_out(&fleets[0], &contested) else { panic!("a rollout") };
    assert_eq!(skip.word(), "multiple_owners");
}

/// Renders a document as its own digest, unless it is `bad`.
fn digest(spec: &DeviceSpec) -> RenderResult {
    if &*spec.document == "bad" { Err("it is bad".into()) } else { Ok(SpecHash(spec.document.clone())) }
}

#[test]
fn devices_are_owned_given_templates_and_rendered() {
    let rows = [
        "",
        "document:mine",
        "document:bad",
        "document:mine rendered:4 hash:mine",
        "document:mine rendered:4 hash:other runs:7",
        "document:mine awaiting",
        "label:x:1 document:mine rendered:1 hash:mine spec-valid",
        "label:x:1 owner:a document:t template:v1 rendered-template:v1 rendered:2 hash:t spec-valid",
        "label:x:1 owner:a document:t template:v1 rendered:2 hash:t spec-valid",
        "label:x:1 owner:a document:old template:v0 rendered-template:v0 rendered:2 hash:old paused",
        "label:x:1 label:y:1 document:mine",
        "label:y:1 document:mine",
        "owner:gone document:mine template:v3 rendered-template:v3 rendered:2 hash:mine spec-valid",
        "owner:gone label:x:1 label:y:1 document:mine rendered:2 hash:mine spec-valid",
        "label:x:1 decommissioning document:mine rendered:2 hash:old spec-valid",
    ];
    let decide = |words: &str| {
        let device = scene(words).device;
        let fleets = [
            fleet("a", "label:x:1", "document:t"),
            fleet("b", "label:y:1", "image:{{.metadata.labels.none}}"),
        ];
        let owner = fleets.iter().find(|fleet| device.meta.owner.as_ref() == Some(&fleet.name));
        let evidence = FleetEvidence { candidates: fleets.iter().collect(), owner };
        let Some(managed) = manage(&device, &evidence, digest, NOW) else { return "nothing".to_owned() };
        let owner = fleets.iter().find(|fleet| managed.meta.owner.as_ref() == Some(&fleet.name));
        let later = FleetEvidence { owner, ..evidence };
        assert_eq!(manage(&managed, &later, digest, NOW), None, "{words} is not settled");
        show_managed(&device, &managed)
    };
    check(
        &rows,
        decide,
        expect![[r#"

            -  unmarked rendered=1 hash= rendered-template=- runs= error='' !DeviceSpecValid
        document:mine
            - mine unmarked rendered=1 hash=mine rendered-template=- runs= error='' !DeviceSpecValid
        document:bad
            - bad unmarked rendered=- hash=- rendered-template=- runs= error='' !W DeviceSpecInvalid
        document:mine rendered:4 hash:mine
            - mine unmarked rendered=4 hash=mine rendered-template=- runs= error='' !DeviceSpecValid
        document:mine rendered:4 hash:other runs:7
            - mine unmarked rendered=8 hash=mine rendered-template=- runs=7 error='' !DeviceSpecValid
        document:mine awaiting
            nothing
        label:x:1 document:mine rendered:1 hash:mine spec-valid
            a t unmarked rendered=2 hash=t rendered-template=v1 runs= error='' !ResourceUpdated:spec,owner
        label:x:1 owner:a document:t template:v1 rendered-template:v1 rendered:2 hash:t spec-valid
            nothing
        label:x:1 owner:a document:t template:v1 rendered:2 hash:t spec-valid
            a t unmarked rendered=2 hash=t rendered-template=v1 runs= error=''
        label:x:1 owner:a document:old template:v0 rendered-template:v0 rendered:2 hash:old paused
            a t paused rendered=2 hash=old rendered-template=v0 runs= error='' !ResourceUpdated:spec
        label:x:1 label:y:1 document:mine
            - mine unmarked rendered=1 hash=mine rendered-template=- runs= error='' !DeviceSpecValid !W DeviceMultipleOwnersDetected
        label:y:1 document:mine
            b mine unmarked rendered=1 hash=mine rendered-template=- runs= error='parameter '.metadata.labels.none': the device has no label 'none'' !ResourceUpdated:owner !DeviceSpecValid
        owner:gone document:mine template:v3 rendered-template:v3 rendered:2 hash:mine spec-valid
            - mine unmarked rendered=2 hash=mine rendered-template=- runs= error='' !ResourceUpdated:owner
        owner:gone label:x:1 label:y:1 document:mine rendered:2 hash:mine spec-valid
            - mine unmarked rendered=2 hash=mine rendered-template=- runs= error='' !ResourceUpdated:owner !W DeviceMultipleOwnersDetected
        label:x:1 decommissioning document:mine rendered:2 hash:old spec-valid
            - mine unmarked rendered=3 hash=mine rendered-template=- runs= error=''
    "#]],
    );
}

fn show_managed(before: &Device, device: &Device) -> String {
    let owner = device.meta.owner.as_ref().map_or("-", |fleet| fleet.as_str());
    let (document, error) = (&device.spec.document, &device.meta.annotations.last_rollout_error);
    let versions = show::versions(device);
    let events = show::reasons(&events(Some(before), Some(device)));
    format!("{owner} {document} {versions} error='{error}'{events}")
}

#[test]
fn present_version_and_the_newest_others_are_kept() {
    let first = fleet("f", "label:x:1", "document:a");
    let spec = fleet("f", "label:x:1", "document:b").spec;
    let present = first.replaced(DeviceLabels::new(), spec).unwrap();
    let version = |name: &str, fleet: &Fleet, age: i64| TemplateVersion {
        fleet: fleet.name.clone(),
        name: TemplateVersionName(name.into()),
        template: fleet.spec.template.clone(),
        created: crate::core::time::Timestamp(NOW.0 - age),
    };
    let show = |fleet: Option<&Fleet>, known: &[TemplateVersion]| {
        let changes = settle(fleet, &known.iter().collect::<Vec<_>>(), NOW);
        (changes.stored.map(|stored| stored.name.0.to_string()), changes.deleted)
    };
    let v2 = || Some("v2".to_owned());
    let known = [version("v1", &first, 0), version("v2", &present, 0)];
    assert_eq!(show(Some(&present), &known), (None, vec![]));
    assert_eq!(show(None, &known), (None, vec![0, 1]), "the fleet is gone");
    assert_eq!(show(Some(&present), &known[..1]), (v2(), vec![]));
    let foreign = [version("v1", &first, 1), version("v2", &present, 1)];
    assert_eq!(show(Some(&present), &foreign), (v2(), vec![0]), "an earlier fleet had them");
    let other = [version("v2", &first, 0)];
    assert_eq!(show(Some(&present), &other), (v2(), vec![]), "another template had the name");
    let mut many = vec![version("v1", &first, 0); MOST_VERSIONS + 1];
    many.push(version("v2", &present, 0));
    assert_eq!(show(Some(&present), &many), (None, vec![1, 0]));
}

#[test]
fn changes_of_a_fleet_are_events() {
    let stored = fleet("f", "label:x:1", "document:a");
    let replaced = |labels: &str, document: &str| {
        let spec = fleet("f", "label:x:1", document).spec;
        stored.replaced(scene(labels).device.meta.labels, spec).unwrap()
    };
    let (same, spec) = (replaced("", "document:a"), replaced("", "document:b"));
    let both = replaced("label:site:a", "document:b");
    for (before, after, expected) in [
        (None, Some(&stored), Some(("ResourceCreated", ""))),
        (Some(&stored), Some(&same), None),
        (Some(&stored), Some(&spec), Some(("ResourceUpdated", "spec"))),
        (Some(&spec), Some(&both), Some(("ResourceUpdated", "labels"))),
        (Some(&stored), Some(&both), Some(("ResourceUpdated", "spec,labels"))),
        (Some(&stored), None, Some(("ResourceDeleted", ""))),
        (None, None, None),
    ] {
        let found = event(before, after);
        let fields = |name: &str, value: &str| name == "updated_fields" && !value.is_empty();
        let shown = found.as_ref().map(|event| {
            let updated = event.details.iter().find(|(name, value)| fields(name, value));
            (event.kind, updated.map_or("", |(_, value)| &**value))
        });
        assert_eq!(shown, expected);
    }
}

#[test]
fn parameters_are_filled() {
    let rows = [
        "plain } text",
        "{{ .metadata.name }}",
        "{{.metadata.labels.site}}-{{ .metadata.name }}.",
        "{{ upper .metadata.labels.site }}",
        "{{ .metadata.labels.site | upper | lower }}",
        r#"{{ replace "th" "d" .metadata.labels.site }}"#,
        r#"{{ .metadata.labels.site | upper | replace "NO" "S" }}"#,
        r#"{{ index .metadata.labels "target-revision" }}"#,
        r#"{{ index .metadata.labels "other" }}"#,
        r#"{{ getOrDefault .metadata.labels "other" "A B" | lower | replace " " "-"}}"#,
        r#"{{ getOrDefault .metadata.labels "site" "x" }}"#,
        r#"{{ "}}" }}"#,
        r#"{{ "a\"b" }}"#,
        "{{ .metadata.labels.other }}",
        "{{ upper .metadata.labels.other }}",
        "{{ .metadata.labels.target-revision }}",
        "{{ .metadata.owner }}",
        "{{ .metadata.name",
        "{{ }}",
        "{{ | }}",
        "{{ upper }}",
        "{{ title .metadata.name }}",
        "{{ if .metadata.name }}",
        r#"{{ "open }}"#,
        r#"{{ .metadata.name "x" }}"#,
        r#"{{ getOrDefault .metadata.labels "other" }}"#,
    ];
    let mut device = scene("label:site:north").device;
    device.meta.labels.insert("target-revision".into(), "v2".into());
    let lines = rows.map(|row| match substitute(&row.into(), &device.meta) {
        Ok(filled) => format!("{row} => {filled}\n"),
        Err(error) => format!("{row} =! {error}\n"),
    });
    expect![[r#"
        plain } text => plain } text
        {{ .metadata.name }} => d1
        {{.metadata.labels.site}}-{{ .metadata.name }}. => north-d1.
        {{ upper .metadata.labels.site }} => NORTH
        {{ .metadata.labels.site | upper | lower }} => north
        {{ replace "th" "d" .metadata.labels.site }} => nord
        {{ .metadata.labels.site | upper | replace "NO" "S" }} => SRTH
        {{ index .metadata.labels "target-revision" }} => v2
        {{ index .metadata.labels "other" }} => 
        {{ getOrDefault .metadata.labels "other" "A B" | lower | replace " " "-"}} => a-b
        {{ getOrDefault .metadata.labels "site" "x" }} => north
        {{ "}}" }} => }}
        {{ "a\"b" }} => a"b
        {{ .metadata.labels.other }} =! parameter '.metadata.labels.other': the device has no label 'other'
        {{ upper .metadata.labels.other }} =! parameter 'upper .metadata.labels.other': the device has no label 'other'
        {{ .metadata.labels.target-revision }} =! parameter '.metadata.labels.target-revision': is not a field or a function of the device's name and labels
        {{ .metadata.owner }} =! parameter '.metadata.owner': is not a field or a function of the device's name and labels
        {{ .metadata.name =! parameter '.metadata.name': the braces do not close
        {{ }} =! parameter '': is not a field or a function of the device's name and labels
        {{ | }} =! parameter '|': is not a field or a function of the device's name and labels
        {{ upper }} =! parameter 'upper': is not a field or a function of the device's name and labels
        {{ title .metadata.name }} =! parameter 'title .metadata.name': is not a field or a function of the device's name and labels
        {{ if .metadata.name }} =! parameter 'if .metadata.name': is not a field or a function of the device's name and labels
        {{ "open }} =! parameter '"open }}': the braces do not close
        {{ .metadata.name "x" }} =! parameter '.metadata.name "x"': is not a field or a function of the device's name and labels
        {{ getOrDefault .metadata.labels "other" }} =! parameter 'getOrDefault .metadata.labels "other"': is not a field or a function of the device's name and labels
    "#]].assert_eq(&lines.concat());
}

fn document(template: &str, site: &str) -> String {
    let mut meta = scene("").device.meta;
    meta.labels.insert("site".into(), site.into());
    let template = DeviceSpec { document: template.into(), ..DeviceSpec::default() };
    template::fill(&template, &meta).map_or_else(|error| error.to_string(), |spec| spec.document.to_string())
}

#[test]
fn texts_of_documents_are_filled_and_escaped() {
    let rows = [
        (r#"{"a":["{{ .metadata.labels.site }}",1],"b":"c"}"#, "north"),
        (r#"{"a":"{{ .metadata.labels.site }}"}"#, "no\"r\\th\n\u{1}"),
        (r#"{"a":"{{ index .metadata.labels \"site\" }}"}"#, "north"),
        (r#"{"a":"{{ .metadata.name }} \u00e4\ud83d\ude00\/\t\\"}"#, "north"),
        (r#"{"a":"\"{{ .metadata.name }}\""}"#, "north"),
        (r#"{"a":"{{ .metadata.labels.none }}"}"#, "north"),
        (r#"{"a":"{{ .metadata.name }}"#, "north"),
        (r#"{"{{ .metadata.name }}":"{{ .metadata.name }}"}"#, "north"),
    ];
    let lines = rows.map(|(template, site)| format!("{template}\n    {}\n", document(template, site)));
    expect![[r#"
        {"a":["{{ .metadata.labels.site }}",1],"b":"c"}
            {"a":["north",1],"b":"c"}
        {"a":"{{ .metadata.labels.site }}"}
            {"a":"no\"r\\th\n\u0001"}
        {"a":"{{ index .metadata.labels \"site\" }}"}
            {"a":"north"}
        {"a":"{{ .metadata.name }} \u00e4\ud83d\ude00\/\t\\"}
            {"a":"d1 ä😀/\t\\"}
        {"a":"\"{{ .metadata.name }}\""}
            {"a":"\"d1\""}
        {"a":"{{ .metadata.labels.none }}"}
            parameter '.metadata.labels.none': the device has no label 'none'
        {"a":"{{ .metadata.name }}
            {"a":"d1"
        {"{{ .metadata.name }}":"{{ .metadata.name }}"}
            {"{{ .metadata.name }}":"d1"}
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn templates_without_parameters_are_shared() {
    let meta = scene("").device.meta;
    let template = DeviceSpec { document: r#"{"a":"\/"}"#.into(), ..DeviceSpec::default() };
    let filled = template::fill(&template, &meta).unwrap();
    assert!(std::sync::Arc::ptr_eq(&filled.document, &template.document));
}

#[test]
fn fleets_are_selected_by_image() {
    let fleet = fleet("f", "label:x:1", "image:os-1");
    for (selector, expected) in [
        ("spec.template.spec.os.image=os-1", true),
        ("spec.template.spec.os.image contains os,metadata.name=f", true),
        ("spec.template.spec.os.image=os-2", false),
    ] {
        let selector = FieldSelector::<FleetField>::parse(selector).unwrap();
        assert_eq!(selector.matches_fleet(&fleet), expected);
    }
}

proptest! {
    #[test]
    fn every_template_is_filled_or_refused(text in r#"([{}"\\|. a-z]|\.metadata\.(name|labels\.site)|\{\{|\}\}|\\u){0,30}|\PC{0,30}"#) {
        let filled = document(&format!("{{\"a\":\"{{{{.metadata.name}}}}{text}\"}}"), "north");
        prop_assert!(!filled.is_empty());
    }
}
