//! Plans as text: nodes with their actions, differences, findings.

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{ActualState, DesiredState, StagedState, view::artifacts},
        session::{
            Progress,
            inventory::{
                Hardware, Inventory,
                tests::{group, node},
            },
            lacking::lacking,
            limit::Limit,
            membership::{NoMembers, Selection, resolve},
            tests::{NOW, session},
        },
        template::{
            BootSet, Operation,
            image::{ImageArtifacts, Rootfs},
            target,
            tests::{boot_set, cfs, template, texts},
        },
    },
    core::id::Tenant,
};

/// Surroundings of a planned session, which the rows change.
#[derive(Clone)]
struct Scene {
    session: Session,
    template: SessionTemplate,
    judgement: TemplateJudgement,
    inventory: Inventory,
    image: ImageArtifacts,
    components: Vec<Component>,
    power: HashMap<String, PowerObservation>,
    under_way: Vec<Session>,
    outages: Vec<String>,
    options: Options,
}

fn component(id: &str) -> Component {
    Component::new(ComponentId::parse(id).expect("valid"))
}

/// Returns a component that runs these artifacts with that configuration.
fn running(id: &str, running: &str, configuration: &str) -> Component {
    component(id).with(|one| {
        one.reported.actual_state =
            Some(ActualState { boot_artifacts: Some(artifacts(running)), ..ActualState::default() });
        one.wish.desired_state =
            Some(DesiredState { configuration: Some(configuration.into()), ..DesiredState::default() });
    })
}

/// Returns a component that runs what the template of the scene gives.
fn wanted(id: &str, configuration: &str) -> Component {
    running(id, "k - i", configuration).with(|one| {
        let actual = one.reported.actual_state.as_mut().expect("it runs");
        let texts = actual.boot_artifacts.as_mut().map(Arc::make_mut).expect("it runs");
        texts.kernel_parameters = Some("console=ttyS0 quiet bos_update_frequency=4h".into());
    })
}

