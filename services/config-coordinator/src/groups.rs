//! Groups of components that can share one call to an upstream.

use std::{collections::BTreeMap, sync::Arc};

use domain::{boot::component::artifacts::BootArtifacts, core::id::ComponentId};

/// Components with the same boot data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BootGroup {
    pub(crate) artifacts: BootArtifacts,
    /// Ids of the components, sorted.
    pub(crate) hosts: Vec<ComponentId>,
}

/// Components that get the same configuration for the same session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigurationGroup {
    pub(crate) configuration: String,
    pub(crate) session: String,
    /// Ids of the components, sorted.
    pub(crate) ids: Vec<ComponentId>,
}

/// Returns one group for each distinct set of artifacts. A missing text differs from an empty one here, although the
/// server treats them alike: the token stands for the wish of the component, and that has to match. Groups are cut into
/// groups of at most `most`.
pub(crate) fn by_artifacts<'a>(
    components: impl IntoIterator<Item = (&'a ComponentId, &'a BootArtifacts)>,
    most: usize,
) -> Vec<BootGroup> {
    type Texts = [Option<Arc<str>>; 3];
    let mut groups: BTreeMap<Texts, Vec<ComponentId>> = BTreeMap::new();
    for (id, artifacts) in components {
        let BootArtifacts { kernel, kernel_parameters, initrd, timestamp: _ } = artifacts.clone();
        groups.entry([kernel, kernel_parameters, initrd]).or_default().push(id.clone());
    }
    let mut cut = Vec::new();
    for ([kernel, kernel_parameters, initrd], hosts) in groups {
        let artifacts = BootArtifacts { kernel, kernel_parameters, initrd, timestamp: None };
        let hosts = sorted(hosts);
        let parts = hosts.chunks(most);
        cut.extend(parts.map(|hosts| BootGroup { artifacts: artifacts.clone(), hosts: hosts.to_vec() }));
    }
    cut
}

/// Returns one group for each distinct configuration and session, cut into groups of at most `most`. The empty
/// configuration is set like any other.
pub(crate) fn by_configuration<'a>(
    components: impl IntoIterator<Item = (&'a ComponentId, &'a str, &'a str)>,
    most: usize,
) -> Vec<ConfigurationGroup> {
    let mut groups: BTreeMap<(&str, &str), Vec<ComponentId>> = BTreeMap::new();
    for (id, configuration, session) in components {
        groups.entry((configuration, session)).or_default().push(id.clone());
    }
    let mut cut = Vec::new();
    for ((configuration, session), ids) in groups {
        cut.extend(sorted(ids).chunks(most).map(|ids| ConfigurationGroup {
            configuration: configuration.to_owned(),
            session: session.to_owned(),
            ids: ids.to_vec(),
        }));
    }
    cut
}

fn sorted(mut ids: Vec<ComponentId>) -> Vec<ComponentId> {
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn id(text: &str) -> ComponentId {
        ComponentId::parse(text).unwrap()
    }

    fn names(ids: &[ComponentId]) -> String {
        ids.iter().map(ComponentId::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn components_that_boot_the_same_share_calls_up_to_a_limit() {
        // "-" stands for a missing text.
        let rows = [
            ("x9", "k1", "p", "i"),
            ("x1", "k1", "p", "i"),
            ("x2", "k1", "q", "i"),
            ("x3", "k2", "p", "i"),
            ("x4", "k1", "p", "-"),
            ("x5", "k1", "p", ""),
            ("x6", "k1", "p", "i"),
        ];
        let text = |text: &str| (text != "-").then(|| Arc::from(text));
        let components: Vec<_> = rows
            .iter()
            .map(|(name, kernel, parameters, initrd)| {
                let artifacts = BootArtifacts {
                    kernel: text(kernel),
                    kernel_parameters: text(parameters),
                    initrd: text(initrd),
                    timestamp: None,
                };
                (id(name), artifacts)
            })
            .collect();
        let groups = by_artifacts(components.iter().map(|(id, artifacts)| (id, artifacts)), 2);
        let lines = groups.iter().map(|group| {
            let BootArtifacts { kernel, kernel_parameters, initrd, .. } = &group.artifacts;
            format!("{kernel:?} {kernel_parameters:?} {initrd:?}: {}\n", names(&group.hosts))
        });
        expect![[r#"
            Some("k1") Some("p") None: x4
            Some("k1") Some("p") Some(""): x5
            Some("k1") Some("p") Some("i"): x1 x6
            Some("k1") Some("p") Some("i"): x9
            Some("k1") Some("q") Some("i"): x2
            Some("k2") Some("p") Some("i"): x3
        "#]]
        .assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn components_with_one_configuration_and_session_share_calls_up_to_a_limit() {
        let rows = [
            ("x9", "base", "s1"),
            ("x1", "base", "s1"),
            ("x2", "base", "s2"),
            ("x3", "", "s1"),
            ("x4", "base", "s1"),
            ("x5", "extra", ""),
            ("x6", "base", "s1"),
            ("x7", "base", "s1"),
        ];
        let components = rows.map(|(name, configuration, session)| (id(name), configuration, session));
        let groups = by_configuration(
            components.iter().map(|(id, configuration, session)| (id, *configuration, *session)),
            2,
        );
        let lines = groups
            .iter()
            .map(|group| format!("{:?} {:?}: {}\n", group.configuration, group.session, names(&group.ids)));
        expect![[r#"
            "" "s1": x3
            "base" "s1": x1 x4
            "base" "s1": x6 x7
            "base" "s1": x9
            "base" "s2": x2
            "extra" "": x5
        "#]]
        .assert_eq(&lines.collect::<String>());
    }
}
