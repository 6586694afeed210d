#!/usr/bin/env python3
"""Lets clients of Flight Control that others wrote lead devices through their lives.

    check.py --data DATA --agents https://127.0.0.1:7713 http://127.0.0.1:7700/flightctl https://127.0.0.1:7712

The gateway should have no other devices. Each step counts for itself; a later one runs although an earlier one has
failed.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

import agent_port
import library
import shapes


def failures_of(client, place, steps):
    """Runs the steps of a client in their order, and gives the number of those that failed."""
    failures = 0
    for step in steps:
        began = time.monotonic()
        try:
            step()
        except Exception:
            failures += 1
            print(f"FAILED {client} at {place}: {step.__name__}")
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"ok {client} at {place}: {step.__name__} ({time.monotonic() - began:.1f} s)")
    return failures


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("places", nargs="+", help="URLs under which the contract is served for people")
    arguments.add_argument("--agents", required=True, help="URL of the port of agents")
    arguments.add_argument("--data", required=True, help="folder of the gateway, which has its certificates")
    options = arguments.parse_args()
    certificate = str(Path(options.data) / "flightctl-certificate.pem")
    lives = []
    for place in options.places:
        lives.append((place, library.LibraryLife(place, certificate)))
        lives.append((place, shapes.RequestShapes(place, certificate)))
    lives.append((options.agents, agent_port.AgentPortLife(options.agents, options.data, options.places[0])))
    passed = failed = 0
    for place, life in lives:
        steps = life.steps()
        failures = failures_of(life.client, place, steps)
        passed, failed = passed + len(steps) - failures, failed + failures
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
