"""The lives of devices, led with the published Python client of Flight Control."""

import time
from datetime import datetime, timezone

from agent import Agent
from flightctl.api.authentication_api import AuthenticationApi
from flightctl.api.device_api import DeviceApi
from flightctl.api.deviceactions_api import DeviceactionsApi
from flightctl.api.enrollmentrequest_api import EnrollmentrequestApi
from flightctl.api.event_api import EventApi
from flightctl.api.fleet_api import FleetApi
from flightctl.api.label_api import LabelApi
from flightctl.api.organization_api import OrganizationApi
from flightctl.api.version_api import VersionApi
from flightctl.api_client import ApiClient
from flightctl.configuration import Configuration
from flightctl.exceptions import ApiException, BadRequestException, ConflictException, NotFoundException
from flightctl.models.device import Device
from flightctl.models.device_decommission import DeviceDecommission
from flightctl.models.device_resume_request import DeviceResumeRequest
from flightctl.models.enrollment_request import EnrollmentRequest
from flightctl.models.enrollment_request_approval import EnrollmentRequestApproval
from flightctl.models.fleet import Fleet
from flightctl.models.patch_request_inner import PatchRequestInner

VERSION = "flightctl.io/v1beta1"

# Seconds in which a change of one part has to reach another.
PATIENCE = 30


def document(name, site="a", image="registry.example/os:1"):
    """A device as a person writes it."""
    return {
        "apiVersion": VERSION,
        "kind": "Device",
        "metadata": {"name": name, "labels": {"site": site}},
        "spec": {"os": {"image": image}},
    }


def reported(name, **changes):
    """A device with a report of its agent."""
    entry = {"status": "Unknown"}
    status = {
        "conditions": [
            {
                "type": "Updating",
                "status": "False",
                "reason": "Updated",
                "message": "",
                "lastTransitionTime": datetime.now(timezone.utc).isoformat(),
            }
        ],
        "systemInfo": {
            "architecture": "arm64",
            "bootID": "b-1",
            "operatingSystem": "linux",
            "agentVersion": "v1.3.0",
            "hostname": name,
        },
        "applications": [
            {
                "name": "till",
                "ready": "1/1",
                "restarts": 0,
                "status": "Running",
                "embedded": False,
                "appType": "compose",
            }
        ],
        "applicationsSummary": {"status": "Healthy"},
        "resources": {"cpu": "Healthy", "memory": "Healthy", "disk": "Healthy"},
        "integrity": {"status": "Unsupported"},
        "config": {"renderedVersion": "1"},
        "os": {"image": "registry.example/os:1", "imageDigest": "sha256:0"},
        "updated": entry,
        "summary": entry,
        "lifecycle": entry,
        **changes,
    }
    return {"apiVersion": VERSION, "kind": "Device", "metadata": {"name": name}, "status": status}


def refused(error, call, *arguments, **others):
    """The refusal of a call that has to be refused in that way."""
    try:
        call(*arguments, **others)
    except error as refusal:
        return refusal
    raise AssertionError(f"{call.__name__} was not refused")


def patch(*operations):
    """A JSON patch."""
    return [PatchRequestInner.from_dict(operation) for operation in operations]


