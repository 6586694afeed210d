//! Import of a backup.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use serde_json::Value;

use super::{
    EnabledComponents, array,
    array::Item,
    component::{self, ComponentDecision, ExistingComponent, PreparedComponent},
    file::{self, COMPONENTS, OPTIONS, TEMPLATES},
    option,
    record::{Object, RecordDefect, object},
    report::{ImportReport, KindCounts},
    site::{PAGE, RestSite, WriteMode, WriteResult},
    template,
};

/// Imports the backup in `directory` into `site`. Unreadable files are detected before the first write; an invalid
/// record is reported and skipped.
///
/// # Errors
/// Names the file, or the peer that did not answer. Earlier writes stay, and another import continues from there.
pub(crate) async fn run(
    site: &RestSite,
    directory: &Path,
    enabled: EnabledComponents,
    mut report: ImportReport,
) -> anyhow::Result<ExitCode> {
    let folder = file::find(directory)?;
    let given = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    let options = given(OPTIONS);
    let templates = given(TEMPLATES);
    let components = given(COMPONENTS);
    let options = options.as_deref().map(file::read_object).transpose()?;
    [&templates, &components].into_iter().flatten().try_for_each(|path| array::check(path))?;

    let mode = if report.dry_run() { WriteMode::DryRun } else { WriteMode::Write };
    if let Some(options) = options {
        report.add(import_options(site, options, mode).await?);
    }
    if let Some(path) = templates {
        report.add(import_templates(site, &path, mode).await?);
    }
    if let Some(path) = components {
        let mut import = ComponentImport::new(site, enabled, mode).await?;
        import.run(&path).await?;
        report.add(import.tally);
    }
    print!("{}", report.render());
    Ok(report.verdict())
}

async fn import_options(site: &RestSite, backup: Object, mode: WriteMode) -> anyhow::Result<KindCounts> {
    let mut tally = KindCounts::new("options");
    let current = site.options().await?;
    let plan = option::plan(backup, &current);
    plan.defects.iter().for_each(|defect| tally.skipped(OPTIONS, defect));
    tally.left(plan.left);
    // Options are set one by one, so that a refused value keeps no other from being set.
    for (name, value) in plan.changes {
        let before = current.get(&name).map(|now| format!(" from {now}")).unwrap_or_default();
        let change = format!("{name}{before} to {value}");
        let body = Object::from_iter([(name.clone(), value)]);
        match site.patch_options(&body, mode).await? {
            WriteResult::Done(_) => tally.changed(change),
            WriteResult::Refused(reason) => tally.skipped(OPTIONS, &RecordDefect::new(name, reason)),
        }
    }
    Ok(tally)
}

async fn import_templates(site: &RestSite, path: &Path, mode: WriteMode) -> anyhow::Result<KindCounts> {
    let shown = site.templates().await?.into_iter().filter_map(|shown| template::prepare(shown).ok());
    let standing = shown.map(|shown| (shown.key.clone(), shown.form())).collect();
    let tally = KindCounts::new("session templates");
    let mut import = TemplateImport { site, mode, standing, seen: HashSet::new(), tally };
    let (mut batches, reading) = array::batches(path);
    while let Some(batch) = batches.recv().await {
        for item in batch {
            import.take(item).await?;
        }
    }
    reading.await.context("reading")??;
    Ok(import.tally)
}

/// The import of session templates.
struct TemplateImport<'a> {
    site: &'a RestSite,
    mode: WriteMode,
    /// Fingerprints of existing templates.
    standing: HashMap<template::Key, u64>,
    /// Templates of the backup that were read so far.
    seen: HashSet<template::Key>,
    tally: KindCounts,
}

