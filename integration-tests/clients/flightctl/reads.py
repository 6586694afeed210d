#!/usr/bin/env python3
"""Reads devices with an older Python client of Flight Control, which knows fewer members.

    reads.py http://127.0.0.1:7700/flightctl

It is run with the Python of the older client.
"""

import json
import sys
import urllib.request

from flightctl.api.device_api import DeviceApi
from flightctl.api.event_api import EventApi
from flightctl.api.fleet_api import FleetApi
from flightctl.api_client import ApiClient
from flightctl.configuration import Configuration

NAME = "read-by-an-older-client"


def send(url, method, body=None):
    """Sends a request that has to succeed."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30).close()


def main():
    url = f"{sys.argv[1]}/api/v1"
    device = {"apiVersion": "flightctl.io/v1beta1", "kind": "Device", "metadata": {"name": NAME}, "spec": {}}
    send(f"{url}/devices/{NAME}", "PUT", device)
    client = ApiClient(Configuration(host=url, access_token="a-token"))
    devices = DeviceApi(client)
    reads = {
        "list": lambda: devices.list_devices(field_selector=f"metadata.name={NAME}").items[0].metadata.name == NAME,
        "summary": lambda: devices.list_devices(summary_only=True).summary.total > 0,
        "device": lambda: devices.get_device(NAME).status.lifecycle.status == "Unknown",
        "status": lambda: devices.get_device_status(NAME).metadata.name == NAME,
        "last seen": lambda: devices.get_device_last_seen(NAME) is None,
        "events": lambda: EventApi(client).list_events(limit=1).items[0].reason,
        "fleets": lambda: FleetApi(client).list_fleets().items is not None,
    }
    failed = 0
    for name, read in reads.items():
        try:
            is_good = read()
        except Exception as error:
            is_good = False
            print(error)
        failed += not is_good
        print(f"{'ok' if is_good else 'FAILED'} older client: {name}")
    send(f"{url}/devices/{NAME}", "DELETE")
    print(f"{len(reads) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