class LibraryLife:
    """Steps with the client, each of which needs those before it."""

    client = "Python client"

    def __init__(self, url, certificate):
        api = ApiClient(Configuration(host=f"{url}/api/v1", access_token="a-token", ssl_ca_cert=certificate))
        self.devices = DeviceApi(api)
        self.actions = DeviceactionsApi(api)
        self.events = EventApi(api)
        self.labels = LabelApi(api)
        self.fleets = FleetApi(api)
        self.requests = EnrollmentrequestApi(api)
        self.about = AuthenticationApi(api), OrganizationApi(api), VersionApi(api)

    def steps(self):
        """The steps in their order."""
        return [
            self.finds_out_about_the_service,
            self.creates_devices,
            self.reads_a_new_device,
            self.selects_devices,
            self.reads_pages,
            self.counts_devices,
            self.replaces_and_patches,
            self.meets_conflicts,
            self.writes_statuses,
            self.polls_what_is_not_rendered,
            self.resumes_nothing,
            self.reads_events,
            self.reads_labels,
            self.leads_a_fleet,
            self.refuses_a_liar,
            self.enrols_an_agent,
            self.forgets_a_deleted_agent,
            self.decommissions,
            self.deletes_everything,
        ]

    def finds_out_about_the_service(self):
        authentication, organizations, version = self.about
        assert refused(ApiException, authentication.auth_config).status == 418
        assert authentication.auth_validate_with_http_info().status_code == 200
        assert len(organizations.list_organizations().items) == 1
        assert version.get_version().version

    def creates_devices(self):
        for name, site in [("d1", "a"), ("d2", "a"), ("d3", "b")]:
            created = self.devices.create_device_with_http_info(Device.from_dict(document(name, site)))
            assert created.status_code == 201
            assert created.data.metadata.resource_version

    def reads_a_new_device(self):
        device = self.devices.get_device("d1")
        status = device.status
        assert status.lifecycle.status == "Unknown" and status.applications == [], status
        assert status.conditions[0].type == "Updating" and status.conditions[0].status == "Unknown"
        assert device.metadata.generation == 1
        assert self.devices.get_device_status("d1").metadata.name == "d1"
        assert self.devices.get_device_last_seen("d1") is None
        refusal = refused(NotFoundException, self.devices.get_device, "nobody")
        assert 'Device of name \\"nobody\\" not found' in refusal.body, refusal.body

    def selects_devices(self):
        def names(**selectors):
            return [device.metadata.name for device in self.devices.list_devices(**selectors).items]

        assert names() == ["d1", "d2", "d3"]
        assert names(label_selector="site=a") == ["d1", "d2"]
        assert names(field_selector="metadata.name in (d1,d3)") == ["d1", "d3"]
        assert names(label_selector="site=a", field_selector="status.summary.status in (Online, Unknown)") == ["d1", "d2"]
        refusal = refused(BadRequestException, self.devices.list_devices, field_selector="spec.nothing=1")
        assert "spec.nothing" in refusal.body and "status.summary.status" in refusal.body, refusal.body

    def reads_pages(self):
        first = self.devices.list_devices(limit=2)
        assert len(first.items) == 2 and first.metadata.remaining_item_count == 1
        last = self.devices.list_devices(limit=2, var_continue=first.metadata.var_continue)
        assert [device.metadata.name for device in last.items] == ["d3"]
        assert last.metadata.var_continue is None and last.metadata.remaining_item_count is None
        refused(BadRequestException, self.devices.list_devices, var_continue="nonsense!")

    def counts_devices(self):
        summary = self.devices.list_devices(summary_only=True).summary
        assert summary.total == 3 and summary.capabilities.os_mode == {"unknown": 3}, summary
        refused(BadRequestException, self.devices.list_devices, summary_only=True, limit=1)

    def replaces_and_patches(self):
        replaced = self.devices.replace_device("d1", Device.from_dict(document("d1", image="registry.example/os:2")))
        assert replaced.metadata.generation == 2 and replaced.spec.os.image.endswith(":2")
        relabel = {"op": "replace", "path": "/metadata/labels/site", "value": "c"}
        assert self.devices.patch_device("d1", patch(relabel)).metadata.labels == {"site": "c"}
        for wrong, field in [
            ({"op": "replace", "path": "/metadata/name", "value": "other"}, "metadata.name"),
            ({"op": "replace", "path": "/spec/nothing/there", "value": 1}, "patch"),
        ]:
            refusal = refused(BadRequestException, self.devices.patch_device, "d1", patch(wrong))
            assert field in refusal.body, refusal.body

    def meets_conflicts(self):
        refused(ConflictException, self.devices.create_device, Device.from_dict(document("d1")))
        old = document("d1")
        old["metadata"]["resourceVersion"] = "1"
        refused(ConflictException, self.devices.replace_device, "d1", Device.from_dict(old))
        refused(BadRequestException, self.devices.replace_device, "d2", Device.from_dict(document("d1")))

    def writes_statuses(self):
        warned = {"cpu": "Warning", "memory": "Healthy", "disk": "Healthy"}
        written = self.devices.replace_device_status("d2", Device.from_dict(reported("d2", resources=warned)))
        assert written.status.resources.cpu == "Warning" and written.status.system_info.boot_id == "b-1"
        change = {"op": "replace", "path": "/status/resources/cpu", "value": "Critical"}
        assert self.devices.patch_device_status("d2", patch(change)).status.resources.cpu == "Critical"
        relabel = {"op": "add", "path": "/metadata/labels/new", "value": "x"}
        refused(BadRequestException, self.devices.patch_device_status, "d2", patch(relabel))
        refused(BadRequestException, self.devices.replace_device_status, "d2", Device.from_dict(document("d2")))

    def polls_what_is_not_rendered(self):
        # Either nothing was rendered yet, or the fleet manager was quicker.
        try:
            device = self.devices.get_rendered_device("d1")
        except ConflictException:
            return
        assert device.metadata.annotations["device-controller/renderedVersion"]

    def resumes_nothing(self):
        answer = self.actions.resume_devices(DeviceResumeRequest(labelSelector="site=a"))
        assert answer.resumed_devices == 0
        refused(BadRequestException, self.actions.resume_devices, DeviceResumeRequest())

    def reads_events(self):
        page = self.events.list_events(field_selector="involvedObject.kind=Device", limit=2)
        assert len(page.items) == 2 and page.metadata.var_continue
        times = [event.metadata.creation_timestamp for event in page.items]
        assert times == sorted(times, reverse=True)
        later = self.events.list_events(limit=2, var_continue=page.metadata.var_continue)
        assert {event.metadata.name for event in later.items}.isdisjoint(event.metadata.name for event in page.items)
        created = self.events.list_events(field_selector="involvedObject.name=d3,reason=ResourceCreated").items
        # Earlier devices of that name have events too.
        assert {event.involved_object.name for event in created} == {"d3"}
        warnings = self.events.list_events(field_selector="type=Warning").items
        assert "DeviceCPUWarning" in {event.reason for event in warnings}

    def reads_labels(self):
        assert self.labels.list_labels(kind="Device") == ["site=a", "site=b", "site=c"]

    def leads_a_fleet(self):
        template = {"spec": {"os": {"image": "registry.example/os:3"}}}
        spec = {"selector": {"matchLabels": {"site": "nowhere"}}, "template": template}
        fleet = {"apiVersion": VERSION, "kind": "Fleet", "metadata": {"name": "f1"}, "spec": spec}
        created = self.fleets.create_fleet_with_http_info(Fleet.from_dict(fleet))
        assert created.status_code == 201 and created.data.metadata.generation == 1
        listed = self.fleets.list_fleets(add_devices_summary=True).items
        assert [one.status.devices_summary.total for one in listed] == [0]
        change = {"op": "replace", "path": "/spec/template/spec/os/image", "value": "registry.example/os:4"}
        assert self.fleets.patch_fleet("f1", patch(change)).metadata.generation == 2
        assert self.fleets.get_fleet("f1").spec.template.spec.os.image.endswith(":4")
        versions = self.fleets.list_template_versions("f1").items
        assert [version.metadata.name for version in versions] == ["v1", "v2"]
        version = self.fleets.get_template_version("f1", "v1")
        assert version.spec.fleet == "f1" and version.metadata.owner == "Fleet/f1"
        for _ in range(2):
            assert self.fleets.delete_fleet_with_http_info("f1").status_code == 200
        refused(NotFoundException, self.fleets.get_fleet, "f1")

    def refuses_a_liar(self):
        liar, other = Agent(), Agent()
        lie = liar.enrolment()
        lie["spec"]["csr"] = other.signing_request()
        refusal = refused(BadRequestException, self.requests.create_enrollment_request, EnrollmentRequest.from_dict(lie))
        assert "metadata.name" in refusal.body, refusal.body
        refused(NotFoundException, self.requests.get_enrollment_request, liar.name)

    def enrols_an_agent(self):
        agent = self.agent = Agent()
        name, request = agent.name, EnrollmentRequest.from_dict(agent.enrolment(site="a", rack="1"))
        created = self.requests.create_enrollment_request_with_http_info(request)
        assert created.status_code == 201 and created.data.status.certificate is None
        refused(ConflictException, self.requests.create_enrollment_request, request)
        assert self.requests.replace_enrollment_request(name, request).metadata.name == name
        waiting = self.requests.list_enrollment_requests(field_selector="status.approval.approved=false").items
        assert [one.metadata.name for one in waiting] == [name]
        refused(NotFoundException, self.devices.get_device, name)

        approval = EnrollmentRequestApproval(approved=True, labels={"rack": "2"})
        approved = self.requests.approve_enrollment_request(name, approval)
        assert approved.approved and approved.labels == {"site": "a", "rack": "2"}, approved
        refused(BadRequestException, self.requests.approve_enrollment_request, name, approval)
        shown = self.requests.get_enrollment_request(name)
        assert agent.is_of(shown.status.certificate) and shown.status.conditions[0].type == "Approved"
        device = self.devices.get_device(name)
        assert device.status.lifecycle.status == "Enrolled" and device.metadata.labels == approved.labels
        assert device.status.integrity.status == "Unsupported" and device.status.capabilities.os_mode == "image"
        refused(ConflictException, self.requests.delete_enrollment_request, name)

    def forgets_a_deleted_agent(self):
        name = self.agent.name
        self.devices.delete_device(name)
        end = time.monotonic() + PATIENCE
        while self.requests.list_enrollment_requests(field_selector=f"metadata.name={name}").items:
            assert time.monotonic() < end, "the request is still there"
            time.sleep(0.1)
        unwanted = Agent()
        self.requests.create_enrollment_request(EnrollmentRequest.from_dict(unwanted.enrolment()))
        assert self.requests.delete_enrollment_request_with_http_info(unwanted.name).status_code == 200
        refused(NotFoundException, self.requests.get_enrollment_request, unwanted.name)

    def decommissions(self):
        end = DeviceDecommission(target="Unenroll")
        ending = self.devices.decommission_device("d3", end)
        assert ending.status.lifecycle.status == "Decommissioning" and not ending.metadata.labels
        refused(ConflictException, self.devices.decommission_device, "d3", end)
        relabel = {"op": "add", "path": "/metadata/labels/new", "value": "x"}
        refused(ConflictException, self.devices.patch_device, "d3", patch(relabel))
        refused(ConflictException, self.devices.patch_device_status, "d3", patch({**relabel, "path": "/status/systemInfo/x"}))
        assert self.devices.replace_device_status("d3", Device.from_dict(reported("d3"))).status.os.image

    def deletes_everything(self):
        for name in ["d1", "d2", "d3"]:
            assert self.devices.delete_device_with_http_info(name).status_code == 200
        assert self.devices.list_devices().items == []
        refused(NotFoundException, self.devices.delete_device, "d1")
