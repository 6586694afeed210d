"""Starts what the chart renders, without a cluster: each container in the root file system of the image, with its
command, variables, user and volumes, on a network where the names of the Services lead to this machine.

Run by `check_chart.py` in namespaces of its own, with which everything that was started ends. Prints what is wrong.

Usage: live.py CHART BINARIES FOLDER VARIANT
"""

import fcntl
import os
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
import helm_python as helm

from chart.authority import Authority
from chart.network import ROOT
from chart.objects import NAMESPACE, container_of, name_of, of_kind, part_of, pod_of, render
from chart.variants import VARIANTS

USER = 65532
# Of Linux: sets the flags of a network interface, such as that it is up.
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
# Far beyond the seconds that a start takes, for machines that are busy.
PATIENCE_SECONDS = 120


class Machine:
    """Stands for the cluster: it has the image, volumes and Secrets, and runs containers."""

    def __init__(self, folder, binaries, objects):
        self.folder, self.binaries, self.objects = folder, binaries, objects
        self.image = folder / "image"
        self.running = {}
        rootfs = ROOT / "services/all-in-one/packaging/rootfs.sh"
        run(rootfs, binaries, self.image, "reveille-insight")
        names = [name_of(service) for service in of_kind(objects, "Service")]
        names += [f"{name}.{NAMESPACE}.svc" for name in names]
        hosts = self.image / "etc/hosts"
        hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        # For what asks from beside the containers.
        bind(hosts, "/etc/hosts")
        authority = Authority()
        for certificate in of_kind(objects, "Certificate"):
            self.write("secrets", certificate["spec"]["secretName"], authority.issue(certificate["spec"]))
        for settings in of_kind(objects, "ConfigMap"):
            self.write("settings", name_of(settings), settings["data"])

    def write(self, kind, name, files):
        folder = self.folder / kind / name
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text)

    def source(self, volume):
        """The folder behind a volume of a pod."""
        if "configMap" in volume:
            return self.folder / "settings" / volume["configMap"]["name"]
        if "secret" in volume:
            return self.folder / "secrets" / volume["secret"]["secretName"]
        folder = self.folder / "claims" / volume["persistentVolumeClaim"]["claimName"]
        folder.mkdir(parents=True)
        os.chown(folder, USER, USER)
        return folder

    def secret(self, reference):
        """The file with a member of a Secret."""
        return self.folder / "secrets" / reference["name"] / reference["key"]

    def start(self, name, pod, container):
        """Starts a container in its own view of the image, which it cannot write."""
        root = self.folder / "containers" / name
        root.mkdir(parents=True)
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        mounts = {
            mount["mountPath"]: self.source(volumes[mount["name"]]) for mount in container.get("volumeMounts", [])
        }
        for path in mounts:
            (self.image / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        bind(self.image, root)
        run("mount", "-o", "remount,bind,ro", root)
        bind(self.binaries, root / "usr/bin")
        for path, source in mounts.items():
            bind(source, root / path.lstrip("/"))
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        command = ["chroot", f"--userspec={USER}:{USER}", root, *container["command"], *container.get("args", [])]
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            return subprocess.Popen(command, env={"PATH": "/usr/bin:/usr/sbin", **variables}, stdout=log, stderr=log)

    def tail(self, name):
        return (self.folder / f"{name}.log").read_text()[-2000:]

    def start_parts(self):
        for deployment in of_kind(self.objects, "Deployment"):
            self.running[name_of(deployment)] = self.start(
                name_of(deployment), pod_of(deployment), container_of(deployment)
            )

    def stop_parts(self):
        """Ends every part as the kubelet does, and tells those that did not end well."""
        for process in self.running.values():
            process.terminate()
        for name, process in self.running.items():
            code = process.wait(timeout=60)
            if code != 0:
                yield f"{name} exits {code}: {self.tail(name)}"


def run(*command):
    subprocess.run(command, check=True)


def bind(source, target):
    run("mount", "--bind", source, target)


def problems(machine):
    bring_up_loopback()
    machine.start_parts()
    until = time.monotonic() + PATIENCE_SECONDS
    for deployment in of_kind(machine.objects, "Deployment"):
        while not is_ready(deployment):
            if time.monotonic() > until or machine.running[name_of(deployment)].poll() is not None:
                yield f"{name_of(deployment)} is not ready: {machine.tail(name_of(deployment))}"
                return
            time.sleep(0.2)
    for pod in of_kind(machine.objects, "Pod"):
        (container,) = pod["spec"]["containers"]
        if machine.start(name_of(pod), pod["spec"], container).wait(timeout=PATIENCE_SECONDS) != 0:
            yield f"helm test fails: {machine.tail(name_of(pod))}"
    for monitor in of_kind(machine.objects, "ServiceMonitor"):
        yield from scrape_problems(machine, monitor)
    yield from machine.stop_parts()


def bring_up_loopback():
    """As `ip link set lo up` does, which not every machine has."""
    request = struct.pack("16sH22x", b"lo", IFF_UP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def is_ready(deployment):
    """Whether a part answers as its probe asks; one that is asked over gRPC tells the same over HTTP."""
    container = container_of(deployment)
    probe = container["readinessProbe"].get("httpGet", {})
    port = container["ports"][0]["containerPort"]
    address = f"{probe.get('scheme', 'HTTP').lower()}://127.0.0.1:{port}/startz"
    try:
        # The kubelet does not look at certificates, and has none.
        with urllib.request.urlopen(address, timeout=5, context=ssl._create_unverified_context()) as answer:
            return answer.status == 200
    except OSError:
        return False


def scrape_problems(machine, monitor):
    """Asks for metrics as Prometheus does."""
    (endpoint,) = monitor["spec"]["endpoints"]
    (deployment,) = (one for one in of_kind(machine.objects, "Deployment") if part_of(one) == part_of(monitor))
    port = container_of(deployment)["ports"][0]["containerPort"]
    tls, context = endpoint.get("tlsConfig"), None
    if tls:
        context = ssl.create_default_context(cafile=machine.secret(tls["ca"]["secret"]))
        if "cert" in tls:
            context.load_cert_chain(machine.secret(tls["cert"]["secret"]), machine.secret(tls["keySecret"]))
    host = tls["serverName"] if tls else "127.0.0.1"
    address = f"{endpoint['scheme']}://{host}:{port}{endpoint['path']}"
    try:
        urllib.request.urlopen(address, timeout=10, context=context).close()
    except OSError as error:
        yield f"{part_of(monitor)} cannot be scraped: {error}"


def main():
    chart_folder, binaries, folder, variant = sys.argv[1:]
    with helm.Chart.load(chart_folder) as chart:
        machine = Machine(Path(folder), Path(binaries).resolve(), render(chart, *VARIANTS[variant]))
    found = list(problems(machine))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
