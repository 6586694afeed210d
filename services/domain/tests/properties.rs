//! Properties of rules for every text that a client may send: no rule panics, a written text can be read again, and a
//! rule agrees with its pattern in the REST contract.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use domain::{
    boot::{
        bos::options::{Options, OptionsPatch},
        component::artifacts::BootArtifacts,
        configuration::boot_script::{Recipient, Sources, script},
        session::{SessionFilter, inventory::Inventory, limit::Limit},
        template::{
            Arch, BootSet, SessionTemplate,
            image::{ImageArtifacts, Rootfs},
            target::boot,
        },
    },
    core::{
        bos_time,
        id::{ComponentId, Tenant, check_name},
        limits::{
            AGE_PATTERN, ARCHITECTURES, LONGEST_AGE, LONGEST_KERNEL_PARAMETERS, LONGEST_NAME, NAME_PATTERN,
            TTL_PATTERN,
        },
        time::{Age, Timestamp},
        xname::canonical_xname,
    },
};
use proptest::{prelude::*, string::string_regex};

/// Returns a configuration with few enough cases to take no time, and enough to find gaps of a table. The message of a
/// failure names it in full, so no files are kept.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns texts that follow `pattern` and have at most `longest` characters.
fn like(pattern: &str, longest: usize) -> impl Strategy<Value = String> {
    let texts = string_regex(pattern.trim_start_matches('^').trim_end_matches('$')).expect("a pattern");
    texts.prop_filter("too long", move |text| text.len() <= longest)
}

/// Returns any text, and more often a nearly valid one, of characters with a meaning in some rule.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[xcsbn0-9,&!.:TZ +-]{0,40}", "[\\PC\0\r\n\"'$|;#]{0,200}"]
}

