"""Requests in the very shapes in which other clients of Flight Control send them: its program and its Ansible modules."""

import http.client
import json
import ssl
from urllib.parse import quote, urlsplit

import library
from agent import Agent


class RequestShapes:
    """Steps with plain requests, each of which needs those before it."""

    client = "other clients"

    def __init__(self, url, certificate):
        self.url = urlsplit(url)
        self.context = ssl.create_default_context(cafile=certificate) if self.url.scheme == "https" else None

    def steps(self):
        """The steps in their order."""
        return [
            self.logs_in_as_the_program,
            self.negotiates_the_version,
            self.applies_and_reads_as_the_program,
            self.relabels_as_ansible,
            self.decommissions_as_ansible,
            self.approves_as_ansible,
            self.is_refused_in_form,
            self.deletes_as_the_program,
        ]

    def ask(self, method, path, body=None, **headers):
        """The status, the headers and the JSON of an answer."""
        connect = http.client.HTTPSConnection if self.context else http.client.HTTPConnection
        options = {"context": self.context} if self.context else {}
        connection = connect(self.url.hostname, self.url.port, timeout=30, **options)
        try:
            sent = None if body is None else json.dumps(body)
            if sent is not None:
                headers = {"Content-Type": "application/json", **headers}
            connection.request(method, f"{self.url.path}/api/v1{path}", sent, {"Authorization": "Bearer t", **headers})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, answer.headers, json.loads(text) if text else None
        finally:
            connection.close()

    def as_program(self, method, path, body=None, **headers):
        """An answer to a request as the program sends it."""
        path += ("&" if "?" in path else "?") + "org_id=00000000-0000-0000-0000-000000000000"
        own = {
            "User-Agent": "flightctl-cli/v1.3.0",
            "X-Request-Id": "request-1",
            "Flightctl-API-Version": "v1beta1",
        }
        return self.ask(method, path, body, **own, **headers)

    def logs_in_as_the_program(self):
        statuses = [self.as_program("GET", path)[0] for path in ["/auth/config", "/auth/validate", "/organizations"]]
        assert statuses == [418, 200, 200], statuses
        assert self.as_program("GET", "/organizations")[2]["items"]

    def negotiates_the_version(self):
        for headers, expected in [({}, 200), ({"Flightctl-API-Version": "v1beta1"}, 200), ({"Flightctl-API-Version": "v9"}, 406)]:
            status, answered, body = self.ask("GET", "/version", **headers)
            assert status == expected, (status, body)
            assert answered["Flightctl-API-Version"] == "v1beta1" and answered["Vary"] == "Flightctl-API-Version"
        assert answered["Flightctl-API-Versions-Supported"] == "v1beta1" and body["kind"] == "Status"

    def applies_and_reads_as_the_program(self):
        for expected in [201, 200]:
            status, _, body = self.as_program("PUT", "/devices/c1", library.document("c1"))
            assert status == expected, (status, body)
        assert self.as_program("PUT", "/devices/c2", library.document("c2"))[0] == 201
        selector = quote("metadata.name in (c1,c2)")
        listed = self.as_program("GET", f"/devices?fieldSelector={selector}")[2]
        assert [device["metadata"]["name"] for device in listed["items"]] == ["c1", "c2"]
        summary = self.as_program("GET", "/devices?summaryOnly=true")[2]
        assert summary["summary"]["total"] == 2 and summary["items"] == []
        resume = {"fieldSelector": "metadata.name=c1"}
        assert self.as_program("POST", "/deviceactions/resume", resume)[2] == {"resumedDevices": 0}
        assert self.as_program("GET", "/devices/c1/lastseen")[0] == 204

    def relabels_as_ansible(self):
        assert self.ask("GET", "/devices/c1")[0] == 200
        change = [{"op": "replace", "path": "/metadata/labels/site", "value": "z"}]
        patch = {"Content-Type": "application/json-patch+json"}
        status, _, body = self.ask("PATCH", "/devices/c1", change, **patch)
        assert status == 200 and body["metadata"]["labels"] == {"site": "z"}, body

    def decommissions_as_ansible(self):
        status, _, body = self.ask("PUT", "/devices/c1/decommission", {"target": "Unenroll"})
        assert status == 200 and body["spec"]["decommissioning"] == {"target": "Unenroll"}, body
        assert self.ask("GET", "/devices/c1")[2]["spec"]["decommissioning"]["target"] == "Unenroll"

    def approves_as_ansible(self):
        agent = Agent()
        path = f"/enrollmentrequests/{agent.name}"
        assert self.ask("PUT", path, agent.enrolment(site="a"))[0] == 201
        assert self.ask("GET", path)[0] == 200
        status, _, body = self.ask("PUT", f"{path}/approval", {"replaceLabels": False, "approved": True})
        assert status == 200 and body["labels"] == {"site": "a"}, body
        assert self.as_program("DELETE", f"/devices/{agent.name}")[0] == 200

    def is_refused_in_form(self):
        offline = library.reported("c2", summary={"status": "Offline"})
        for method, path, body, code, words in [
            ("GET", "/devices/c9", None, 404, 'Device of name "c9" not found'),
            ("GET", "/nothing", None, 404, "path"),
            ("PUT", "/devices/c2/status", offline, 400, "status.summary.status"),
            ("PUT", "/devices/c2", {**library.document("c2"), "nothing": 1}, 400, "nothing"),
            ("GET", "/devices?limit=1001", None, 400, "limit"),
            ("GET", "/devices?labelSelector=" + quote("a in"), None, 400, "labelSelector"),
            ("POST", "/deviceactions/resume", {}, 400, "Selector"),
        ]:
            status, headers, answer = self.ask(method, path, body)
            assert status == code == answer["code"] and answer["status"] == "Failure", (path, answer)
            assert words in answer["message"] and headers["Content-Type"] == "application/json", (path, answer)

    def deletes_as_the_program(self):
        for name in ["c1", "c2"]:
            status, _, body = self.as_program("DELETE", f"/devices/{name}")
            assert status == 200 and body["kind"] == "Status" and body["status"] == "Success", body
