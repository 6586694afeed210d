//! The metrics of a mesh that has booted nodes, against the table of the guide.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use integration_tests::{eventually, mesh::Mesh};
use serde_json::json;

/// Row of the table of the guide, or a family in the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MetricFamily {
    kind: String,
    labels: BTreeSet<String>,
    /// Word of the table for when the family has values.
    appears: String,
}

/// Lines that a boot of eight nodes leaves, of which one cannot be configured.
const LINES: [&str; 9] = [
    "reveille_components{status=\"failed\"} 1",
    "reveille_components{status=\"stable\"} 7",
    "reveille_components{status=\"configuring\"} 0",
    "reveille_sessions{state=\"complete\"} 1",
    "reveille_session_results_total{operation=\"boot\",result=\"partial\"} 1",
    "reveille_component_turns_total{turn=\"failed\",reason=\"configuration_failed\"} 1",
    "reveille_component_turns_total{turn=\"reached\",reason=\"configured\"} 7",
    "reveille_power_actions_total{action=\"powering_on\",outcome=\"succeeded\"} 8",
    "reveille_component_phase_duration_seconds_count{phase=\"power_on\",outcome=\"done\"} 8",
];

/// Labels of Prometheus' own, within a histogram.
const BUCKET: &str = "le";

#[tokio::test(flavor = "multi_thread")]
async fn a_booted_mesh_shows_what_the_guide_lists() {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.faults = "configuration-fails=1".into();
        settings.simulator.results = true;
    })
    .await;
    let bos = &mesh.bos;
    bos.options(&json!({ "default_retry_policy": 1 })).await;
    bos.template("image-1").await;
    let session = bos.session("image-1", "boot").await;
    bos.complete(&session).await;
    // Some of what is counted is on record only after the session has ended.
    let documented = documented();
    let url = format!("{}/metrics", bos.url());
    let shown = async || {
        let text = reqwest::get(&url).await.ok()?.text().await.ok()?;
        lacking(&documented, &text).is_empty().then_some(text)
    };
    let text = eventually(&format!("all of {:?}", lacking(&documented, "")), shown).await;
    for (name, family) in &exposed(&text) {
        let row = documented.get(name).unwrap_or_else(|| panic!("{name} is not in the guide"));
        assert_eq!((&row.kind, &row.labels), (&family.kind, &family.labels), "{name}");
    }
    mesh.stop().await;
}

/// Returns the families that a boot should have given values, and the lines that it should have left, which are not in
/// `text`.
fn lacking(documented: &BTreeMap<String, MetricFamily>, text: &str) -> Vec<String> {
    let exposed = exposed(text);
    let missing =
        documented.iter().filter(|(name, row)| row.appears == "boot" && !exposed.contains_key(*name));
    let lines = LINES.into_iter().filter(|line| !text.lines().any(|shown| shown == *line));
    missing.map(|(name, _)| name.clone()).chain(lines.map(str::to_owned)).collect()
}

#[test]
fn guide_lists_every_metric_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names = BTreeSet::new();
    let services =
        fs::read_dir(root.join("services")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    for folder in services.chain([root.join("gateway/src")]).filter(|folder| folder.is_dir()) {
        collect_names(&folder, &mut names);
    }
    let documented: BTreeSet<_> =
        documented().into_keys().filter(|name| name.starts_with("reveille_")).collect();
    assert_eq!(documented, names);
}

/// Adds the names of metrics in the sources below `folder`.
fn collect_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            collect_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let quoted = text.split('"').skip(1);
            let named = quoted.filter(|word| word.starts_with("reveille_"));
            let plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            names.extend(named.filter(plain).map(str::to_owned));
        }
    }
}

/// Returns the rows of the table in the guide, by name.
fn documented() -> BTreeMap<String, MetricFamily> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services/guides/metrics.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
        // The table of log lines has fewer columns.
        let [name, kind, labels, _unit, appears, _meaning, ""] = cells[..] else { return None };
        let labels = labels.split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| label.trim_matches('`').to_owned()).collect();
        let family = MetricFamily { kind: kind.to_owned(), labels, appears: appears.to_owned() };
        Some((name.trim_end_matches('`').to_owned(), family))
    });
    rows.collect()
}

/// Returns the families in metrics, by name.
fn exposed(text: &str) -> BTreeMap<String, MetricFamily> {
    let mut families = BTreeMap::<String, MetricFamily>::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            let family = MetricFamily { kind: kind.to_owned(), ..MetricFamily::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} is declared twice");
            current = name.to_owned();
        } else if let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let labels = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name);
            let family = families.get_mut(&current).unwrap();
            family.labels.extend(labels.filter(|name| *name != BUCKET).map(str::to_owned));
        }
    }
    families
}
