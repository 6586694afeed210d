//! Refusals of templates in the words of BOS (BOS reference, appendix A.1 and A.2).

use chassis::Fault;

use crate::bos::{problem::BosProblem, tenant::RequestTenant, wire::template::SessionTemplate};

/// Wording for one write of a template.
pub(super) struct TemplateWording {
    doing: &'static str,
    /// Key and name of a boot set whose name is not its key.
    misnamed: Option<(String, String)>,
}

impl TemplateWording {
    /// Creates the wording for the template `sent`, which is being `created` or `patched`.
    pub(super) fn new(doing: &'static str, sent: &SessionTemplate) -> Self {
        let mut sets = sent.boot_sets.iter().flat_map(|sets| &sets.0);
        let misnamed = sets.find_map(|(key, set)| {
            let name = set.0.name.as_ref().filter(|name| *name != key)?;
            Some((key.clone(), name.clone()))
        });
        Self { doing, misnamed }
    }

    /// Returns the problem of a write that was refused.
    pub(super) fn of(&self, fault: Fault, tenant: &RequestTenant) -> BosProblem {
        let told = match &fault {
            Fault::Invalid(invalid) => self.worded(&invalid.field, &invalid.reason),
            _ => None,
        };
        let problem = told.map_or_else(|| BosProblem::of(fault, tenant), BosProblem::bad_request);
        problem.prefixed(&format!("The session template could not be {}: ", self.doing))
    }

    /// Returns the text of a finding, if clients know the finding by its text.
    fn worded(&self, field: &str, reason: &str) -> Option<String> {
        let within = field.strip_prefix("boot_sets.")?;
        if let (Some(set), true) = (within.strip_suffix(".node_list"), reason.contains("reject_nids")) {
            return Some(format!("Boot set {set}: Has NID in 'node_list'"));
        }
        if let (Some(set), Some((key, name))) = (within.strip_suffix(".name"), &self.misnamed)
            && set == key
        {
            let text = "does not match 'name' field of corresponding boot set";
            return Some(format!("boot_sets key ({key}) {text} ({name})"));
        }
        // A boot set as a whole is refused for one reason only: it asks for no nodes.
        let fields = "node_list, node_roles_groups, node_groups";
        (!within.contains('.'))
            .then(|| format!("Boot set {within}: No hardware specifier fields ({fields}) with an entry"))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    #[test]
    fn findings_that_clients_know_have_their_texts() {
        let body = r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "name": "d"}}}"#;
        let wording = TemplateWording::new("created", &serde_json::from_str(body).unwrap());
        let rows = [
            ("boot_sets.c.name", "'d' is not the key of the boot set"),
            ("boot_sets.c", "needs node_list"),
            ("boot_sets.c.node_list", "looks like a node id, which option reject_nids forbids"),
            ("boot_sets.c.node_list", "has no entry"),
            ("boot_sets.c.path", "is too short"),
            ("boot_sets", "'-c' must begin with a letter"),
            ("description", "is too short"),
        ];
        let lines = rows.map(|(field, reason)| {
            let mut details = ErrorDetails::with_error_info("INVALID", "", []);
            details.add_bad_request_violation(field, reason);
            let status = Status::with_error_details(Code::InvalidArgument, "", details);
            let problem = wording.of(status.into(), &RequestTenant::default());
            format!("{}\n", problem.detail())
        });
        expect![[r#"
            The session template could not be created: boot_sets key (c) does not match 'name' field of corresponding boot set (d)
            The session template could not be created: Boot set c: No hardware specifier fields (node_list, node_roles_groups, node_groups) with an entry
            The session template could not be created: Boot set c: Has NID in 'node_list'
            The session template could not be created: has no entry - 'boot_sets.c.node_list'
            The session template could not be created: is too short - 'boot_sets.c.path'
            The session template could not be created: '-c' must begin with a letter - 'boot_sets'
            The session template could not be created: is too short - 'description'
        "#]].assert_eq(&lines.concat());
    }
}
