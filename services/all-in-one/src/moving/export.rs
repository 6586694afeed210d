//! Export of a backup.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::{
    component::portable,
    file::{self, COMPONENTS, FileDraft, OPTIONS, TEMPLATES},
    record::object,
    site::{PAGE, RestSite},
};

/// Writes the content of `site` below `directory`: every file, or none if a read fails.
///
/// # Errors
/// Names the peer that did not answer, or the file that cannot be written.
pub(crate) async fn run(site: &RestSite, directory: &Path, dry_run: bool) -> anyhow::Result<()> {
    let folder = file::folder(directory);
    let drafted = |name: &str| match dry_run {
        true => Ok(None),
        false => FileDraft::new(&folder, name).map(Some),
    };
    if !dry_run {
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let mut options = drafted(OPTIONS)?;
    let mut templates = drafted(TEMPLATES)?;
    let mut components = drafted(COMPONENTS)?;
    let counts = [
        (OPTIONS, write_options(site, options.as_mut()).await?),
        (TEMPLATES, write_templates(site, templates.as_mut()).await?),
        (COMPONENTS, write_components(site, components.as_mut()).await?),
    ];
    file::publish([options, templates, components].into_iter().flatten().collect())?;
    let verb = if dry_run { "would write" } else { "wrote" };
    for (name, count) in counts {
        println!("{verb} {}: {count} {}", folder.join(name).display(), name.trim_end_matches(".json"));
    }
    Ok(())
}

async fn write_options(site: &RestSite, draft: Option<&mut FileDraft>) -> anyhow::Result<usize> {
    let options = site.options().await?;
    let count = options.len();
    draft.map_or(Ok(()), |draft| draft.write(&Value::Object(options)))?;
    Ok(count)
}

/// Writes the templates sorted: their lists have no order.
async fn write_templates(site: &RestSite, draft: Option<&mut FileDraft>) -> anyhow::Result<usize> {
    let mut templates = site.templates().await?;
    templates.sort_by_key(|template| ["tenant", "name"].map(|key| template[key].as_str().map(str::to_owned)));
    if let Some(draft) = draft {
        templates.iter().try_for_each(|template| draft.push(template))?;
        draft.end_array()?;
    }
    Ok(templates.len())
}

/// Writes the components page by page, without members that cannot be written back: times and the computed status.
async fn write_components(site: &RestSite, mut draft: Option<&mut FileDraft>) -> anyhow::Result<usize> {
    let mut count = 0;
    let mut last = None;
    loop {
        let page = site.components_after(last.as_deref()).await?;
        let full = page.len() == PAGE;
        for component in page {
            let component =
                object(component).map_err(|defect| anyhow::anyhow!("/v2/components: {defect}"))?;
            last = component.get("id").and_then(Value::as_str).map(str::to_owned);
            count += 1;
            if let Some(draft) = &mut draft {
                draft.push(&portable(component).into())?;
            }
        }
        if !full {
            break;
        }
    }
    draft.map_or(Ok(()), FileDraft::end_array)?;
    Ok(count)
}
