"""Checks the Helm chart without a cluster.

Renders the chart the ways people install it, holds every object against the strict schemas of the oldest and the newest
Kubernetes it is for, checks that the objects fit together, that values of a site arrive where they belong, and that
wrong values are refused with a clear message. Asks the built programs whether they take the settings the chart gives
them, and as root starts them as the chart says, in the image and on a network of their own.

Usage: check_chart.py CHART [--binaries FOLDER]
"""

import argparse
import sys
from pathlib import Path

import helm_python as helm
import yaml

from chart import monitoring, network, parts, site_values, values_table
from chart.objects import render
from chart.programs import can_start, settings_problems, start_problems
from chart.refused import REFUSED
from chart.schemas import VERSIONS, schema_problems
from chart.variants import STARTED, VARIANTS, parts_of


class Results:
    """Counts checks and prints each as it ends."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, problems):
        """Records one check; `problems` are the findings, none when it passed."""
        problems = list(problems)
        if problems:
            self.failed += 1
            print(f"FAILED  {what}")
            for problem in problems:
                print(f"          {problem}")
        else:
            self.passed += 1
            print(f"ok      {what}")


def refusal_problems(chart, values, wanted):
    try:
        render(chart, "reveille", values)
    except (helm.HelmValuesError, helm.HelmRenderError) as error:
        if wanted not in str(error):
            yield f"the message lacks {wanted!r}: {error}"
        return
    yield "was rendered"


def check_variant(results, chart, name, release, values, binaries):
    objects = render(chart, release, values)
    wanted = parts_of(values)
    for version in VERSIONS:
        results.check(f"{name}: {len(objects)} objects fit Kubernetes {version}", schema_problems(objects, version))
    results.check(f"{name}: names are unique and short enough", parts.name_problems(objects))
    results.check(f"{name}: {len(wanted)} parts, each behind its service", parts.part_problems(objects, wanted))
    results.check(f"{name}: several replicas stay available", parts.replica_problems(objects))
    results.check(f"{name}: pods are probed, bounded, unprivileged", parts.pod_problems(objects))
    results.check(f"{name}: probes are encrypted as the ports", parts.probe_problems(objects, values))
    results.check(f"{name}: addresses meet", parts.address_problems(objects, values))
    results.check(f"{name}: one database each", parts.database_problems(objects, values))
    results.check(f"{name}: SQLite files on volumes", parts.file_problems(objects, values))
    results.check(f"{name}: keys and certificates where they belong", parts.own_secret_problems(objects, values))
    results.check(f"{name}: certificates by cert-manager", parts.certificate_problems(objects, values))
    results.check(f"{name}: calls pass the network", network.network_problems(objects, values))
    results.check(f"{name}: ways from outside", network.route_problems(objects))
    results.check(f"{name}: kinds of hosts", parts.definition_problems(objects, values))
    results.check(f"{name}: metrics are scraped", monitoring.scrape_problems(objects, values))
    if binaries:
        results.check(f"{name}: the programs take their settings", settings_problems(objects, binaries))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("chart", type=Path)
    arguments.add_argument("--binaries", type=Path, help="folder with the built programs; without: they are not asked")
    options = arguments.parse_args()
    results = Results()
    findings = helm.lint(str(options.chart))
    results.check("the chart has no lint errors", map(str, findings["errors"]))
    with helm.Chart.load(str(options.chart)) as chart:
        for name, (release, values) in VARIANTS.items():
            check_variant(results, chart, name, release, values, options.binaries)
        for example in sorted(options.chart.glob("examples/*.yaml")):
            values = yaml.safe_load(example.read_text())
            check_variant(results, chart, f"example {example.stem}", "reveille", values, options.binaries)
        for name in STARTED if options.binaries else ():
            if can_start():
                results.check(f"{name}: the mesh starts", start_problems(options.chart, options.binaries, name))
            else:
                print(f"skipped {name}: the mesh starts, which needs root and namespaces")
        results.check("README.md has the values", values_table.table_problems(options.chart))
        watched = render(chart, *VARIANTS["watched"])
        results.check("alerts and dashboard use metrics that there are", monitoring.metric_problems(watched))
        results.check("each alert has its section in the runbook", monitoring.runbook_problems(watched, options.chart))
        results.check("alerts fire when they should", monitoring.promtool_problems(watched))
        for name, problems in site_values.rows(chart):
            results.check(f"arrives: {name}", problems)
        for name, (values, wanted) in REFUSED.items():
            results.check(f"refused: {name}", refusal_problems(chart, values, wanted))
    print(f"{results.passed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