impl TemplateImport<'_> {
    async fn take(&mut self, (index, item): Item) -> anyhow::Result<()> {
        let at = place(TEMPLATES, index, item.get("name"));
        match template::prepare(item) {
            Ok(prepared) => self.store(&at, &prepared).await,
            Err(defect) => {
                self.tally.skipped(&at, &defect);
                Ok(())
            }
        }
    }

    async fn store(&mut self, at: &str, prepared: &template::PreparedTemplate) -> anyhow::Result<()> {
        prepared.mended.iter().for_each(|mended| println!("{at}: {mended}"));
        let before = self.standing.get(&prepared.key).copied();
        if !self.seen.insert(prepared.key.clone()) {
            self.tally.skipped(at, &twice("name"));
            return Ok(());
        }
        if before == Some(prepared.form()) {
            self.tally.left(1);
            return Ok(());
        }
        let (tenant, name) = &prepared.key;
        let label = template::label(&prepared.key);
        match self.site.put_template(tenant, name, &prepared.body, self.mode).await? {
            WriteResult::Done(_) if before.is_none() => self.tally.created(label),
            WriteResult::Done(_) => self.tally.changed(label),
            WriteResult::Refused(reason) => self.tally.skipped(at, &RecordDefect::new("", reason)),
        }
        Ok(())
    }
}

/// Component of the backup that may be written.
struct CandidateComponent {
    index: usize,
    prepared: PreparedComponent,
}

impl CandidateComponent {
    fn place(&self) -> String {
        place(COMPONENTS, self.index, self.prepared.record.get("id"))
    }
}

/// The import of components.
struct ComponentImport<'a> {
    site: &'a RestSite,
    enabled: EnabledComponents,
    mode: WriteMode,
    /// Existing components.
    standing: HashMap<String, ExistingComponent>,
    /// Components of the backup that were read so far.
    seen: HashSet<String>,
    switched_off: usize,
    tally: KindCounts,
}

impl<'a> ComponentImport<'a> {
    async fn new(site: &'a RestSite, enabled: EnabledComponents, mode: WriteMode) -> anyhow::Result<Self> {
        let standing = standing(site).await?;
        let tally = KindCounts::new("components");
        Ok(Self { site, enabled, mode, standing, seen: HashSet::new(), switched_off: 0, tally })
    }

    async fn run(&mut self, path: &Path) -> anyhow::Result<()> {
        let (mut batches, reading) = array::batches(path);
        while let Some(batch) = batches.recv().await {
            let candidates: Vec<_> = batch.into_iter().filter_map(|item| self.read(item)).collect();
            let records: Vec<_> = candidates.iter().map(|candidate| &candidate.prepared.record).collect();
            let forms = forms(self.site, &records).await?;
            let judged = candidates.into_iter().zip(forms);
            let writes = judged.filter_map(|(candidate, form)| self.judge(candidate, form)).collect();
            self.write(writes).await?;
        }
        reading.await.context("reading")??;
        if self.switched_off > 0 {
            println!(
                "{COMPONENTS}: {} components were enabled in the backup and are stored disabled",
                self.switched_off
            );
        }
        Ok(())
    }

    /// Reads an item of the file, if it is a component.
    fn read(&mut self, (index, item): Item) -> Option<CandidateComponent> {
        let at = place(COMPONENTS, index, item.get("id"));
        let prepared = match component::prepare(item, self.enabled) {
            Ok(prepared) => prepared,
            Err(defect) => {
                self.tally.skipped(&at, &defect);
                return None;
            }
        };
        if !self.seen.insert(prepared.id.clone()) {
            self.tally.skipped(&at, &twice("id"));
            return None;
        }
        Some(CandidateComponent { index, prepared })
    }

    /// Decides whether a component is written, and whether it is a new one.
    fn judge(
        &mut self,
        candidate: CandidateComponent,
        form: Result<u64, String>,
    ) -> Option<(CandidateComponent, bool)> {
        let form = match form {
            Ok(form) => form,
            Err(reason) => {
                self.tally.skipped(&candidate.place(), &RecordDefect::new("", reason));
                return None;
            }
        };
        let new = match ComponentDecision::of(form, self.standing.get(&candidate.prepared.id).copied()) {
            ComponentDecision::Create => true,
            ComponentDecision::Change => false,
            ComponentDecision::Leave => {
                self.tally.left(1);
                return None;
            }
            ComponentDecision::Busy => {
                let reason = "it is enabled here and being acted on, so it is not written over";
                self.tally.skipped(&candidate.place(), &RecordDefect::new("enabled", reason));
                return None;
            }
        };
        self.switched_off += usize::from(candidate.prepared.switched_off);
        Some((candidate, new))
    }