impl Scene {
    /// Returns a scene with five nodes: two are off, two are on with another image or as wanted, and the power of one is
    /// unknown.
    fn new() -> Self {
        let compute = BootSet {
            kernel_parameters: Some("console=ttyS0 quiet".into()),
            cfs: cfs("c1"),
            ..boot_set("n0 n1 n2 n3 n4")
        };
        let on = PowerObservation::On;
        let off = PowerObservation::Off;
        let power = [("n0", &off), ("n1", &off), ("n2", &on), ("n3", &on)];
        Self {
            session: session("s"),
            template: template([("compute", compute)]),
            judgement: Ok(vec![]),
            inventory: Inventory::new(["n0", "n1", "n2", "n3", "n4"].map(node), [], []),
            image: ImageArtifacts {
                kernel: Some("k".into()),
                initrd: Some("i".into()),
                rootfs: None::<Rootfs>,
                boot_parameters: None,
            },
            components: vec![
                component("n0"),
                component("n1"),
                running("n2", "old quiet i", "c0"),
                wanted("n3", "c1"),
                component("n4"),
            ],
            power: power.map(|(id, power)| (id.to_owned(), power.clone())).into(),
            under_way: vec![],
            outages: vec![],
            options: Options::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn boot_set(&mut self) -> &mut BootSet {
        self.template.boot_sets.get_mut("compute").expect("it is there")
    }

    fn plan(&self) -> SessionPlan {
        let limit = Limit::parse(&self.session.limit).expect("valid");
        let selection = Selection {
            limit: &limit,
            include_disabled: self.session.include_disabled,
            tenant_nodes: None,
            compatibility: Compatibility::default(),
        };
        let resolved = resolve(&self.template, &self.inventory, selection);
        let error = resolved.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let memberships = match &resolved {
            Ok(memberships) | Err(NoMembers::Nobody(memberships)) => Ok(memberships),
            Err(NoMembers::Foreign(_) | NoMembers::Malformed(_)) => Err(error.as_str()),
        };
        let lacking: Vec<_> = memberships
            .map(|found| lacking(&self.template, &limit, &self.inventory, found).into_iter().collect())
            .unwrap_or_default();
        let inputs = PlanInputs {
            session: &self.session,
            template: &self.template,
            judgement: &self.judgement,
            options: &self.options,
            memberships,
            lacking: &lacking,
            targets: &self.targets(),
            under_way: &self.under_way,
            complete_applied: false,
            visible: None,
            power: &self.power,
            outages: &self.outages,
            unconfirmed: None,
            now: NOW,
        };
        let known: HashMap<_, _> =
            self.components.iter().map(|one| (one.id.clone(), Arc::new(one.clone()))).collect();
        plan(inputs, |id| known.get(id).cloned())
    }

    fn targets(&self) -> Targets {
        let frequency = self.options.actual_state_ttl_parameter();
        let target = |name: &String| match self.session.operation {
            Operation::Boot => target::boot(&self.template, name, &self.image, &frequency),
            Operation::Reboot => target::reboot(&self.template, name, &self.image, &frequency),
            Operation::Shutdown => Ok(target::shutdown()),
        };
        let targets = self.template.boot_sets.keys().map(|name| (name.clone(), target(name)));
        targets.map(|(name, target)| (name, target.map_err(|error| error.to_string()))).collect()
    }
}

/// Returns the plan as lines.
fn shown(plan: &SessionPlan) -> String {
    let mut text = String::new();
    for node in &plan.nodes {
        let change = node.change.map(|number| format!(" #{number}")).unwrap_or_default();
        let holder = node.held_by.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        writeln!(text, "{} {} {}{change}{holder}", node.id, node.boot_set, node.action.word())
            .expect("a text can always be written to");
    }
    for (number, change) in plan.changes.iter().enumerate() {
        text += &format!("#{number} {} for {}:", change.boot_set, change.nodes);
        for member in &change.members {
            let words = (member.member.word(), &member.before, &member.after);
            text += &format!(" {}:'{}'>'{}'", words.0, words.1, words.2);
            if !(member.removed.is_empty() && member.added.is_empty()) {
                text += &format!("-{:?}+{:?}", member.removed, member.added);
            }
        }
        text += "\n";
    }
    for left in &plan.left_out {
        text += &format!("left out of {}: {} {}\n", left.boot_set, left.reason.word(), left.names.join(" "));
    }
    for finding in &plan.findings {
        let boot_set = finding.boot_set.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let names = if finding.count == 0 { String::new() } else { format!(" {:?}", finding.names) };
        let (severity, reason) = (finding.severity.word(), finding.reason.word());
        text += &format!("{severity} {reason}{boot_set}{names}: {}\n", finding.text);
    }
    text + if plan.hash.is_some() { "bound by a hash\n" } else { "no hash\n" }
}

fn check(scene: &Scene, expected: &Expect) {
    expected.assert_eq(&shown(&scene.plan()));
}

#[test]
fn nodes_have_actions_and_differences() {
    check(
        &Scene::new(),
        &expect![[r##"
        n0 compute power_on #0
        n1 compute power_on #0
        n2 compute restart #1
        n3 compute none
        n4 compute unknown #0
        #0 compute for 3: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        #1 compute for 1: kernel:'old'>'k' kernel_parameters:'quiet'>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "bos_update_frequency=4h"] configuration:'c0'>'c1'
        warning power_unknown ["n4"]: the power of nodes is unknown, and so is what would be done to them
        bound by a hash
    "##]],
    );
}

#[test]
fn operation_decides_actions() {
    let all_on = |operation| {
        Scene::new().with(|scene| {
            scene.session.operation = operation;
            scene.power.insert("n4".into(), PowerObservation::On);
        })
    };
    let actions = |scene: &Scene| {
        let plan = scene.plan();
        let words = plan.nodes.iter().map(|node| format!("{}={}", node.id, node.action.word()));
        words.collect::<Vec<_>>().join(" ")
    };
    let mut rows = String::new();
    for operation in [Operation::Boot, Operation::Reboot, Operation::Shutdown] {
        rows += &format!("{}: {}\n", operation.word(), actions(&all_on(operation)));
    }
    let staged = all_on(Operation::Boot).with(|scene| scene.session.stage = true);
    rows += &format!("staged: {}\n", actions(&staged));
    let configured = all_on(Operation::Boot).with(|scene| scene.components[3] = wanted("n3", "c0"));
    rows += &format!("other configuration: {}\n", actions(&configured));
    let odd = all_on(Operation::Boot).with(|scene| {
        scene.power.insert("n0".into(), PowerObservation::Missing);
        scene.power.insert("n1".into(), PowerObservation::Undefined { error: "BMC".into() });
    });
    rows += &format!("no power state: {}\n", actions(&odd));
    expect![[r#"
        boot: n0=power_on n1=power_on n2=restart n3=none n4=restart
        reboot: n0=power_on n1=power_on n2=restart n3=restart n4=restart
        shutdown: n0=none n1=none n2=power_off n3=power_off n4=power_off
        staged: n0=stage n1=stage n2=stage n3=stage n4=stage
        other configuration: n0=power_on n1=power_on n2=restart n3=configure n4=restart
        no power state: n0=unknown n1=unknown n2=restart n3=none n4=restart
    "#]]
    .assert_eq(&rows);
}

#[test]
fn findings_tell_what_an_operator_does_not_expect() {
    let only_n0 = || {
        Scene::new().with(|scene| {
            scene.boot_set().node_list = Some(texts("n0"));
        })
    };
    let finding = |text: &str| Finding {
        template: "t".into(),
        boot_set: Some("compute".into()),
        field: "path",
        text: text.into(),
    };
    let arm = Hardware { arch: Some("ARM".into()), ..node("n1") };
    let locked = Hardware { locked: true, ..node("n2") };
    let rows = [
        ("as it should be", only_n0()),
        ("no console", only_n0().with(|scene| scene.boot_set().kernel_parameters = None)),
        ("no initrd", only_n0().with(|scene| scene.image.initrd = None)),
        ("template refused", only_n0().with(|scene| scene.judgement = Err(finding("no such image")))),
        ("template warning", only_n0().with(|scene| scene.judgement = Ok(vec![finding("no initrd")]))),
        (
            "unknown names",
            only_n0().with(|scene| {
                scene.session.limit = "all,!nid3".into();
                let boot_set = scene.boot_set();
                boot_set.node_list = Some(texts("n0 n9"));
                boot_set.node_groups = Some(texts("gone void"));
                scene.inventory = Inventory::new([node("n0")], [group("void", "")], []);
            }),
        ),
        (
            "left out",
            Scene::new().with(|scene| {
                scene.boot_set().node_list = Some(texts("n0 n1 n2 n5"));
                scene.inventory = Inventory::new([node("n0"), arm, locked, node("n5")], [], []);
            }),
        ),
        ("nobody", only_n0().with(|scene| scene.session.limit = "n1".into())),
        ("malformed", only_n0().with(|scene| scene.boot_set().node_list = Some(vec!["x".repeat(200)]))),
        (
            "outage",
            only_n0().with(|scene| scene.outages = vec!["waiting for PCS at x (failing since noon)".into()]),
        ),
    ];
    let rows: String =
        rows.iter().map(|(name, scene)| format!("{name}\n{}\n", shown(&scene.plan()))).collect();
    expect![[r#"
        as it should be
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        bound by a hash

        no console
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'bos_update_frequency=4h'-[]+["bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        warning no_console compute: the kernel parameters have no console=, so nodes show nothing while they boot
        bound by a hash

        no initrd
        n0 compute unknown
        error unbootable compute: boot set 'compute': the image has no initrd
        no hash

        template refused
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        error template compute: Session template: 't' boot set: 'compute': no such image
        no hash

        template warning
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        warning template compute: Session template: 't' boot set: 'compute': no initrd
        bound by a hash

        unknown names
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        left out of compute: unknown_to_inventory n9
        left out of compute: unknown_group gone
        warning nodes_unknown ["n9"]: the inventory does not list nodes of the template
        warning groups_unknown ["gone", "void"]: groups or roles of the template do not exist or are empty
        warning limit_unknown ["nid3"]: names in the limit mean nothing in the inventory
        warning limit_nids: the limit has numeric node ids, which match no node
        bound by a hash

        left out
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        left out of compute: locked n2
        left out of compute: wrong_architecture n1
        left out of compute: not_a_component n5
        warning wrong_architecture compute ["n1"]: nodes have another architecture than their boot set, and are left out
        warning not_components compute ["n5"]: nodes of the inventory are no components yet, and are left out
        bound by a hash

        nobody
        left out of compute: not_in_limit n0
        error nothing_taken: the session would take no node
        no hash

        malformed
        error nodes_refused: session template: node_list: has 200 characters but may have at most 127
        no hash

        outage
        n0 compute power_on #0
        #0 compute for 1: kernel:''>'k' kernel_parameters:''>'console=ttyS0 quiet bos_update_frequency=4h'-[]+["console=ttyS0", "quiet", "bos_update_frequency=4h"] initrd:''>'i' configuration:''>'c1'
        warning upstream_down: waiting for PCS at x (failing since noon)
        bound by a hash

    "#]].assert_eq(&rows);
}

#[test]
fn sessions_under_way_lose_nodes() {
    let of = |name: &str, progress| Session { progress, id: format!("{name}-id"), ..session(name) };
    let owned = |one: &mut Component, by: &str| {
        one.wish.session = Some(by.into());
        one.wish.session_tenant = Some(Tenant::none());
        one.wish.enabled = Some(true);
    };
    let staged = |one: &mut Component, by: &str| {
        let staged = StagedState { session: Some(by.into()), ..StagedState::default() };
        one.wish.staged_state = Some(staged.into());
    };
    let scene = Scene::new().with(|scene| {
        scene.boot_set().node_list = Some(texts("n0 n1 n2"));
        scene.under_way =
            vec![of("a", Progress::Running), of("b", Progress::Running), of("c", Progress::Pending)];
        owned(&mut scene.components[0], "a");
        staged(&mut scene.components[0], "b");
        owned(&mut scene.components[1], "a");
        owned(&mut scene.components[2], "gone");
    });
    let staging = scene.clone().with(|scene| scene.session.stage = true);
    let holders = |scene: &Scene| {
        let plan = scene.plan();
        let held =
            plan.nodes.iter().map(|node| format!("{} {:?}\n", node.id, node.held_by)).collect::<String>();
        let found =
            plan.findings.iter().map(|one| format!("{} {} {:?}\n", one.reason.word(), one.text, one.names));
        held + &found.collect::<String>()
    };
    expect![[r#"
        n0 Some("a")
        n1 Some("a")
        n2 None
        superseded session 'a' is under way and would lose nodes to this one ["n0", "n1"]
        pending_sessions sessions are pending, and may take the same nodes ["c"]
        staging:
        n0 Some("b")
        n1 None
        n2 None
        superseded session 'b' is under way and would lose nodes to this one ["n0"]
        pending_sessions sessions are pending, and may take the same nodes ["c"]
    "#]]
    .assert_eq(&format!("{}staging:\n{}", holders(&scene), holders(&staging)));
}

fn hash(scene: &Scene) -> PlanHash {
    scene.plan().hash.expect("the plan holds")
}

#[test]
fn hash_depends_on_what_decides_and_on_nothing_else() {
    let base = hash(&Scene::new());
    let equal = [
        Scene::new().with(|scene| scene.boot_set().node_list = Some(texts("n4 n3 n2 n1 n0"))),
        Scene::new().with(|scene| scene.session = Session { id: "other".into(), ..session("other") }),
        Scene::new().with(|scene| scene.template.description = Some("text".into())),
        Scene::new().with(|scene| scene.template.revision = 9),
        Scene::new().with(|scene| scene.session.limit = "n0,n1,n2,n3,n4".into()),
        Scene::new().with(|scene| scene.power.clear()),
        Scene::new().with(|scene| scene.options.max_boot_wait_time += 1),
        Scene::new().with(|scene| scene.outages = vec!["PCS".into()]),
    ];
    for scene in equal {
        assert_eq!(hash(&scene), base, "{}", shown(&scene.plan()));
    }
    let fewer = |scene: &mut Scene| scene.session.limit = "n0,n1".into();
    let rows = [
        ("reboot", Scene::new().with(|scene| scene.session.operation = Operation::Reboot)),
        ("staged", Scene::new().with(|scene| scene.session.stage = true)),
        ("other template", Scene::new().with(|scene| scene.session.template_name = "u".into())),
        (
            "parameters",
            Scene::new().with(|scene| scene.boot_set().kernel_parameters = Some("console=hvc0".into())),
        ),
        ("configuration", Scene::new().with(|scene| scene.boot_set().cfs = cfs("c2"))),
        ("image", Scene::new().with(|scene| scene.image.kernel = Some("k2".into()))),
        ("option", Scene::new().with(|scene| scene.options.component_actual_state_ttl = "5h".into())),
        ("fewer nodes", Scene::new().with(fewer)),
        (
            "template and nodes",
            Scene::new().with(|scene| {
                fewer(scene);
                scene.boot_set().cfs = cfs("c2");
            }),
        ),
    ];
    let mut text = String::new();
    for (name, scene) in rows {
        let change = base.change(hash(&scene)).map(|change| change.to_string());
        text += &format!("{name}: {}\n", change.unwrap_or_default());
    }
    expect![[r#"
        reboot: it is of another operation, template, tenant or stage
        staged: it is of another operation, template, tenant or stage
        other template: it is of another operation, template, tenant or stage
        parameters: the template has changed
        configuration: the template has changed
        image: the images of the template have changed
        option: option component_actual_state_ttl has changed
        fewer nodes: it took 5 nodes, and 2 would be taken now
        template and nodes: the template has changed; it took 5 nodes, and 2 would be taken now
    "#]]
    .assert_eq(&text);
}

#[test]
fn other_nodes_of_the_same_count_change_the_plan() {
    let with_group = |members: &str| {
        Scene::new().with(|scene| {
            let boot_set = scene.boot_set();
            (boot_set.node_list, boot_set.node_groups) = (None, Some(texts("g")));
            scene.inventory =
                Inventory::new(["n0", "n1", "n2", "n3", "n4"].map(node), [group("g", members)], []);
        })
    };
    let change = |before, after| hash(&with_group(before)).change(hash(&with_group(after)));
    let text = |before, after| change(before, after).map(|change| change.to_string());
    assert_eq!(change("n0 n1", "n1 n0"), None);
    expect!["it took 2 nodes, and others, or by other boot sets, would be taken now"]
        .assert_eq(&text("n0 n1", "n0 n2").unwrap_or_default());
    expect!["it took 2 nodes, and 3 would be taken now"]
        .assert_eq(&text("n0 n1", "n0 n1 n2").unwrap_or_default());
    expect!["it took 1 node, and 3 would be taken now"]
        .assert_eq(&text("n0", "n0 n1 n2").unwrap_or_default());
}

#[test]
fn hashes_are_read_as_they_are_written() {
    let hash = hash(&Scene::new());
    let text = hash.to_string();
    assert_eq!(text.parse(), Ok(hash));
    expect!["p1-5-75517d117ce5-6016057cf6af-42c4b9949e34-160a053d4bcf-14b5c2e8638e"].assert_eq(&text);
    for bad in
        ["", "p1", "p1-5", "p2-5-0-0-0-0-0", &text[1..], &text.to_uppercase(), &format!("{text}-"), "p1-ä"]
    {
        assert_eq!(bad.parse::<PlanHash>(), Err(MalformedHash), "{bad}");
    }
    assert_eq!(format!("{text}0").parse::<PlanHash>(), Err(MalformedHash));
}

#[test]
fn outages_of_all_components_are_told_once() {
    let waiting = |id: &str, kind, text: &str, enabled| {
        component(id).with(|one| {
            one.wish.enabled = Some(enabled);
            (one.evaluation.error, one.evaluation.error_kind) = (Some(text.into()), kind);
        })
    };
    let components = [
        waiting("n0", TroubleKind::Waiting, "waiting for BSS at b (failing since noon: 500)", true),
        waiting("n1", TroubleKind::Waiting, "waiting for BSS at b (failing since noon: 500)", true),
        waiting("n2", TroubleKind::Failed, "refused", true),
        waiting("n3", TroubleKind::Waiting, "waiting for CFS", false),
    ];
    let told = outages(vec![Trouble::waiting_for("PCS at p (failing since noon: 503)")], &components);
    expect![[r#"
        [
            "waiting for BSS at b (failing since noon: 500)",
            "waiting for PCS at p (failing since noon: 503)",
        ]
    "#]]
    .assert_debug_eq(&told);
    let many: Vec<_> =
        (0..20).map(|n| waiting("n0", TroubleKind::Waiting, &format!("waiting for BMC {n}"), true)).collect();
    assert_eq!(outages(vec![], &many).len(), MOST_OUTAGES);
}