fn ttl(text: &str) -> Result<Options, domain::core::invalid::Invalid> {
    let patch = OptionsPatch { component_actual_state_ttl: Some(text.to_owned()), ..OptionsPatch::default() };
    Options::default().apply(patch)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn names_are_those_of_the_pattern(name in like(NAME_PATTERN, LONGEST_NAME), other in text()) {
        prop_assert_eq!(check_name("name", &name), Ok(()));
        if check_name("name", &other).is_ok() {
            prop_assert!(other.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)), "{}", other);
        }
    }

    #[test]
    fn ages_are_those_of_the_pattern(age in like(AGE_PATTERN, LONGEST_AGE), other in text()) {
        prop_assert!(Age::parse("age", &age).is_ok(), "{}", age);
        if Age::parse("age", &other).is_ok() {
            prop_assert!(other.len() <= LONGEST_AGE && !other.starts_with(['+', '-', ' ']), "{}", other);
        }
    }

    #[test]
    fn times_to_live_are_those_of_the_pattern(good in like(TTL_PATTERN, LONGEST_AGE), other in text()) {
        prop_assert!(ttl(&good).is_ok(), "{}", good);
        if let Ok(options) = ttl(&other) {
            prop_assert!(options.actual_state_ttl() >= Duration::from_secs(3600), "{}", other);
        }
    }

    #[test]
    fn filters_answer_for_every_age_and_time(age in like(AGE_PATTERN, LONGEST_AGE), other in text(), now: i64) {
        for (least, most) in [(&age, &other), (&other, &age), (&age, &age)] {
            // The text may be refused, but the rule does not panic.
            let _: Result<_, _> = SessionFilter::parse(None, least, most, None, Timestamp(now));
        }
    }

    #[test]
    fn ids_and_tenants_stay_as_they_are(text in text()) {
        match ComponentId::parse(&text) {
            Ok(id) => {
                prop_assert_eq!(id.as_str(), &text);
                prop_assert!((1..=LONGEST_NAME).contains(&text.chars().count()) && !text.contains('\0'));
            }
            Err(invalid) => prop_assert_eq!(invalid.field, "id"),
        }
        if let Ok(tenant) = Tenant::parse(&text) {
            prop_assert_eq!(tenant.as_str(), &text);
        }
    }

    #[test]
    fn architectures_are_those_of_the_contract(word in text()) {
        prop_assert_eq!(Arch::ALL.map(Arch::word), ARCHITECTURES);
        prop_assert_eq!(Arch::parse("arch", &word).is_ok(), ARCHITECTURES.contains(&word.as_str()));
    }

    #[test]
    fn spelling_a_name_twice_changes_nothing_more(name in text(), numbers: [u32; 5], zeros in 0_usize..4) {
        let once = canonical_xname(&name);
        prop_assert_eq!(&canonical_xname(&once), &once);
        let [x, c, s, b, n] = numbers;
        let plain = format!("x{x}c{c}s{s}b{b}n{n}");
        let zeros = "0".repeat(zeros);
        let odd = format!("X{zeros}{x}C{zeros}{c}s{zeros}{s}B{zeros}{b}N{zeros}{n}");
        prop_assert_eq!(canonical_xname(&odd), plain);
    }

    #[test]
    fn a_limit_takes_only_candidates(limit in text(), ids in prop::collection::btree_set("[a-z0-9]{1,4}", 0..6)) {
        let candidates: BTreeSet<_> = ids.iter().filter_map(|id| ComponentId::parse(id).ok()).collect();
        match Limit::parse(&limit) {
            Ok(limit) => {
                for id in limit.select(&candidates, &Inventory::default()) {
                    prop_assert!(candidates.contains(id));
                }
            }
            Err(invalid) => prop_assert_eq!(invalid.field, "limit"),
        }
    }

    #[test]
    fn a_time_that_was_written_can_be_read(seconds in -62_135_596_800_i64..253_402_300_800, garbage in text()) {
        let time = Timestamp(seconds * 1000);
        prop_assert_eq!(bos_time::read(&bos_time::text(time)), Some(time));
        let _: Option<Timestamp> = bos_time::read(&garbage);
    }

    #[test]
    fn any_time_and_duration_can_be_written(time: i64) {
        prop_assert!(!bos_time::text(Timestamp(time)).is_empty());
        prop_assert!(bos_time::duration(time).contains(':'));
    }

    #[test]
    fn kernel_parameters_fit_or_are_refused(own in text(), file in text(), passthrough in text(), etag in text()) {
        let boot_set = BootSet {
            kernel_parameters: Some(own.clone()),
            rootfs_provider: Some("sbps".to_owned()),
            rootfs_provider_passthrough: Some(passthrough),
            ..BootSet::default()
        };
        let template = SessionTemplate {
            boot_sets: [("compute".to_owned(), boot_set)].into(),
            ..SessionTemplate::default()
        };
        let image = ImageArtifacts {
            kernel: Some("s3://boot-images/kernel".to_owned()),
            initrd: Some("s3://boot-images/initrd".to_owned()),
            rootfs: Some(Rootfs { path: "s3://boot-images/rootfs".to_owned(), etag }),
            boot_parameters: Some(file),
        };
        if let Ok(target) = boot(&template, "compute", &image, "4h") {
            let line = target.boot_artifacts.kernel_parameters.unwrap_or_default();
            prop_assert!(line.chars().count() <= LONGEST_KERNEL_PARAMETERS);
            prop_assert!(line.contains(&*own) && line.ends_with("bos_update_frequency=4h"), "{}", line);
        }
    }

    #[test]
    fn no_data_add_a_line_to_a_boot_script(kernel in text(), initrd in text(), parameters in text(), id in text()) {
        let shared = |text: String| Some(Arc::from(text));
        let kernel = format!("s3://boot-images/{kernel}");
        let artifacts = BootArtifacts {
            kernel: shared(kernel),
            initrd: shared(if initrd.is_empty() { initrd } else { format!("s3://boot-images/{initrd}") }),
            kernel_parameters: shared(parameters),
            timestamp: None,
        };
        let recipient = Recipient { id: &id, nid: Some(1), token: "token" };
        let sources = Sources { artifacts: "http://store", scripts: "http://gateway" };
        if let Ok(script) = script(&artifacts, &recipient, &sources) {
            let commands = ["#!ipxe", "# ", "imgfree", "kernel ", "initrd ", "boot ", ":again", "sleep ", "chain "];
            for line in script.lines() {
                prop_assert!(commands.iter().any(|command| line.starts_with(command)), "{:?}", line);
                prop_assert!(!line.contains(['\0', '\r']), "{:?}", line);
            }
            prop_assert!(script.lines().count() <= 9, "{}", script);
        }
    }
}
