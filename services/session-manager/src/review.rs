//! Reviews the images of stored templates, and logs missing parts. The image store never prevents a template from
//! being stored (BOS reference 2.8.3, step 5), so no request waits for the review.

use std::{collections::BTreeSet, sync::Arc};

use domain::boot::template::{Rules, SessionTemplate, Wanted, store_findings};
use tokio::sync::mpsc;

use crate::{lookup::ImageLookup, shared::ManagerState};

/// Most templates that wait for a review. Beyond this limit templates are not reviewed, since each may be large.
const MOST_WAITING: usize = 16;

/// A stored template, with the names of the boot sets to review.
pub(crate) struct StoredTemplate {
    pub(crate) template: SessionTemplate,
    pub(crate) names: BTreeSet<String>,
}

/// Creates the queue of reviews.
pub(crate) fn queue() -> (mpsc::Sender<StoredTemplate>, mpsc::Receiver<StoredTemplate>) {
    mpsc::channel(MOST_WAITING)
}

/// Reviews stored templates, for ever.
pub(crate) async fn run(
    shared: ManagerState,
    lookup: Arc<ImageLookup>,
    mut stored: mpsc::Receiver<StoredTemplate>,
) -> anyhow::Result<()> {
    while let Some(StoredTemplate { template, names }) = stored.recv().await {
        // This service stores templates only once it has the options.
        let Ok(options) = shared.cached_options() else { continue };
        let rules = Rules { options: &options, compatibility: shared.compatibility };
        let boot_sets = template.boot_sets.iter().filter(|(name, _)| names.contains(*name));
        let known = lookup.known(Wanted::by(boot_sets.map(|(_, set)| set)).in_store()).await;
        for finding in store_findings(&template, &names, &known, rules) {
            tracing::warn!(%finding, "stored template may not boot");
        }
    }
    Ok(())
}
