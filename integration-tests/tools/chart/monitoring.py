"""Checks monitors, alerts, their runbook and the dashboard against the metrics that the code records."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import yaml

from chart.alerts import ALERTS, unit_tests
from chart.network import ROOT
from chart.objects import name_of, of_kind, part_of
from chart.parts import has_certificate

# Labels that Prometheus itself and its operator put on series.
SCRAPED = {"namespace", "job", "instance", "le", "pod"}


def scrape_problems(objects, values):
    """Each part has a monitor, which selects one Service and speaks as its port does."""
    monitors = {part_of(monitor): monitor["spec"] for monitor in of_kind(objects, "ServiceMonitor")}
    parts = {part_of(deployment) for deployment in of_kind(objects, "Deployment")}
    if monitors.keys() != (parts if values.get("serviceMonitor", {}).get("enabled") else set()):
        yield f"there are monitors of {sorted(monitors)}"
    made = {certificate["spec"]["secretName"] for certificate in of_kind(objects, "Certificate")}
    for part, monitor in monitors.items():
        wanted = monitor["selector"]["matchLabels"].items()
        selected = [item for item in of_kind(objects, "Service") if wanted <= item["metadata"]["labels"].items()]
        if len(selected) != 1:
            yield f"the monitor of {part} selects {[name_of(item) for item in selected]}"
        (endpoint,) = monitor["endpoints"]
        if (endpoint["scheme"] == "https") != has_certificate(part, values):
            yield f"{part} is scraped over {endpoint['scheme']}"
        if endpoint["scheme"] == "https" and endpoint["tlsConfig"]["ca"]["secret"]["name"] not in made:
            yield f"nothing makes the authority of {part}"


def rules_of(objects):
    return [
        rule
        for item in of_kind(objects, "PrometheusRule")
        for group in item["spec"]["groups"]
        for rule in group["rules"]
    ]


def queries_of(objects):
    """Queries of the dashboard, with its variables filled in."""
    boards = [
        json.loads(item["data"]["reveille.json"])
        for item in of_kind(objects, "ConfigMap")
        if "reveille.json" in item["data"]
    ]
    queries = [target["expr"] for board in boards for panel in board["panels"] for target in panel.get("targets", [])]
    return [
        query.replace("$__rate_interval", "5m").replace("$namespace", "fleet").replace("$part", ".+")
        for query in queries
    ]


def metrics():
    """Metrics and labels that the code records."""
    sources = [*ROOT.glob("services/*/src/**/*.rs"), *ROOT.glob("gateway/src/**/*.rs")]
    texts = [text for text in (source.read_text() for source in sources) if "metrics::" in text]
    names = {name for text in texts for name in re.findall(r'"(reveille_[a-z_]+)"', text)}
    labels = {label for text in texts for label in re.findall(r'"([a-z_]+)" =>', text)}
    return names, labels


def metric_problems(objects):
    """Alerts and the dashboard use metrics and labels that there are."""
    names, labels = metrics()
    series = names | {
        f"{name}_{part}" for name in names if name.endswith("_seconds") for part in ("bucket", "sum", "count")
    }
    for query in [rule["expr"] for rule in rules_of(objects)] + queries_of(objects):
        unknown = set(re.findall(r"\breveille_[a-z_]+\b", query)) - series
        selected = {
            label for match in re.findall(r"\{([^}]*)\}", query) for label in re.findall(r"([a-z_]+)(?:=|!)", match)
        }
        grouped = {label for match in re.findall(r"\bby \(([^)]*)\)", query) for label in re.findall(r"[a-z_]+", match)}
        unknown |= (selected | grouped) - labels - SCRAPED
        if unknown:
            yield f"nothing records {sorted(unknown)}: {query}"


def runbook_problems(objects, chart):
    """Each alert has a test, a section of the runbook, and a reference to it."""
    headings = re.findall(r"^## (\w+)$", (chart / "RUNBOOK.md").read_text(), re.MULTILINE)
    alerts = [rule["alert"] for rule in rules_of(objects)]
    if alerts != headings:
        yield f"the runbook has other sections, or in another order: {sorted(set(alerts) ^ set(headings))}"
    if set(alerts) != ALERTS.keys():
        yield f"tests and alerts differ by {sorted(set(alerts) ^ ALERTS.keys())}"
    for rule in rules_of(objects):
        if not rule["annotations"]["runbook_url"].endswith(f"#{rule['alert'].lower()}"):
            yield f"{rule['alert']} refers to {rule['annotations']['runbook_url']}"


def promtool_problems(objects):
    """Prometheus understands alerts and queries, and alerts fire when they should and not otherwise."""
    jobs = [name_of(deployment) for deployment in of_kind(objects, "Deployment")]
    records = [{"record": f"query:{place}", "expr": query} for place, query in enumerate(queries_of(objects))]
    with tempfile.TemporaryDirectory() as folder:
        alerts, queries, tests = (Path(folder, name) for name in ("alerts.yaml", "queries.yaml", "tests.yaml"))
        (rule,) = of_kind(objects, "PrometheusRule")
        alerts.write_text(yaml.safe_dump(rule["spec"]))
        queries.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}))
        tests.write_text(yaml.safe_dump(unit_tests(alerts.name, jobs), sort_keys=False))
        yield from promtool("check", "rules", alerts, queries)
        yield from promtool("test", "rules", tests)


def promtool(*arguments):
    ran = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode != 0:
        yield from (ran.stdout + ran.stderr).splitlines()
