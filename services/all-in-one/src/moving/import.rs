//! Reading a backup in.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use serde_json::Value;

use super::{
    Enabled, array,
    array::Item,
    component::{self, Prepared, Standing, Verdict},
    file::{self, COMPONENTS, OPTIONS, TEMPLATES},
    option,
    record::{Defect, Object, object},
    report::{Report, Tally},
    site::{Mode, PAGE, Site, Written},
    template,
};

/// Brings what is in the backup in `directory` to `site`. Files that cannot be read are found before anything is
/// written; a record that cannot be used is told and skipped.
///
/// # Errors
/// Names the file, or who did not answer. What was written before stays, and another import goes on from there.
pub(crate) async fn run(
    site: &Site,
    directory: &Path,
    enabled: Enabled,
    mut report: Report,
) -> anyhow::Result<ExitCode> {
    let folder = file::find(directory)?;
    let given = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    let (options, templates, components) = (given(OPTIONS), given(TEMPLATES), given(COMPONENTS));
    let options = options.as_deref().map(file::read_object).transpose()?;
    [&templates, &components].into_iter().flatten().try_for_each(|path| array::check(path))?;

    let mode = if report.dry_run() { Mode::DryRun } else { Mode::Write };
    if let Some(options) = options {
        report.add(import_options(site, options, mode).await?);
    }
    if let Some(path) = templates {
        report.add(import_templates(site, &path, mode).await?);
    }
    if let Some(path) = components {
        let mut import = Components::new(site, enabled, mode).await?;
        import.run(&path).await?;
        report.add(import.tally);
    }
    print!("{}", report.render());
    Ok(report.verdict())
}

async fn import_options(site: &Site, backup: Object, mode: Mode) -> anyhow::Result<Tally> {
    let mut tally = Tally::new("options");
    let current = site.options().await?;
    let plan = option::plan(backup, &current);
    plan.defects.iter().for_each(|defect| tally.skipped(OPTIONS, defect));
    tally.left(plan.left);
    // One by one, so that a value which is refused keeps no other from being set.
    for (name, value) in plan.changes {
        let before = current.get(&name).map(|now| format!(" from {now}")).unwrap_or_default();
        let change = format!("{name}{before} to {value}");
        let body = Object::from_iter([(name.clone(), value)]);
        match site.patch_options(&body, mode).await? {
            Written::Done(_) => tally.changed(change),
            Written::Refused(reason) => tally.skipped(OPTIONS, &Defect::new(name, reason)),
        }
    }
    Ok(tally)
}

async fn import_templates(site: &Site, path: &Path, mode: Mode) -> anyhow::Result<Tally> {
    let shown = site.templates().await?.into_iter().filter_map(|shown| template::prepare(shown).ok());
    let standing = shown.map(|shown| (shown.key.clone(), shown.form())).collect();
    let tally = Tally::new("session templates");
    let mut import = Templates { site, mode, standing, seen: HashSet::new(), tally };
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
struct Templates<'a> {
    site: &'a Site,
    mode: Mode,
    /// What those that are there already say.
    standing: HashMap<template::Key, u64>,
    /// Those of the backup, as far as it was read.
    seen: HashSet<template::Key>,
    tally: Tally,
}

impl Templates<'_> {
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

    async fn store(&mut self, at: &str, prepared: &template::Prepared) -> anyhow::Result<()> {
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
            Written::Done(_) if before.is_none() => self.tally.created(label),
            Written::Done(_) => self.tally.changed(label),
            Written::Refused(reason) => self.tally.skipped(at, &Defect::new("", reason)),
        }
        Ok(())
    }
}

/// A component of the backup that may be written.
struct Candidate {
    index: usize,
    prepared: Prepared,
}

impl Candidate {
    fn place(&self) -> String {
        place(COMPONENTS, self.index, self.prepared.record.get("id"))
    }
}

/// The import of components.
struct Components<'a> {
    site: &'a Site,
    enabled: Enabled,
    mode: Mode,
    /// How those that are there already stand.
    standing: HashMap<String, Standing>,
    /// Those of the backup, as far as it was read.
    seen: HashSet<String>,
    switched_off: usize,
    tally: Tally,
}

