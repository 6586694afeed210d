//! What is wrong with a template, judged by itself and by what was found out about its images (BOS reference 7).

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

/// Something wrong with a template, or with one of its boot sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Finding {
    /// Name of the template.
    pub template: String,
    /// Name of the boot set; `None`: the whole template.
    pub boot_set: Option<String>,
    /// Field of the boot set that is to be mended; empty: several.
    pub field: &'static str,
    /// What is wrong, in the words that BOS shows.
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
    /// The finding as the reason why a template is not stored.
    pub fn refusal(self) -> Invalid {
        match self.boot_set {
            Some(boot_set) => Invalid::new(self.field, self.text).within(&format!("boot_sets.{boot_set}")),
            None => Invalid::new("boot_sets", self.text),
        }
    }
}

/// By what templates are judged.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// How bad some findings are.
    pub options: &'a Options,
    /// Strictly, nothing is found that BOS does not find.
    pub compatibility: Compatibility,
}

/// A finding about one boot set.
#[derive(Debug)]
struct Said {
    field: &'static str,
    text: String,
}

/// A finding that is a warning, or as an error one that ends the check.
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

/// The warnings about `template` for a session of that `operation`. Boot sets are looked at in the order in which they
/// were given, each as in BOS reference 7.2. Who shuts nodes down needs no image.
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

/// What there is to say, by boot set, about nodes that several boot sets name. BOS says nothing.
fn named_twice(template: &SessionTemplate, compatibility: Compatibility) -> HashMap<&str, Said> {
    if compatibility.strict_bos {
        return HashMap::new();
    }
    let mut named_before = HashMap::new();
    // The order of the names decides who takes a node, whatever the order in which they were given.
    let said = template.boot_sets.iter().filter_map(|(name, boot_set)| {
        Some((name.as_str(), own::named_twice(name, boot_set, &mut named_before)?))
    });
    said.collect()
}

/// The images to look up before [`findings`] can judge: none that come after an error which is there to see.
pub fn wanted(template: &SessionTemplate, operation: Operation, rules: Rules<'_>) -> Wanted {
    if operation == Operation::Shutdown {
        return Wanted::default();
    }
    let boot_sets = template.in_order().map(|(_, boot_set)| boot_set);
    Wanted::by(boot_sets.take_while(|boot_set| own(boot_set, rules).is_ok()))
}

/// What the catalogue says against the boot sets of these `names`, which decides whether a template is stored (BOS
/// reference 2.8.3, step 6).
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

/// What the store says against the boot sets of these `names`, errors included: it keeps no template from being
/// stored (BOS reference 2.8.3, step 5).
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

/// Checks 1 to 4.
fn own(boot_set: &BootSet, rules: Rules<'_>) -> Result<Vec<Said>, Said> {
    own::nodes(boot_set)?;
    let nid = own::nid(boot_set, rules.options.reject_nids)?;
    Ok(own::provider(boot_set).into_iter().chain(nid).collect())
}

/// Checks 5 and 6, and those that BOS does not make.
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
