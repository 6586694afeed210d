use std::collections::BTreeMap;

use expect_test::expect;

use super::{
    super::{
        Arch,
        tests::{boot_set, given, template, texts},
        with_new_images,
    },
    *,
};
use crate::boot::template::image::{Artifact, Contents, Listing, Manifest, Part, Unreadable};

const PATH: &str = "s3://boot-images/1/manifest.json";

fn contents() -> Contents {
    let artifact =
        |name: &str| Some(Artifact { path: format!("s3://boot-images/1/{name}"), etag: "e".into() });
    let manifest = Manifest {
        kernel: artifact("kernel"),
        initrd: artifact("initrd"),
        rootfs: artifact("rootfs"),
        boot_parameters: artifact("parameters"),
    };
    Contents { manifest, missing: BTreeMap::new(), boot_parameters: Some("quiet".to_owned()) }
}

/// Returns the only image of boot sets that name no other.
fn stored(contents: Contents) -> Known {
    Known { contents: [(PATH.to_owned(), Ok(contents))].into(), listings: None }
}

fn unreadable(unreadable: Unreadable) -> Known {
    Known { contents: [(PATH.to_owned(), Err(unreadable))].into(), listings: None }
}

fn without(part: fn(&mut Manifest)) -> Known {
    let mut contents = contents();
    part(&mut contents.manifest);
    stored(contents)
}

fn missing<const N: usize>(parts: [Part; N]) -> Known {
    let missing = parts.map(|part| (part, format!("the {} is gone", part.word()))).into();
    stored(Contents { missing, ..contents() })
}

fn listed(listing: Option<Listing>) -> Known {
    let listings = listing.map(|listing| ("1".to_owned(), listing)).into_iter().collect();
    Known { listings: Some(listings), ..stored(contents()) }
}

fn arch(arch: &str) -> Known {
    listed(Some(Listing::Image { arch: arch.to_owned() }))
}

fn show(verdict: Result<Vec<Finding>, Finding>) -> String {
    match verdict {
        Err(error) => format!("error: {error}\n"),
        Ok(warnings) => warnings.iter().map(|warning| format!("{warning}\n")).collect(),
    }
}

/// Returns the findings in template `t` with a boot set `b`, for a boot.
fn found(boot_set: BootSet, known: &Known, options: &Options, strict_bos: bool) -> String {
    let rules = Rules { options, compatibility: Compatibility { strict_bos } };
    let found = show(findings(&template([("b", boot_set)]), Operation::Boot, known, rules));
    found.replace("Session template: 't' boot set: 'b': ", "")
}

fn shown<const N: usize>(rows: [(&str, BootSet, Known); N], options: &Options) -> String {
    let rows = rows.map(|(what, boot_set, known)| {
        let found = found(boot_set, &known, options, false);
        format!("{what}: {}\n", found.trim_end().replace('\n', "\n  "))
    });
    rows.concat()
}