    /// Writes a batch of components that were validated before.
    async fn write(&mut self, writes: Vec<(CandidateComponent, bool)>) -> anyhow::Result<()> {
        if self.mode == WriteMode::Write && !writes.is_empty() {
            let records: Vec<_> = writes.iter().map(|(candidate, _)| &candidate.prepared.record).collect();
            if let WriteResult::Refused(reason) = self.site.put_components(&records, WriteMode::Write).await?
            {
                let refused = |(candidate, _): &(CandidateComponent, bool)| candidate.place();
                let defect = RecordDefect::new("", reason);
                writes.iter().map(refused).for_each(|at| self.tally.skipped(&at, &defect));
                return Ok(());
            }
        }
        for (CandidateComponent { prepared, .. }, new) in writes {
            if new { self.tally.created(prepared.id) } else { self.tally.changed(prepared.id) }
        }
        Ok(())
    }
}

/// Returns the fingerprint of each record after a write, or the reason why it is refused. The service validates many
/// records at a time; a batch that is refused is bisected.
async fn forms(site: &RestSite, records: &[&Object]) -> anyhow::Result<Vec<Result<u64, String>>> {
    let mut forms = Vec::with_capacity(records.len());
    let mut batches = vec![records];
    while let Some(batch) = batches.pop() {
        if batch.is_empty() {
            continue;
        }
        match site.put_components(batch, WriteMode::DryRun).await? {
            WriteResult::Done(Value::Array(shown)) if shown.len() == batch.len() => {
                for shown in shown {
                    forms.push(Ok(component::form(object(shown).map_err(anyhow::Error::msg)?)));
                }
            }
            WriteResult::Done(_) => anyhow::bail!("a dry run answers something else than its components"),
            WriteResult::Refused(reason) if batch.len() == 1 => forms.push(Err(reason.replace("[0].", ""))),
            WriteResult::Refused(_) => {
                let (first, second) = batch.split_at(batch.len() / 2);
                batches.extend([second, first]);
            }
        }
    }
    Ok(forms)
}

/// Reads all existing components page by page.
async fn standing(site: &RestSite) -> anyhow::Result<HashMap<String, ExistingComponent>> {
    let mut standing = HashMap::new();
    let mut last = None;
    loop {
        let page = site.components_after(last.as_deref()).await?;
        let full = page.len() == PAGE;
        let mut records = Vec::with_capacity(page.len());
        for shown in page {
            let shown = object(shown).map_err(|defect| anyhow::anyhow!("/v2/components: {defect}"))?;
            records.push(component::again(shown));
        }
        let forms = forms(site, &records.iter().collect::<Vec<_>>()).await?;
        for (record, form) in records.iter().zip(forms) {
            let Some(id) = record.get("id").and_then(Value::as_str).map(str::to_owned) else {
                anyhow::bail!("/v2/components: a component has no id");
            };
            let enabled = component::is_enabled(record);
            standing.insert(id.clone(), ExistingComponent { enabled, form: form.ok() });
            last = Some(id);
        }
        if !full {
            return Ok(standing);
        }
    }
}

/// Defect of a record that a file has twice: the wanted one is unknown.
fn twice(field: &str) -> RecordDefect {
    RecordDefect::new(field, "was there before in this file")
}

/// Formats the place of a record: `components.json[3] x1000c0s0b0n0`.
fn place(file: &str, index: usize, name: Option<&Value>) -> String {
    match name.and_then(Value::as_str) {
        Some(name) => format!("{file}[{index}] {name}"),
        None => format!("{file}[{index}]"),
    }
}
