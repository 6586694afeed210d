"""The life of a host, led with kubectl."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import hosts

# Far above what a command takes.
LIMIT = 30
# The first minor version that waits for values at paths, reads events of an object, and asks who it is.
MODERN = 28


class KubectlLife:
    """Steps with one program, in a namespace of their own."""

    def __init__(self, program, kubeconfig, folder):
        self.program = program
        self.folder = Path(folder)
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}
        version = json.loads(self.run("version", "--client", "-o", "json"))["clientVersion"]
        self.minor = int(re.match(r"\d+", version["minor"]).group())
        self.client = f"kubectl 1.{self.minor}"
        self.namespace = f"with-kubectl-{self.minor}"
        self.number = self.minor

    def steps(self):
        """The steps in their order."""
        modern = [self.asks_about_itself, self.reads_events_of_a_host]
        return [
            self.discovers_kinds,
            self.explains_fields,
            self.creates_a_namespace_and_a_secret,
            self.applies_a_host,
            self.waits_until_it_is_available,
            self.lists_tables,
            self.selects,
            self.watches,
            self.describes_a_host_with_its_events,
            self.reads_one_event,
            self.finds_a_quiet_namespace_quiet,
            *(modern if self.minor >= MODERN else []),
            self.labels_and_annotates,
            self.patches,
            self.edits,
            self.applies_a_change_and_shows_differences,
            self.applies_on_the_server,
            self.replaces,
            self.is_refused_with_every_cause,
            self.tries_without_effect,
            self.provisions_and_deprovisions,
            self.shows_no_value_of_a_secret,
            self.deletes_dependents_with_their_owner,
            self.deletes_everything,
            self.deletes_a_namespace_with_its_content,
        ]

    def run(self, *arguments, gives=0, text=None, editor=None):
        """Runs a command, and gives all of its output."""
        environment = {**self.environment, "EDITOR": editor} if editor else self.environment
        done = subprocess.run(
            [self.program, *arguments],
            input=text,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        command = f"kubectl {' '.join(arguments)}"
        assert done.returncode == gives, f"{command}: exit code {done.returncode}: {done.stdout}"
        return done.stdout

    def on(self, *arguments, **options):
        """Runs a command in the namespace."""
        return self.run("-n", self.namespace, *arguments, **options)

    def host(self, **spec):
        """The host, as text of a manifest."""
        return json.dumps(hosts.host("node", "login", self.number, **spec))

    def read(self, path):
        """A value of the host."""
        return self.on("get", "bmh", "node", "-o", f"jsonpath={{{path}}}")

    def wait_for(self, condition, path, value):
        """Waits for a value, or where the program cannot for a condition."""
        wanted = f"jsonpath={{{path}}}={value}" if self.minor >= MODERN else f"condition={condition}"
        found = self.on("wait", f"--for={wanted}", "bmh/node", f"--timeout={LIMIT - 5}s")
        contains(found, "condition met")

    def wait_until_gone(self, kind, name):
        """Waits until there is no such object."""
        end = time.monotonic() + LIMIT
        while self.on("get", kind, name, "--ignore-not-found"):
            assert time.monotonic() < end, f"{kind} {name} is still there"
            time.sleep(0.05)

    def discovers_kinds(self):
        contains(self.run("version"), "reveille")
        contains(self.run("api-resources"), "bmh,bmhost", "HardwareData", "hfs")
        contains(self.run("api-versions"), hosts.GROUP)
        contains(self.run("cluster-info"), "is running at")
        contains(self.run("auth", "can-i", "delete", "bmh"), "yes")

    def asks_about_itself(self):
        contains(self.run("auth", "whoami"), "Username")

    def explains_fields(self):
        contains(self.run("explain", "bmh"), "BareMetalHost", "spec")
        contains(self.run("explain", "bmh.spec.image.checksumType"), "Algorithm of the checksum")
        contains(self.run("explain", "hfs.metadata"), "finalizers")

    def creates_a_namespace_and_a_secret(self):
        contains(self.run("create", "namespace", self.namespace), "created")
        values = ["--from-literal=username=admin", "--from-literal=password=password"]
        contains(self.on("create", "secret", "generic", "login", *values), "secret/login created")
        contains(self.run("get", "ns", self.namespace), "Active")

    def applies_a_host(self):
        contains(self.on("apply", "-f", "-", text=self.host()), "baremetalhost.metal3.io/node created")
        contains(self.on("apply", "-f", "-", text=self.host()), "baremetalhost.metal3.io/node unchanged")

    def waits_until_it_is_available(self):
        self.wait_for("AvailableForProvisioning", ".status.provisioning.state", "available")
        contains(self.read(".status.operationHistory.inspect.end"), "T")
        contains(self.read(".status.hardware.cpu.arch"), "x86_64")

    def lists_tables(self):
        table = self.run("get", "bmh", "-A")
        assert re.search(r"NAMESPACE +NAME +STATE +CONSUMER +ONLINE +ERROR +AGE", table), table
        assert re.search(rf"{self.namespace} +node +available +true", table), table
        assert re.search(r"NAME +STATUS +STATE +CONSUMER +BMC ", self.on("get", "bmh", "-o", "wide"))
        for kinds in ["hardwaredata", "hfs,hfc"]:
            contains(self.on("get", kinds), "node")
        contains(self.on("get", "metal3", "-o", "name"), "baremetalhost.metal3.io/node", "hardwaredata.metal3.io/node")

    def selects(self):
        fields = [f"--field-selector=metadata.name=node,metadata.namespace={self.namespace}"]
        for selector in [["-l", "rack in (r1,r2)"], fields, ["-l", "!absent"]]:
            contains(self.run("get", "bmh", "-A", "-o", "name", *selector), "baremetalhost.metal3.io/node")
        contains(self.on("get", "bmh", "-l", "rack=r9"), "No resources found")
        contains(self.on("get", "bmh", "--field-selector=spec.online=true", gives=1), "field label not supported")

    def watches(self):
        path = self.folder / f"{self.namespace}.watch"
        command = [self.program, "-n", self.namespace, "get", "bmh", "-w", "-L", "watched"]
        with path.open("w") as output:
            watch = subprocess.Popen(command, env=self.environment, stdout=output, stderr=subprocess.STDOUT)
            try:
                until(lambda: "node" in path.read_text(), path)
                self.on("label", "bmh", "node", "watched=yes")
                until(lambda: re.search(r"node .* yes$", path.read_text(), re.MULTILINE), path)
            finally:
                watch.terminate()
                watch.wait(LIMIT)

    def describes_a_host_with_its_events(self):
        text = self.on("describe", "bmh", "node")
        contains(text, "Operational Status:  OK", "Hardware Profile", "AvailableForProvisioning")
        events = text.split("Events:")[1]
        contains(events, "StateChanged", "InspectionComplete")
        contains(self.on("get", "events"), "baremetalhost/node", "Registered")

    def reads_events_of_a_host(self):
        contains(self.on("events", "--for", "bmh/node"), "Registered")

    def reads_one_event(self):
        name = self.on("get", "events", "-o", "name").split()[0].removeprefix("event/")
        contains(self.on("get", "event", name), "baremetalhost/node")
        contains(self.on("get", "event", name, "-o", "yaml"), f"name: {name}", "kind: Event")
        contains(self.on("get", "event", "absent", gives=1), '"absent" not found')
        fields = "involvedObject.kind=BareMetalHost,involvedObject.name=node,reason=Registered,type=Normal"
        contains(self.run("get", "events", "-A", f"--field-selector={fields}"), "Registered")

    def finds_a_quiet_namespace_quiet(self):
        quiet = f"{self.namespace}-quiet"
        self.run("create", "namespace", quiet)
        for kind in ["events", "bmh", "secrets"]:
            contains(self.run("-n", quiet, "get", kind), "No resources found")
        active = self.run("get", "ns", "--field-selector=status.phase=Active", "-o", "name")
        contains(active, f"namespace/{quiet}")
        self.run("delete", "namespace", quiet, f"--timeout={LIMIT - 5}s")

    def labels_and_annotates(self):
        contains(self.on("label", "bmh", "node", "rack=r2", "--overwrite"), "labeled")
        contains(self.on("annotate", "bmh", "--all", "note=a note"), "annotated")
        assert self.read(".metadata.labels.rack") == "r2"
        assert self.read(".metadata.annotations.note") == "a note"
        self.on("annotate", "bmh", "node", "note-")
        assert self.read(".metadata.annotations.note") == ""
        refused = self.on("label", "bmh", "node", "rack=r3", "--overwrite", "--resource-version=1", gives=1)
        contains(refused, "the object has been modified")

    def patches(self):
        contains(self.on("patch", "bmh", "node", "--type=merge", "-p", '{"spec":{"description":"one"}}'), "patched")
        json_patch = '[{"op":"replace","path":"/spec/description","value":"two"}]'
        contains(self.on("patch", "bmh", "node", "--type=json", "-p", json_patch), "patched")
        assert self.read(".spec.description") == "two"
        refused = self.on("patch", "bmh", "node", "-p", '{"spec":{"description":"three"}}', gives=1)
        contains(refused, "strategic-merge-patch+json")

    def edits(self):
        edited = self.on("edit", "bmh", "node", editor="sed -i s/description:.*/description:\\ edited/")
        contains(edited, "edited")
        assert self.read(".spec.description") == "edited"

    def applies_a_change_and_shows_differences(self):
        changed = self.host(description="applied")
        contains(self.on("diff", "-f", "-", text=changed, gives=1), "+  description: applied")
        contains(self.on("apply", "-f", "-", text=changed), "configured")
        assert self.read(".spec.description") == "applied"
        self.on("diff", "-f", "-", text=changed)
        self.on("apply", "-f", "-", text=self.host())
        assert self.read(".spec.description") == ""

    def applies_on_the_server(self):
        command = ["apply", "--server-side", "--field-manager=other", "-f", "-"]
        refused = self.on(*command, text=self.host(online=False), gives=1)
        contains(refused, "conflict", "kubectl-client-side-apply", ".spec.online")
        contains(self.on(*command, text=self.host(description="served")), "serverside-applied")
        assert self.read(".spec.description") == "served"
        self.on(*command, text=self.host())
        assert self.read(".spec.description") == ""
        contains(self.on("apply", "--server-side", "--force-conflicts", "-f", "-", text=self.host()), "applied")

    def replaces(self):
        present = json.loads(self.on("get", "bmh", "node", "-o", "json"))
        present["spec"]["description"] = "replaced"
        contains(self.on("replace", "-f", "-", text=json.dumps(present)), "replaced")
        contains(self.on("replace", "-f", "-", text=json.dumps(present), gives=1), "the object has been modified")

    def is_refused_with_every_cause(self):
        wrong = {"image": {"url": "file:///os"}, "rootDeviceHints": {"deviceName": "sda"}}
        refused = self.on("patch", "bmh", "node", "--type=merge", "-p", json.dumps({"spec": wrong}), gives=1)
        contains(refused, "is invalid", "spec.image.url", "spec.rootDeviceHints.deviceName")
        address = '{"spec":{"bmc":{"address":"redfish://10.9.9.9/1"}}}'
        contains(self.on("patch", "bmh", "node", "--type=merge", "-p", address, gives=1), "spec.bmc.address")
        contains(self.on("get", "bmh", "absent", gives=1), '"absent" not found')
        contains(self.on("create", "-f", "-", text=self.host(), gives=1), "already exists")

    def tries_without_effect(self):
        absent = json.dumps(hosts.host("absent", "login", 99))
        contains(self.on("create", "--dry-run=server", "-f", "-", text=absent), "created (server dry run)")
        contains(self.on("delete", "bmh", "node", "--dry-run=server"), "deleted", "(server dry run)")
        assert self.on("get", "bmh", "-o", "name").split() == ["baremetalhost.metal3.io/node"]

    def provisions_and_deprovisions(self):
        patch = json.dumps({"spec": {"image": hosts.IMAGE}})
        self.on("patch", "bmh", "node", "--type=merge", "-p", patch)
        self.wait_for("Provisioned", ".status.provisioning.state", "provisioned")
        assert self.read(".status.provisioning.image.url") == hosts.IMAGE["url"]
        self.on("patch", "bmh", "node", "--type=merge", "-p", '{"spec":{"image":null}}')
        self.wait_for("AvailableForProvisioning", ".status.provisioning.state", "available")

    def shows_no_value_of_a_secret(self):
        text = self.on("get", "secret", "login", "-o", "yaml")
        contains(text, "password: \"\"", "username: \"\"")
        contains(self.on("describe", "secret", "login"), "password:  0 bytes")

    def deletes_dependents_with_their_owner(self):
        for cascade, is_kept in {"background": False, "foreground": False, "orphan": True}.items():
            self.on("create", "secret", "generic", "owner")
            uid = self.on("get", "secret", "owner", "-o", "jsonpath={.metadata.uid}")
            reference = {"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
            metadata = {"name": "dependent", "ownerReferences": [reference]}
            dependent = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
            self.on("create", "-f", "-", text=json.dumps(dependent))
            self.on("delete", "secret", "owner", f"--cascade={cascade}", f"--timeout={LIMIT - 5}s")
            if is_kept:
                owners = self.on("get", "secret", "dependent", "-o", "jsonpath={.metadata.ownerReferences}")
                assert owners == "", owners
                self.on("delete", "secret", "dependent")
            else:
                self.wait_until_gone("secret", "dependent")

    def deletes_a_namespace_with_its_content(self):
        self.creates_a_namespace_and_a_secret()
        self.on("apply", "-f", "-", text=self.host())
        self.waits_until_it_is_available()
        contains(self.run("delete", "namespace", self.namespace, f"--timeout={LIMIT - 5}s"), "deleted")
        for kind in ["bmh", "secrets", "hardwaredata,hfs,hfc"]:
            contains(self.on("get", kind), "No resources found")

    def deletes_everything(self):
        contains(self.on("delete", "bmh", "node", f"--timeout={LIMIT - 5}s"), "deleted")
        contains(self.on("get", "bmh"), "No resources found")
        contains(self.on("delete", "secret", "login"), "deleted")
        contains(self.run("delete", "namespace", self.namespace, f"--timeout={LIMIT - 5}s"), "deleted")
        contains(self.run("get", "namespace", self.namespace, gives=1), "not found")


def contains(text, *parts):
    """Fails unless a text has each of the parts in it."""
    for part in parts:
        assert part in text, f"no {part!r} in: {text}"


def until(is_done, path):
    """Waits for something to be seen in a file."""
    end = time.monotonic() + LIMIT
    while not is_done():
        assert time.monotonic() < end, f"not seen: {path.read_text()}"
        time.sleep(0.05)
