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
    component::{self, Standing, Verdict},
    file::{self, COMPONENTS, OPTIONS, TEMPLATES},
    option,
    record::{Defect, Object, object},
    report::{Report, Tally},
    site::{PAGE, Site, Written},
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

    let dry_run = report.dry_run();
    if let Some(options) = options {
        report.add(import_options(site, options, dry_run).await?);
    }
    if let Some(path) = templates {
        report.add(import_templates(site, &path, dry_run).await?);
    }
    if let Some(path) = components {
        let mut import = Components::new(site, enabled, dry_run).await?;
        import.run(&path).await?;
        report.add(import.tally);
    }
    print!("{}", report.render());
    Ok(report.verdict())
}

async fn import_options(site: &Site, backup: Object, dry_run: bool) -> anyhow::Result<Tally> {
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
        match if dry_run { Written::Done } else { site.patch_options(&body).await? } {
            Written::Done => tally.changed(change),
            Written::Refused(reason) => tally.skipped(OPTIONS, &Defect::new(name, reason)),
        }
    }
    Ok(tally)
}

async fn import_templates(site: &Site, path: &Path, dry_run: bool) -> anyhow::Result<Tally> {
    let shown = site.templates().await?.into_iter().filter_map(|shown| template::prepare(shown).ok());
    let standing = shown.map(|shown| (shown.key.clone(), shown.form())).collect();
    let tally = Tally::new("session templates");
    let mut import = Templates { site, dry_run, standing, seen: HashSet::new(), tally };
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
    dry_run: bool,
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
        let written = match self.dry_run {
            true => Written::Done,
            false => self.site.put_template(tenant, name, &prepared.body).await?,
        };
        let label = template::label(&prepared.key);
        match written {
            Written::Done if before.is_none() => self.tally.created(label),
            Written::Done => self.tally.changed(label),
            Written::Refused(reason) => self.tally.skipped(at, &Defect::new("", reason)),
        }
        Ok(())
    }
}

/// A component that is to be written.
struct Write {
    index: usize,
    id: String,
    record: Object,
    new: bool,
}

/// The import of components.
struct Components<'a> {
    site: &'a Site,
    enabled: Enabled,
    dry_run: bool,
    /// How those that are there already stand.
    standing: HashMap<String, Standing>,
    /// Those of the backup, as far as it was read.
    seen: HashSet<String>,
    switched_off: usize,
    tally: Tally,
}

impl<'a> Components<'a> {
    async fn new(site: &'a Site, enabled: Enabled, dry_run: bool) -> anyhow::Result<Self> {
        let standing = standing(site).await?;
        let tally = Tally::new("components");
        Ok(Self { site, enabled, dry_run, standing, seen: HashSet::new(), switched_off: 0, tally })
    }

    async fn run(&mut self, path: &Path) -> anyhow::Result<()> {
        let (mut batches, reading) = array::batches(path);
        while let Some(batch) = batches.recv().await {
            let writes = batch.into_iter().filter_map(|item| self.judge(item)).collect();
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

    /// What is to be written because of an item of the file, if anything.
    fn judge(&mut self, (index, item): Item) -> Option<Write> {
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
        let new = match prepared.verdict(self.standing.get(&prepared.id).copied()) {
            Verdict::Create => true,
            Verdict::Change => false,
            Verdict::Leave => {
                self.tally.left(1);
                return None;
            }
            Verdict::Busy => {
                let reason = "it is enabled here and being acted on, so it is not written over";
                self.tally.skipped(&at, &Defect::new("enabled", reason));
                return None;
            }
        };
        self.switched_off += usize::from(prepared.switched_off);
        Some(Write { index, id: prepared.id, record: prepared.record, new })
    }

    /// Writes a batch. One that is refused is halved until the record that cannot be used is alone.
    async fn write(&mut self, writes: Vec<Write>) -> anyhow::Result<()> {
        let mut batches = vec![writes];
        while let Some(mut batch) = batches.pop() {
            if batch.is_empty() {
                continue;
            }
            match self.written(&batch).await? {
                Written::Done => batch.into_iter().for_each(|write| match write.new {
                    true => self.tally.created(write.id),
                    false => self.tally.changed(write.id),
                }),
                Written::Refused(reason) if batch.len() == 1 => {
                    for Write { index, id, .. } in batch {
                        let at = place(COMPONENTS, index, Some(&id.into()));
                        self.tally.skipped(&at, &Defect::new("", reason.replace("[0].", "")));
                    }
                }
                Written::Refused(_) => {
                    let later = batch.split_off(batch.len() / 2);
                    batches.extend([later, batch]);
                }
            }
        }
        Ok(())
    }

    async fn written(&self, batch: &[Write]) -> anyhow::Result<Written> {
        if self.dry_run {
            return Ok(Written::Done);
        }
        let records: Vec<_> = batch.iter().map(|write| &write.record).collect();
        self.site.put_components(&records).await
    }
}

/// How every component stands, read page by page.
async fn standing(site: &Site) -> anyhow::Result<HashMap<String, Standing>> {
    let mut standing = HashMap::new();
    let mut last = None;
    loop {
        let page = site.components_after(last.as_deref()).await?;
        let full = page.len() == PAGE;
        for shown in page {
            let shown = object(shown).map_err(|defect| anyhow::anyhow!("/v2/components: {defect}"))?;
            let Some(id) = shown.get("id").and_then(Value::as_str).map(str::to_owned) else {
                anyhow::bail!("/v2/components: a component has no id");
            };
            standing.insert(id.clone(), Standing::of(shown));
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
