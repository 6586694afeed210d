//! Numbers of devices by their statuses.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// Numbers of devices by their statuses.
#[derive(Debug, Default)]
pub(super) struct DeviceTally {
    /// Devices that run the image and whose spec is no other.
    reached: usize,
    summaries: BTreeMap<String, usize>,
    updates: BTreeMap<String, usize>,
    applications: BTreeMap<String, usize>,
}

impl DeviceTally {
    /// Counts devices, some of which run `image`.
    pub(super) fn of(devices: &[Value], image: &str) -> Self {
        let mut tally = Self::default();
        for device in devices {
            let status = &device["status"];
            let word = |member: &str| status[member]["status"].as_str().unwrap_or_default().to_owned();
            let is_current = word("updated") == "UpToDate" && status["os"]["image"] == image;
            tally.reached += usize::from(is_current);
            *tally.summaries.entry(word("summary")).or_default() += 1;
            *tally.updates.entry(word("updated")).or_default() += 1;
            *tally.applications.entry(word("applicationsSummary")).or_default() += 1;
        }
        tally
    }

    /// Returns whether that many devices run the image.
    pub(super) fn is_reached(&self, count: usize) -> bool {
        self.reached >= count
    }
}

impl fmt::Display for DeviceTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |numbers: &BTreeMap<String, usize>| {
            let words: Vec<_> = numbers.iter().map(|(word, number)| format!("{number} {word}")).collect();
            words.join(", ")
        };
        let [summaries, updates] = [&self.summaries, &self.updates].map(words);
        write!(f, "{summaries} | {updates} | applications: {}", words(&self.applications))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn device(image: &str, summary: &str, updated: &str) -> Value {
        json!({ "status": {
            "os": { "image": image }, "summary": { "status": summary }, "updated": { "status": updated },
            "applicationsSummary": { "status": "Healthy" },
        } })
    }

    #[test]
    fn devices_with_the_earlier_image_have_not_reached_the_next() {
        let devices = [
            device("a:2", "Online", "UpToDate"),
            device("a:1", "Online", "UpToDate"),
            device("a:1", "Rebooting", "Updating"),
        ];
        let tally = DeviceTally::of(&devices, "a:2");
        expect!["2 Online, 1 Rebooting | 2 UpToDate, 1 Updating | applications: 3 Healthy"]
            .assert_eq(&tally.to_string());
        assert!(tally.is_reached(1) && !tally.is_reached(2));
    }
}
