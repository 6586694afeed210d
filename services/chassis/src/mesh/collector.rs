//! Connection to the collector of traces.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::channel::outside_channel;
use crate::{process::traces::SpanCollector, settings::TraceSettings};

/// Deadline of the collector for one batch of spans.
const DEADLINE: Duration = Duration::from_secs(10);

/// Returns the collector of the settings for the process `service`; `None`: there is none. It needs the runtime, and is
/// called with the first spans.
///
/// # Errors
/// Names the setting that cannot be used.
pub(super) fn collector(settings: &TraceSettings, service: String) -> anyhow::Result<Option<SpanCollector>> {
    let TraceSettings { url, ca_file, share } = settings;
    ensure!((0.0..=1.0).contains(share), "traces.share: {share} is not between 0 and 1");
    if url.is_empty() {
        return Ok(None);
    }
    let channel = outside_channel(url, ca_file, DEADLINE).context("traces")?;
    Ok(Some(SpanCollector { channel, url: url.clone(), service, share: *share }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[tokio::test]
    async fn settings_that_cannot_be_used_are_named() {
        let settings = |url: &str, ca_file: &str, share| TraceSettings {
            url: url.to_owned(),
            ca_file: PathBuf::from(ca_file),
            share,
        };
        for (settings, expected) in [
            (settings("", "", 1.5), "traces.share: 1.5 is not between 0 and 1"),
            (settings("collector:4317", "", 1.0), "traces: url: 'collector:4317' is no address"),
            (settings("http://me:secret@c:4317", "", 1.0), "traces: url: has credentials"),
            (settings("http://c:4317", "/ca.pem", 1.0), "traces: ca_file: belongs to an address with https"),
            (settings("https://c:4317", "", 1.0), "traces: ca_file: belongs to an address with https"),
            (settings("https://c:4317", "/nowhere/ca.pem", 1.0), "traces: ca_file: cannot read"),
        ] {
            let error = collector(&settings, String::new()).map(|_| ()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(collector(&settings("", "", 1.0), String::new()).unwrap().is_none());
    }
}
