#!/usr/bin/env python3
"""Lets clients of Kubernetes that others wrote lead hosts through their whole lives: kubectl and the Python library.

    check.py --certificate DATA/kubernetes-certificate.pem --kubectl PATH --kubectl OLDER-PATH https://127.0.0.1:7708

The gateway should have a simulated rack that takes no time, and a fleet of its own: hosts are created and deleted. Each
step counts for itself; a later one runs although an earlier one has failed.
"""

import argparse
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path

import kubectl
import library


def write_kubeconfig(folder, url, certificate):
    """The file by which clients know the gateway, its certificate and a token."""
    cluster = {"server": url, "certificate-authority": str(Path(certificate).resolve())}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "gateway", "cluster": cluster}],
        "users": [{"name": "tester", "user": {"token": "a-token"}}],
        "contexts": [{"name": "test", "context": {"cluster": "gateway", "user": "tester"}}],
        "current-context": "test",
    }
    path = Path(folder, "kubeconfig")
    path.write_text(json.dumps(config))
    return path


def failures_of(client, steps):
    """Runs the steps of a client in their order, and gives the number of those that failed."""
    failures = 0
    for step in steps:
        began = time.monotonic()
        try:
            step()
        except Exception:
            failures += 1
            print(f"FAILED {client}: {step.__name__}")
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"ok {client}: {step.__name__} ({time.monotonic() - began:.1f} s)")
    return failures


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("gateway", help="URL of the port for clients of Kubernetes")
    arguments.add_argument("--certificate", required=True, help="PEM file with the certificate of that port")
    arguments.add_argument("--kubectl", action="append", default=[], help="kubectl to test with; may be repeated")
    options = arguments.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = write_kubeconfig(folder, options.gateway, options.certificate)
        lives = [kubectl.KubectlLife(program, kubeconfig, folder) for program in options.kubectl]
        for life in [*lives, library.LibraryLife(kubeconfig)]:
            steps = life.steps()
            failures = failures_of(life.client, steps)
            passed, failed = passed + len(steps) - failures, failed + failures
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
