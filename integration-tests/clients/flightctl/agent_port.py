"""The life of an agent at the port of agents, led with the published Python client of Flight Control."""

import tempfile
from pathlib import Path

from agent import Agent
from flightctl.api.device_api import DeviceApi
from flightctl.api.enrollmentrequest_api import EnrollmentrequestApi
from flightctl.api_client import ApiClient
from flightctl.configuration import Configuration
from flightctl.exceptions import ApiException, ConflictException, ForbiddenException
from flightctl.models.device import Device
from flightctl.models.enrollment_request import EnrollmentRequest
from flightctl.models.enrollment_request_approval import EnrollmentRequestApproval
from library import document, patch, refused, reported

# Annotation with the version of a rendered spec.
RENDERED = "device-controller/renderedVersion"


class AgentPortLife:
    """Steps with the client, each of which needs those before it. A person approves and wishes at another place."""

    client = "Python client with a certificate"

    def __init__(self, url, data, people_url):
        self.url, self.data = url, Path(data)
        trusted = str(self.data / "flightctl-certificate.pem")
        people = ApiClient(Configuration(host=f"{people_url}/api/v1", ssl_ca_cert=trusted))
        self.people = DeviceApi(people), EnrollmentrequestApi(people)
        self.agent, self.other = Agent(), Agent()
        self.files = tempfile.TemporaryDirectory()
        # Known once the agent is enrolled, and has polled.
        self.devices = self.version = None

    def steps(self):
        """The steps in their order."""
        return [
            self.is_nobody_without_a_certificate,
            self.enrols,
            self.reads_its_own_device,
            self.polls_for_its_spec,
            self.reports_its_status,
            self.speaks_for_nobody_else,
            self.is_forgotten_with_its_device,
        ]

    def api(self, certificate=None, key=None):
        """A connection, with a certificate if one is given."""
        trusted = str(self.data / "agents-certificate.pem")
        files = {"cert_file": certificate, "key_file": key}
        return ApiClient(Configuration(host=f"{self.url}/api/v1", ssl_ca_cert=trusted, **files))

    def is_nobody_without_a_certificate(self):
        refusal = refused(ApiException, DeviceApi(self.api()).get_device, self.agent.name)
        assert refusal.status == 401, refusal

    def enrols(self):
        pem = str(self.data / "device-enrolment.pem")
        requests = EnrollmentrequestApi(self.api(pem, pem))
        devices, approvals = self.people
        for agent in [self.agent, self.other]:
            wanted = EnrollmentRequest.from_dict(agent.enrolment(site="shop"))
            assert requests.create_enrollment_request_with_http_info(wanted).status_code == 201
            assert requests.get_enrollment_request(agent.name).status.certificate is None
            approvals.approve_enrollment_request(agent.name, EnrollmentRequestApproval(approved=True, labels={}))
        certificate = requests.get_enrollment_request(self.agent.name).status.certificate
        assert self.agent.is_of(certificate)
        assert devices.get_device(self.agent.name).status.lifecycle.status == "Enrolled"
        paths = Path(self.files.name) / "agent.pem", Path(self.files.name) / "key.pem"
        for path, text in zip(paths, [certificate, self.agent.key_text()]):
            path.write_text(text)
        self.devices = DeviceApi(self.api(*map(str, paths)))

    def reads_its_own_device(self):
        device = self.devices.get_device(self.agent.name)
        assert device.metadata.labels == {"site": "shop"}, device.metadata

    def polls_for_its_spec(self):
        name, people = self.agent.name, self.people[0]
        people.replace_device(name, Device.from_dict(document(name, "shop", "registry.example/os:7")))
        device = self.devices.get_rendered_device(name, known_rendered_version="0")
        assert device.spec.os.image.endswith(":7"), device.spec
        self.version = device.metadata.annotations[RENDERED]

    def reports_its_status(self):
        name = self.agent.name
        config = {"renderedVersion": self.version}
        written = self.devices.replace_device_status(name, Device.from_dict(reported(name, config=config)))
        assert written.status.summary.status == "Online", written.status.summary
        change = {"op": "replace", "path": "/status/resources/disk", "value": "Critical"}
        assert self.devices.patch_device_status(name, patch(change)).status.summary.status == "Error"
        assert self.people[0].get_device_last_seen(name).last_seen
        old = reported(name)
        old["metadata"]["resourceVersion"] = "1"
        refused(ConflictException, self.devices.replace_device_status, name, Device.from_dict(old))

    def speaks_for_nobody_else(self):
        other = self.other.name
        refused(ForbiddenException, self.devices.get_device, other)
        refused(ForbiddenException, self.devices.get_rendered_device, other)
        refused(ForbiddenException, self.devices.replace_device_status, other, Device.from_dict(reported(other)))
        assert refused(ApiException, self.devices.list_devices).status == 404

    def is_forgotten_with_its_device(self):
        for name in [self.agent.name, self.other.name]:
            self.people[0].delete_device(name)
        refusal = refused(ApiException, self.devices.get_device, self.agent.name)
        assert refusal.status == 404 and self.agent.name in refusal.body, refusal