impl<'a> Components<'a> {
    async fn new(site: &'a Site, enabled: Enabled, mode: Mode) -> anyhow::Result<Self> {
        let standing = standing(site).await?;
        let tally = Tally::new("components");
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

    /// An item of the file, if it is a component.
    fn read(&mut self, (index, item): Item) -> Option<Candidate> {
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
        Some(Candidate { index, prepared })
    }

    /// Whether a component is to be written, and whether it is a new one.
    fn judge(&mut self, candidate: Candidate, form: Result<u64, String>) -> Option<(Candidate, bool)> {
        let form = match form {
            Ok(form) => form,
            Err(reason) => {
                self.tally.skipped(&candidate.place(), &Defect::new("", reason));
                return None;
            }
        };
        let new = match Verdict::of(form, self.standing.get(&candidate.prepared.id).copied()) {
            Verdict::Create => true,
            Verdict::Change => false,
            Verdict::Leave => {
                self.tally.left(1);
                return None;
            }
            Verdict::Busy => {
                let reason = "it is enabled here and being acted on, so it is not written over";
                self.tally.skipped(&candidate.place(), &Defect::new("enabled", reason));
                return None;
            }
        };
        self.switched_off += usize::from(candidate.prepared.switched_off);
        Some((candidate, new))
    }

    /// Writes a batch of components, each of which was found to be good before.
    async fn write(&mut self, writes: Vec<(Candidate, bool)>) -> anyhow::Result<()> {
        if self.mode == Mode::Write && !writes.is_empty() {
            let records: Vec<_> = writes.iter().map(|(candidate, _)| &candidate.prepared.record).collect();
            if let Written::Refused(reason) = self.site.put_components(&records, Mode::Write).await? {
                let refused = |(candidate, _): &(Candidate, bool)| candidate.place();
                let defect = Defect::new("", reason);
                writes.iter().map(refused).for_each(|at| self.tally.skipped(&at, &defect));
                return Ok(());
            }
        }
        for (Candidate { prepared, .. }, new) in writes {
            if new { self.tally.created(prepared.id) } else { self.tally.changed(prepared.id) }
        }
        Ok(())
    }
}

/// What stands for each of these records once it has been written, or why it cannot be. Records are judged by whoever
/// stores them, many at a time; of those that are refused together each is found by halving.
async fn forms(site: &Site, records: &[&Object]) -> anyhow::Result<Vec<Result<u64, String>>> {
    let mut forms = Vec::with_capacity(records.len());
    let mut batches = vec![records];
    while let Some(batch) = batches.pop() {
        if batch.is_empty() {
            continue;
        }
        match site.put_components(batch, Mode::DryRun).await? {
            Written::Done(Value::Array(shown)) if shown.len() == batch.len() => {
                for shown in shown {
                    forms.push(Ok(component::form(object(shown).map_err(anyhow::Error::msg)?)));
                }
            }
            Written::Done(_) => anyhow::bail!("a dry run answers something else than its components"),
            Written::Refused(reason) if batch.len() == 1 => forms.push(Err(reason.replace("[0].", ""))),
            Written::Refused(_) => {
                let (first, second) = batch.split_at(batch.len() / 2);
                batches.extend([second, first]);
            }
        }
    }
    Ok(forms)
}

/// How every component stands, read page by page.
async fn standing(site: &Site) -> anyhow::Result<HashMap<String, Standing>> {
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
            standing.insert(id.clone(), Standing { enabled, form: form.ok() });
            last = Some(id);
        }
        if !full {
            return Ok(standing);
        }
    }
}

/// A record that a file has twice: which of them is meant cannot be told.
fn twice(field: &str) -> Defect {
    Defect::new(field, "was there before in this file")
}

/// Where a record stands: `components.json[3] x1000c0s0b0n0`.
fn place(file: &str, index: usize, name: Option<&Value>) -> String {
    match name.and_then(Value::as_str) {
        Some(name) => format!("{file}[{index}] {name}"),
        None => format!("{file}[{index}]"),
    }
}
