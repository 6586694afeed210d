#!/usr/bin/env python3
"""Checks the REST contract with schemathesis: against the gateway's own document of it, or the vendor's.

    check.py http://127.0.0.1:7700
    check.py --cargo-manifest integration-tests/clients/Cargo.toml http://127.0.0.1:7700

csm-rs is generated from the vendor's document and brings it along. The gateway should have a fleet of its own, because
its sessions, components and options will not be the same afterwards. Other options, such as --seed, go to schemathesis.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import questions

HERE = Path(__file__).resolve().parent
LIBRARY = "csm-rs"
DOCUMENT = "src/bos/csm_api_docs.yaml"


def find_document(manifest):
    """The document, where cargo has put the sources of the library."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest]
    metadata = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    packages = json.loads(metadata.stdout)["packages"]
    (library,) = (package for package in packages if package["name"] == LIBRARY)
    return Path(library["manifest_path"]).parent / DOCUMENT


def store_template(gateway):
    """Stores what sessions can be made of."""
    boot_set = {
        "type": "s3",
        "path": "s3://boot-images/contract/manifest.json",
        "rootfs_provider": "sbps",
        "node_roles_groups": ["Compute"],
    }
    request = urllib.request.Request(
        f"{gateway}/v2/sessiontemplates/{questions.TEMPLATE}",
        data=json.dumps({"boot_sets": {"compute": boot_set}}).encode(),
        headers={"Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=10).close()


def ask(document, url, hooks, arguments):
    """Lets schemathesis ask at a URL what the document allows and what not, and gives its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml"]
        command += ["run", document, "--url", url, "--no-color", "--report-json-path", report]
        # It leaves things where it is started, and finds the corrections by the path of modules.
        environment = {**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": hooks}
        subprocess.run([*command, *arguments], cwd=folder, env=environment, check=False)
        return json.loads(report.read_text())


def still_ready(gateway):
    """Whether the gateway and what is behind it have survived the questions."""
    try:
        urllib.request.urlopen(f"{gateway}/readyz", timeout=10).close()
    except OSError as error:
        print(f"the gateway is no longer ready: {error}")
        return False
    return True


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("gateway", help="URL of the gateway")
    arguments.add_argument("--cargo-manifest", help="Cargo.toml of the package with the vendor's document")
    options, others = arguments.parse_known_args()
    store_template(options.gateway)
    if options.cargo_manifest:
        document = find_document(options.cargo_manifest)
        report = ask(document, f"{options.gateway}/apis/bos", "original", others)
    else:
        report = ask(f"{options.gateway}/openapi.json", options.gateway, "own", others)
    failed = {operation for failure in report["failures"] for operation in failure["operations"]}
    operations = report["operations"]
    untested = operations["selected"] - operations["tested"]
    broken = [bool(report["errors"]), not report["complete"], not still_ready(options.gateway)]
    failures = len(failed) + untested + sum(broken)
    print(f"{operations['tested'] - len(failed)} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
