//! Findings about a template, from the template alone and from the lookups of its images (BOS reference 7).

mod image;
mod own;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use super::{BootSet, Known, Operation, SessionTemplate, Wanted};
use crate::{
    boot::bos::{compatibility::Compatibility, options::Options},
    core::invalid::Invalid,
};

/// Defect of a template, or of one of its boot sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Finding {
    /// Name of the template.
    pub template: String,
    /// Name of the boot set; `None`: the whole template.
    pub boot_set: Option<String>,
    /// Field of the boot set to mend; empty: several.
    pub field: &'static str,
    /// Defect, in the words that BOS shows.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session template: '{}' ", self.template)?;
        if let Some(boot_set) = &self.boot_set {
            write!(f, "boot set: '{boot_set}': ")?;
        }
        f.write_str(&self.text)
    }
}

impl Finding {
    /// Returns the finding as the reason why a template is not stored.
    pub fn refusal(self) -> Invalid {
        match self.boot_set {
            Some(boot_set) => Invalid::new(self.field, self.text).within(&format!("boot_sets.{boot_set}")),
            None => Invalid::new("boot_sets", self.text),
        }
    }
}

/// Rules for judging templates.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Options that decide the severity of some findings.
    pub options: &'a Options,
    /// Strictness; strictly, only findings of BOS are made.
    pub compatibility: Compatibility,
}

/// Finding about one boot set.
#[derive(Debug)]
struct Said {
    field: &'static str,
    text: String,
}

/// Finding as a warning, or as an error that ends the check.
type Warning = Result<Option<Said>, Said>;

impl Said {
    fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self { field, text: text.into() }
    }

    fn about(self, template: &SessionTemplate, boot_set: &str) -> Finding {
        let template = template.name.clone();
        Finding { template, boot_set: Some(boot_set.to_owned()), field: self.field, text: self.text }
    }
}

/// Returns the warnings about `template` for a session of that `operation`. Boot sets are checked in the order in which
/// they were given, each as in BOS reference 7.2. A shutdown needs no image.
///
/// # Errors
/// The first error, which hides all warnings.
pub fn findings(
    template: &SessionTemplate,
    operation: Operation,
    known: &Known,
    rules: Rules<'_>,
) -> Result<Vec<Finding>, Finding> {
    if template.boot_sets.is_empty() {
        let text = "has no boot sets".to_owned();
        return Err(Finding { template: template.name.clone(), boot_set: None, field: "", text });
    }
    let mut warnings = Vec::new();
    let mut named_twice = named_twice(template, rules.compatibility);
    for (name, boot_set) in template.in_order() {
        let about = |said: Said| said.about(template, name);
        warnings.extend(own(boot_set, rules).map_err(about)?.into_iter().map(about));
        if operation != Operation::Shutdown {
            let said = of_image(template, name, boot_set, known, rules).map_err(about)?;
            warnings.extend(said.into_iter().map(about));
        }
        warnings.extend(named_twice.remove(name.as_str()).map(about));
    }
    Ok(warnings)
}

/// Returns warnings, by boot set, about nodes that several boot sets name. BOS has no such warning.
fn named_twice(template: &SessionTemplate, compatibility: Compatibility) -> HashMap<&str, Said> {
    if compatibility.strict_bos {
        return HashMap::new();
    }
    let mut named_before = HashMap::new();
    // The order of the names decides which boot set takes a node, whatever the order in which they were given.
    let said = template.boot_sets.iter().filter_map(|(name, boot_set)| {
        Some((name.as_str(), own::named_twice(name, boot_set, &mut named_before)?))
    });
    said.collect()
}

/// Returns the images to look up before [`findings`] can judge: none that follow an error which shows without a lookup.
pub fn wanted(template: &SessionTemplate, operation: Operation, rules: Rules<'_>) -> Wanted {
    if operation == Operation::Shutdown {
        return Wanted::default();
    }
    let boot_sets = template.in_order().map(|(_, boot_set)| boot_set);
    Wanted::by(boot_sets.take_while(|boot_set| own(boot_set, rules).is_ok()))
}

/// Returns the findings of the catalogue about the boot sets of these `names`, which decide whether a template is
/// stored (BOS reference 2.8.3, step 6).
///
/// # Errors
/// The first error, which hides all warnings.
pub fn catalogue_findings(
    template: &SessionTemplate,
    names: &BTreeSet<String>,
    known: &Known,
    rules: Rules<'_>,
) -> Result<Vec<Finding>, Finding> {
    let mut warnings = Vec::new();
    for (name, boot_set) in template.in_order().filter(|(name, _)| names.contains(*name)) {
        let about = |said: Said| said.about(template, name);
        warnings.extend(image::catalogue(boot_set, known, rules.options).map_err(about)?.map(about));
    }
    Ok(warnings)
}

/// Returns the findings of the store about the boot sets of these `names`, errors included: the store keeps no template
/// from being stored (BOS reference 2.8.3, step 5).
pub fn store_findings(
    template: &SessionTemplate,
    names: &BTreeSet<String>,
    known: &Known,
    rules: Rules<'_>,
) -> Vec<Finding> {
    let boot_sets = template.in_order().filter(|(name, _)| names.contains(*name));
    let of_store = boot_sets.flat_map(|(name, boot_set)| {
        let said = image::artifacts(boot_set, known).unwrap_or_else(Some);
        let obstacle = image::obstacle(template, name, boot_set, known, rules);
        said.into_iter().chain(obstacle).map(|said| said.about(template, name))
    });
    of_store.collect()
}

/// Returns the findings of checks 1 to 4.
fn own(boot_set: &BootSet, rules: Rules<'_>) -> Result<Vec<Said>, Said> {
    own::nodes(boot_set)?;
    let nid = own::nid(boot_set, rules.options.reject_nids)?;
    Ok(own::provider(boot_set).into_iter().chain(nid).collect())
}

/// Returns the findings of checks 5 and 6, and of those that BOS does not make.
fn of_image(
    template: &SessionTemplate,
    name: &str,
    boot_set: &BootSet,
    known: &Known,
    rules: Rules<'_>,
) -> Result<Vec<Said>, Said> {
    let stored = image::artifacts(boot_set, known)?;
    let listed = image::catalogue(boot_set, known, rules.options)?;
    let obstacle = image::obstacle(template, name, boot_set, known, rules);
    Ok(stored.into_iter().chain(listed).chain(obstacle).collect())
}

#[cfg(test)]
mod tests;