#[test]
fn a_boot_set_alone_shows_much() {
    let provider = |provider: &str| BootSet {
        rootfs_provider: Some(provider.to_owned()),
        node_groups: Some(texts("g")),
        ..boot_set("")
    };
    let overlapping = || [("a", boot_set("n0 n1 n1")), ("b", boot_set("n2 n1 n0")), ("c", boot_set("n0"))];
    let rows: String = [
        (template([]), false, false),
        (template([("b", boot_set(""))]), false, false),
        (template([("b", BootSet { node_list: Some(vec![]), ..boot_set("") })]), false, false),
        (
            template([("a", provider("cpss3")), ("b", boot_set("nid1")), ("c", provider("sbps"))]),
            false,
            false,
        ),
        (template([("a", provider("cpss3")), ("b", boot_set("Nid1"))]), true, false),
        (template(overlapping()), true, false),
        (template(overlapping()), true, true),
    ]
    .iter()
    .map(|(template, reject_nids, strict_bos)| {
        let options = Options { reject_nids: *reject_nids, ..Options::default() };
        let rules = Rules { options: &options, compatibility: Compatibility { strict_bos: *strict_bos } };
        let for_boot = show(findings(template, Operation::Boot, &Known::default(), rules));
        let for_shutdown = show(findings(template, Operation::Shutdown, &Known::default(), rules));
        assert_eq!(for_boot, for_shutdown);
        for_boot + "\n"
    })
    .collect();
    expect![[r#"
        error: Session template: 't' has no boot sets

        error: Session template: 't' boot set: 'b': Missing at least one of the fields {'node_list', 'node_roles_groups', 'node_groups'}

        error: Session template: 't' boot set: 'b': All of the fields that name nodes are empty: {'node_list', 'node_roles_groups', 'node_groups'}

        Session template: 't' boot set: 'a': Unsupported rootfs_provider ('cpss3') will cause boot/reboot sessions to fail
        Session template: 't' boot set: 'b': Has NID in 'node_list'

        error: Session template: 't' boot set: 'b': Has NID in 'node_list'

        Session template: 't' boot set: 'b': takes 'n1', and perhaps more nodes, from boot set 'a', which names it too
        Session template: 't' boot set: 'c': takes 'n0', and perhaps more nodes, from boot set 'b', which names it too


    "#]].assert_eq(&rows);
}

#[test]
fn what_is_wrong_with_the_boot_set_that_was_given_first_is_said_first() {
    let provider = || BootSet { rootfs_provider: Some("p".to_owned()), ..boot_set("n0") };
    let all = || template([("a", boot_set("")), ("b", provider()), ("c", provider()), ("d", boot_set(""))]);
    let told = |order: &str, template: SessionTemplate| {
        let rules = Rules { options: &Options::default(), compatibility: Compatibility::default() };
        show(findings(&given(order, template), Operation::Boot, &stored(contents()), rules))
            .replace("Session template: 't' ", "")
    };
    let mut rows = told("", all()) + &told("d c b a", all());
    let mut sound = all();
    sound.boot_sets.retain(|name, _| ["b", "c"].contains(&name.as_str()));
    rows += &told("c b", sound);
    expect![[r#"
        error: boot set: 'a': Missing at least one of the fields {'node_list', 'node_roles_groups', 'node_groups'}
        error: boot set: 'd': Missing at least one of the fields {'node_list', 'node_roles_groups', 'node_groups'}
        boot set: 'c': Unsupported rootfs_provider ('p') will cause boot/reboot sessions to fail
        boot set: 'c': takes 'n0', and perhaps more nodes, from boot set 'b', which names it too
        boot set: 'b': Unsupported rootfs_provider ('p') will cause boot/reboot sessions to fail
    "#]].assert_eq(&rows);

    let options = Options::default();
    let rules = Rules { options: &options, compatibility: Compatibility::default() };
    for (order, looked_up) in [("", 0), ("b c a", 1)] {
        let wanted = wanted(&given(order, all()), Operation::Boot, rules);
        assert_eq!(wanted.paths.len(), looked_up, "'{order}'");
    }
}

#[test]
fn the_store_must_have_what_a_boot_needs() {
    let ims = BootSet { kind: "ims".to_owned(), ..boot_set("n0") };
    let sbps = || BootSet { rootfs_provider: Some("sbps".to_owned()), ..boot_set("n0") };
    let long = |length: usize| BootSet { kernel_parameters: Some("k".repeat(length)), ..boot_set("n0") };
    let not_read =
        Unreadable::NotRead { path: PATH.to_owned(), why: "S3 at h (failing since then)".to_owned() };
    let defective = Unreadable::Defective { path: PATH.to_owned(), why: "it is not JSON".to_owned() };
    let nothing = stored(Contents { manifest: Manifest::default(), ..contents() });
    let rows = [
        ("all", boot_set("n0"), stored(contents())),
        ("not looked up", boot_set("n0"), Known::default()),
        ("kind", ims, stored(contents())),
        ("not read", boot_set("n0"), unreadable(not_read)),
        ("list", boot_set("n0"), unreadable(Unreadable::NotAnObject("list"))),
        ("defective", boot_set("n0"), unreadable(defective)),
        ("nothing", boot_set("n0"), nothing),
        ("no kernel", boot_set("n0"), without(|image| image.kernel = None)),
        ("no initrd", boot_set("n0"), without(|image| image.initrd = None)),
        ("no parameters", boot_set("n0"), without(|image| image.boot_parameters = None)),
        ("no rootfs", boot_set("n0"), without(|image| image.rootfs = None)),
        ("no rootfs, sbps", sbps(), without(|image| image.rootfs = None)),
        ("kernel gone", boot_set("n0"), missing([Part::Kernel, Part::Initrd])),
        ("initrd gone", boot_set("n0"), missing([Part::Initrd, Part::BootParameters])),
        ("parameters gone", boot_set("n0"), missing([Part::BootParameters])),
        ("just short enough", long(4096 - "quiet  bos_update_frequency=4h".len()), stored(contents())),
        ("too long", long(4096 - "quiet bos_update_frequency=4h".len()), stored(contents())),
    ];
    expect![[r#"
        all: 
        not looked up: 
        kind: error: Can't find boot artifacts. Error: No BootImageMetadata class for type ims
        not read: error: Can't find boot artifacts. Error: Unable to read manifest file 's3://boot-images/1/manifest.json'. Error: S3 at h (failing since then)
        list: error: Can't find boot artifacts. Error: Manifest should be dict. Invalid data type: list
        defective: error: Can't find boot artifacts. Error: s3://boot-images/1/manifest.json: it is not JSON
        nothing: error: Can't find kernel in s3://boot-images/1/manifest.json. Error: the manifest lists none
        no kernel: error: Can't find kernel in s3://boot-images/1/manifest.json. Error: the manifest lists none
        no initrd: s3://boot-images/1/manifest.json doesn't contain a initrd
        no parameters: 
        no rootfs: 
        no rootfs, sbps: the image has no rootfs, which rootfs_provider 'sbps' needs: boot/reboot sessions will fail
        kernel gone: error: Can't find kernel in s3://boot-images/1/manifest.json. Error: the kernel is gone
        initrd gone: Unable to check initrd in s3://boot-images/1/manifest.json. Warning: the initrd is gone
        parameters gone: Unable to check boot parameters in s3://boot-images/1/manifest.json. Warning: the boot parameters is gone
        just short enough: 
        too long: kernel_parameters have 4097 characters together with those of the image but may have at most 4096: boot/reboot sessions will fail
    "#]].assert_eq(&shown(rows, &Options::default()));
}

#[test]
fn the_catalogue_must_agree() {
    let of = |arch: Arch| BootSet { arch: Some(arch), ..boot_set("n0") };
    let elsewhere = |path: &str| {
        let known = Known { contents: [(path.to_owned(), Ok(contents()))].into(), ..arch("x86_64") };
        (BootSet { path: path.to_owned(), ..boot_set("n0") }, known)
    };
    let (flat, known_flat) = elsewhere("s3://boot-images/manifest.json");
    let silent = || listed(Some(Listing::Silent("IMS at h (failing since then: 500)".to_owned())));
    let rows = || {
        [
            ("no catalogue", of(Arch::Other), stored(contents())),
            ("not looked up", of(Arch::Other), listed(None)),
            ("no id", flat.clone(), known_flat.clone()),
            ("absent", of(Arch::Other), listed(Some(Listing::Absent))),
            ("silent", of(Arch::Other), silent()),
            ("X86 x86_64", of(Arch::X86), arch("x86_64")),
            ("- x86_64", boot_set("n0"), arch("x86_64")),
            ("Unknown x86_64", of(Arch::Unknown), arch("x86_64")),
            ("ARM aarch64", of(Arch::Arm), arch("aarch64")),
            ("Other aarch64", of(Arch::Other), arch("aarch64")),
            ("X86 aarch64", of(Arch::X86), arch("aarch64")),
            ("- aarch64", boot_set("n0"), arch("aarch64")),
            ("Unknown aarch64", of(Arch::Unknown), arch("aarch64")),
            ("ARM x86_64", of(Arch::Arm), arch("x86_64")),
        ]
    };
    expect![[r#"
        no catalogue: 
        not looked up: 
        no id: Can't validate boot image arch: 's3://boot-images/manifest.json' is not the path of an IMS image
        absent: IMS image id '1' does not exist in IMS
        silent: Can't validate boot image arch: IMS at h (failing since then: 500)
        X86 x86_64: 
        - x86_64: 
        Unknown x86_64: 
        ARM aarch64: 
        Other aarch64: Can't validate boot image arch: Boot set arch set to 'Other'
        X86 aarch64: error: Boot set arch 'X86' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64'
        - aarch64: error: Boot set arch 'X86' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64'
        Unknown aarch64: error: Boot set arch 'Unknown' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64'
        ARM x86_64: error: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
    "#]].assert_eq(&shown(rows(), &Options::default()));
    let severe = Options { ims_errors_fatal: true, ims_images_must_exist: true, ..Options::default() };
    let [_, _, no_id, absent, silent, ..] = rows();
    expect![[r#"
        no id: Can't validate boot image arch: 's3://boot-images/manifest.json' is not the path of an IMS image
        absent: error: IMS image id '1' does not exist in IMS
        silent: error: Can't validate boot image arch: IMS at h (failing since then: 500)
    "#]].assert_eq(&shown([no_id, absent, silent], &severe));
    let [_, _, _, _, silent, ..] = rows();
    let must_exist = Options { ims_images_must_exist: true, ..Options::default() };
    assert!(!found(silent.1, &silent.2, &must_exist, false).starts_with("error"));
}

#[test]
fn the_first_error_ends_the_check() {
    let options = Options { reject_nids: true, ..Options::default() };
    let rules = Rules { options: &options, compatibility: Compatibility::default() };
    let at = |path: &str, nodes: &str| BootSet { path: path.to_owned(), ..boot_set(nodes) };
    let template = template([
        ("a", BootSet { rootfs_provider: Some("cpss3".to_owned()), ..at(PATH, "n0") }),
        ("b", at("s3://boot-images/2/manifest.json", "n1")),
        ("c", at("s3://boot-images/3/manifest.json", "nid1")),
    ]);
    let wanted = wanted(&template, Operation::Reboot, rules);
    let looked_up: Vec<_> = wanted.paths.iter().map(String::as_str).collect();
    assert_eq!(looked_up, [PATH, "s3://boot-images/2/manifest.json"]);
    assert_eq!(super::wanted(&template, Operation::Shutdown, rules), Wanted::default());
    let mut known = stored(contents());
    let gone = Unreadable::NotAnObject("list");
    known.contents.insert("s3://boot-images/2/manifest.json".to_owned(), Err(gone));
    expect![[r#"
        error: Session template: 't' boot set: 'b': Can't find boot artifacts. Error: Manifest should be dict. Invalid data type: list
    "#]].assert_eq(&show(findings(&template, Operation::Reboot, &known, rules)));
    expect![[r#"
        error: Session template: 't' boot set: 'c': Has NID in 'node_list'
    "#]]
    .assert_eq(&show(findings(&template, Operation::Shutdown, &known, rules)));
}

#[test]
fn strictly_nothing_is_found_that_bos_does_not_find() {
    let options = Options::default();
    let long = BootSet { kernel_parameters: Some("k".repeat(4096)), ..boot_set("n0") };
    let sbps = BootSet { rootfs_provider: Some("sbps".to_owned()), ..boot_set("n0") };
    let rootless = without(|image| image.rootfs = None);
    for (boot_set, known) in [(long, stored(contents())), (sbps, rootless)] {
        assert_ne!(found(boot_set.clone(), &known, &options, false), "");
        assert_eq!(found(boot_set, &known, &options, true), "");
    }
}

#[test]
fn a_write_is_refused_by_the_catalogue_alone_and_only_for_what_it_changes() {
    let options = Options::default();
    let rules = Rules { options: &options, compatibility: Compatibility::default() };
    let arm = || BootSet { arch: Some(Arch::Arm), ..boot_set("n0") };
    let before = template([("a", arm())]);
    let after = template([("a", BootSet { kernel_parameters: Some("quiet".to_owned()), ..arm() })]);
    let mut known = missing([Part::Kernel]);
    known.listings = arch("x86_64").listings;
    let all = with_new_images(&template([]), &after);
    let refused = catalogue_findings(&after, &all, &known, rules).unwrap_err().refusal();
    expect![[r#"
        boot_sets.a.arch: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
    "#]].assert_eq(&format!("{refused}\n"));
    let changed = with_new_images(&before, &after);
    assert_eq!(catalogue_findings(&after, &changed, &known, rules), Ok(vec![]));
    let noted = store_findings(&after, &all, &known, rules);
    expect![[r#"
        Session template: 't' boot set: 'a': Can't find kernel in s3://boot-images/1/manifest.json. Error: the kernel is gone
    "#]].assert_eq(&show(Ok(noted)));
    assert_eq!(store_findings(&after, &changed, &known, rules), []);
}
