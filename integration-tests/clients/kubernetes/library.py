"""The life of a host, led with the Python library of Kubernetes: its typed and its dynamic client."""

import time

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

import hosts

NAMESPACE = "with-python"
# Far above what the rack takes.
LIMIT = 30
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class LibraryLife:
    """Steps with the library, in a namespace of their own."""

    client = "Python library"

    def __init__(self, kubeconfig):
        api = config.new_client_from_config(str(kubeconfig))
        self.core = client.CoreV1Api(api)
        self.custom = client.CustomObjectsApi(api)
        self.dynamic = DynamicClient(api)
        self.hosts = None

    def steps(self):
        """The steps in their order."""
        return [
            self.creates_typed_objects,
            self.discovers_hosts,
            self.creates_a_host,
            self.watches_until_it_is_available,
            self.reads_pages,
            self.continues_a_watch,
            self.is_told_of_a_version_that_is_too_old,
            self.patches,
            self.applies_on_the_server,
            self.meets_conflicts,
            self.provisions,
            self.reads_events,
            self.deletes_everything,
        ]

    def creates_typed_objects(self):
        metadata = client.V1ObjectMeta(name=NAMESPACE)
        self.core.create_namespace(client.V1Namespace(metadata=metadata))
        values = {"username": "admin", "password": "password"}
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="login"), string_data=values)
        self.core.create_namespaced_secret(NAMESPACE, secret)
        stored = self.core.read_namespaced_secret("login", NAMESPACE)
        assert stored.data == {"username": "", "password": ""}, stored.data

    def discovers_hosts(self):
        self.hosts = self.dynamic.resources.get(api_version=hosts.GROUP, kind="BareMetalHost")
        assert self.hosts.namespaced and self.hosts.subresources["status"]

    def creates_a_host(self):
        created = self.hosts.create(body=hosts.host("node", "login", 201), namespace=NAMESPACE)
        assert created.metadata.uid and created.metadata.generation == 1, created

    def watches_until_it_is_available(self):
        states = self.states_until("available")
        assert states, "no state was seen"

    def states_until(self, wanted):
        """The states that a watch shows until the wanted one."""
        states = []
        stream = self.hosts.watch(namespace=NAMESPACE, name="node", timeout=LIMIT)
        for event in stream:
            host = event["object"]
            state = (host.status or {}).get("provisioning", {}).get("state")
            states.append(state)
            if state == wanted:
                return states
        raise AssertionError(f"only {states}")

    def reads_pages(self):
        for n in range(5):
            unmanaged = {"apiVersion": hosts.GROUP, "kind": "BareMetalHost", "metadata": {"name": f"page-{n}"}}
            self.hosts.create(body={**unmanaged, "spec": {"online": False}}, namespace=NAMESPACE)
        names, token, versions = [], None, set()
        while token != "":
            page = self.custom.list_namespaced_custom_object(*self.collection(), limit=2, _continue=token)
            names += [item["metadata"]["name"] for item in page["items"]]
            versions.add(page["metadata"]["resourceVersion"])
            token = page["metadata"].get("continue", "")
        assert names == ["node", *(f"page-{n}" for n in range(5))], names
        assert len(versions) == 1, versions
        self.custom.delete_collection_namespaced_custom_object(*self.collection(), field_selector="metadata.name!=node")
        self.wait_for_absence([f"page-{n}" for n in range(5)])

    def collection(self):
        """The place of the hosts for the client of custom objects."""
        group, version = hosts.GROUP.split("/")
        return group, version, NAMESPACE, "baremetalhosts"

    def wait_for_absence(self, names):
        """Waits until hosts are gone."""
        end = time.monotonic() + LIMIT
        while True:
            present = {host.metadata.name for host in self.hosts.get(namespace=NAMESPACE).items}
            if present.isdisjoint(names):
                return
            assert time.monotonic() < end, present
            time.sleep(0.1)

    def continues_a_watch(self):
        version = self.hosts.get(namespace=NAMESPACE).metadata.resourceVersion
        for n in range(3):
            self.merge({"metadata": {"labels": {"step": str(n)}}})
        stream = self.hosts.watch(namespace=NAMESPACE, resource_version=version, timeout=2)
        seen = [(event["object"].metadata.labels or {}).get("step") for event in stream]
        # The status may change before, between and after the patches.
        steps = [step for step in dict.fromkeys(seen) if step is not None]
        assert steps == ["0", "1", "2"], seen

    def is_told_of_a_version_that_is_too_old(self):
        listing = self.custom.list_namespaced_custom_object
        stream = watch.Watch().stream(listing, *self.collection(), resource_version="1", timeout_seconds=5)
        try:
            events = list(stream)
        except ApiException as error:
            assert error.status == 410, error
        else:
            raise AssertionError(f"watched from a version before all: {events}")

    def merge(self, patch):
        """Merges a patch into the host."""
        return self.hosts.patch(body=patch, name="node", namespace=NAMESPACE, content_type=MERGE)

    def patches(self):
        assert self.merge({"spec": {"description": "one"}}).spec.description == "one"
        assert self.merge({"spec": {"description": None}}).spec.description is None
        # The library sends lists in this form too, which is none of a merge.
        expect(ApiException, 400, lambda: self.merge([{"op": "add", "path": "/spec/description", "value": "two"}]))

    def applies_on_the_server(self):
        wish = {"apiVersion": hosts.GROUP, "kind": "BareMetalHost", "metadata": {"name": "node"}}
        described = {**wish, "spec": {"description": "applied"}}
        place = {"name": "node", "namespace": NAMESPACE}
        applied = self.dynamic.server_side_apply(self.hosts, body=described, field_manager="python", **place)
        assert applied.spec.description == "applied"
        other = {**wish, "spec": {"description": "other"}}
        apply = self.dynamic.server_side_apply
        expect(ConflictError, 409, lambda: apply(self.hosts, body=other, field_manager="another", **place))
        applied = apply(self.hosts, body=other, field_manager="another", force_conflicts=True, **place)
        assert applied.spec.description == "other"
        assert apply(self.hosts, body=wish, field_manager="another", **place).spec.description is None

    def meets_conflicts(self):
        old = self.hosts.get(name="node", namespace=NAMESPACE).to_dict()
        self.merge({"metadata": {"labels": {"step": "newer"}}})
        old["spec"]["description"] = "older"
        expect(ConflictError, 409, lambda: self.hosts.replace(body=old, namespace=NAMESPACE))
        twice = hosts.host("node", "login", 201)
        expect(ConflictError, 409, lambda: self.hosts.create(body=twice, namespace=NAMESPACE))
        expect(NotFoundError, 404, lambda: self.hosts.get(name="absent", namespace=NAMESPACE))
        wrong = {"spec": {"image": {"url": "file:///os"}}}
        expect(UnprocessibleEntityError, 422, lambda: self.merge(wrong))

    def provisions(self):
        self.merge({"spec": {"image": hosts.IMAGE}})
        self.states_until("provisioned")

    def reads_events(self):
        events = self.core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=node")
        reasons = {event.reason for event in events.items}
        assert {"Registered", "ProvisioningComplete"} <= reasons, reasons

    def deletes_everything(self):
        self.hosts.delete(name="node", namespace=NAMESPACE)
        self.wait_for_absence(["node"])
        self.core.delete_namespaced_secret("login", NAMESPACE)
        self.core.delete_namespace(NAMESPACE)
        end = time.monotonic() + LIMIT
        while NAMESPACE in [namespace.metadata.name for namespace in self.core.list_namespace().items]:
            assert time.monotonic() < end, "the namespace stays"
            time.sleep(0.1)


def expect(kind, code, call):
    """Fails unless a call is refused with that code."""
    try:
        answer = call()
    except kind as error:
        assert error.status == code, error
    else:
        raise AssertionError(f"not refused: {answer}")
