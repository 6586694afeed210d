//! Looks at the images of templates once they are stored, and logs what a boot would lack. The store of images keeps
//! no template from being stored (BOS reference 2.8.3, step 5), so nobody waits for it.

use std::{collections::BTreeSet, sync::Arc};

use domain::template::{Rules, SessionTemplate, Wanted, store_findings};
use tokio::sync::mpsc;

use crate::{lookup::Lookup, shared::Shared};

/// Templates that may wait for a review. More are stored without one, since each may be large.
const MOST_WAITING: usize = 16;

/// A template that was stored, and those of its boot sets that are worth a look.
pub(crate) struct Stored {
    pub(crate) template: SessionTemplate,
    pub(crate) names: BTreeSet<String>,
}

/// The way to the reviews.
pub(crate) fn queue() -> (mpsc::Sender<Stored>, mpsc::Receiver<Stored>) {
    mpsc::channel(MOST_WAITING)
}

/// Reviews what is stored, for ever.
pub(crate) async fn run(
    shared: Shared,
    lookup: Arc<Lookup>,
    mut stored: mpsc::Receiver<Stored>,
) -> anyhow::Result<()> {
    while let Some(Stored { template, names }) = stored.recv().await {
        // The first thing that this service does is to learn the options, and it stores nothing before.
        let Ok(options) = shared.options_seen() else { continue };
        let rules = Rules { options: &options, compatibility: shared.compatibility };
        let boot_sets = template.boot_sets.iter().filter(|(name, _)| names.contains(*name));
        let known = lookup.known(Wanted::by(boot_sets.map(|(_, set)| set)).in_store()).await;
        for finding in store_findings(&template, &names, &known, rules) {
            tracing::warn!(%finding, "a template is stored that may not boot");
        }
    }
    Ok(())
}
