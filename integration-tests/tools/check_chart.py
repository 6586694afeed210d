"""Checks the Helm chart without a cluster.

Renders the chart the ways people install it, holds every object against the strict schemas of the oldest and the newest
Kubernetes it is for, checks that the objects fit together, asks the built programs whether they take the settings
the chart gives them, and checks that wrong values are refused.

Usage: check_chart.py CHART [--binaries FOLDER]
"""

import argparse
import copy
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import helm_python as helm
import kubernetes_validate
import yaml

KUBERNETES = ("1.27", kubernetes_validate.latest_version())
NAMESPACE = "fleet"

PARTS = {
    "component-registry",
    "session-manager",
    "status-evaluator",
    "power-controller",
    "config-coordinator",
    "host-provisioner",
    "fleet-manager",
    "insight",
    "gateway",
}
OWNERS = {
    "component-registry",
    "session-manager",
    "power-controller",
    "config-coordinator",
    "host-provisioner",
    "fleet-manager",
}
SERVICES = OWNERS | {"status-evaluator", "insight"}

# name -> (release, values, parts that must run)
VARIANTS = {
    "defaults": ("reveille", {}, PARTS | {"simulator"}),
    "existing secrets and own resources": (
        "blue",
        {
            "image": {"repository": "registry.local/fleet/reveille", "tag": "1.2.3"},
            "imagePullSecrets": [{"name": "pull"}],
            "settings": {
                "shutdown_grace_seconds": 60,
                "log": {"filter": "debug"},
                "compat": {"strict_bos": True},
                "sessions": {"complete_applied": True},
                "gateway": {"connections": 100, "patience_seconds": 10},
            },
            "databases": {name: {"existingSecret": f"postgres.{name}"} for name in OWNERS},
            "services": {"component-registry": {"resources": {"requests": {"cpu": 2, "memory": "2Gi"}}}},
            "gateway": {"port": 8080, "replicas": 3, "serviceType": "LoadBalancer"},
            "simulator": {"enabled": False},
        },
        PARTS,
    ),
    "a site with services of its own": (
        "csm",
        {
            "profile": "csm",
            "secrets": [{"name": "power-credentials"}],
            "settings": {
                "inventory": {
                    "hsm": {"url": "https://api.example/apis/smd/hsm/v2", "plain_http": False},
                    "notifications": {"subscribe": True, "webhook_url": "https://reveille.example/scn"},
                },
                "power": {
                    "follow_seconds": 2,
                    "pcs": {"credentials": "file:/etc/reveille-secrets/power-credentials/token.toml"},
                },
            },
            "simulator": {"enabled": False},
        },
        PARTS,
    ),
    "replicas": (
        "three",
        {
            "databases": {name: {"existingSecret": f"postgres.{name}"} for name in OWNERS | {"status-evaluator"}},
            "services": {name: {"replicas": 3} for name in SERVICES},
            "gateway": {"replicas": 2},
            "simulator": {"enabled": False},
        },
        PARTS,
    ),
    "hosts with logins and a port for kubectl": (
        "metal",
        {
            "profile": "redfish",
            "settings": {"hosts": {"slots": 5}, "host_operations": {"driver": "redfish", "redfish": {"verify_tls": False}}},
            "hostSecretKeys": {"existingSecret": "host-keys", "keys": ["new", "old"]},
            "deviceAuthority": {"existingSecret": "device-authority"},
            "gateway": {"kubernetes": {"listen": True, "certificateSecret": "gateway-tls"}},
            "simulator": {"enabled": False},
        },
        PARTS,
    ),
    "certificates between the parts": (
        "mutual",
        {"tls": {"enabled": True, "callers": "spiffe://site/ns/fleet/*"}},
        PARTS | {"simulator"},
    ),
    "certificates everywhere": (
        "reveille",
        {
            "tls": {"enabled": True, "gatewaySecret": "gateway-public", "insecure": False},
            "hostSecretKeys": {"existingSecret": "host-keys", "keys": ["new"]},
            "gateway": {"kubernetes": {"listen": True, "certificateSecret": "gateway-tls"}},
            "simulator": {"enabled": False},
        },
        PARTS,
    ),
    "definitions of hosts": ("reveille", {"customResourceDefinitions": {"create": True}}, PARTS | {"simulator"}),
    "database addresses in the values": (
        "a-release-name-that-is-as-long-as-helm-lets-it-be-000",
        {"databases": {name: {"url": f"postgres://reveille:secret@postgres/{name}"} for name in OWNERS}},
        PARTS | {"simulator"},
    ),
}

REFUSED = {
    "ports without certificates that are not accepted": {"tls": {"insecure": False}},
    "a gateway without a certificate that is not accepted": {"tls": {"enabled": True, "insecure": False}},
    "an unknown profile": {"profile": "cloud"},
    "a list among the settings": {"settings": {"power": {"pcs": ["https://pcs.example"]}}},
    "an unknown key": {"replicas": 3},
    "definitions by a word": {"customResourceDefinitions": {"create": "yes"}},
    "an unknown service": {"services": {"scheduler": {"port": 7710}}},
    "an unknown member of a service": {"services": {"session-manager": {"affinity": {}}}},
    "no replicas of a service": {"services": {"session-manager": {"replicas": 0}}},
    "evaluators that cannot share the work": {"services": {"status-evaluator": {"replicas": 2}}},
    "an unknown setting": {"settings": {"log": {"colour": "red"}}},
    "an unknown log format": {"settings": {"log": {"format": "xml"}}},
    "no connections": {"settings": {"gateway": {"connections": 0}}},
    "a port that is not a number": {"gateway": {"port": "http"}},
    "a privileged port": {"gateway": {"port": 80}},
    "a negative number of replicas": {"gateway": {"replicas": -1}},
    "a database of another kind": {"databases": {"session-manager": {"url": "mysql://db/sessions"}}},
    "a database without address": {"databases": {"session-manager": {"existingSecret": ""}}},
    "a database for a part without": {"databases": {"gateway": {"url": "postgres://db/x"}}},
    "a host secret without keys": {"hostSecretKeys": {"existingSecret": "host-keys", "keys": []}},
    "keys of secrets in plain sight": {"settings": {"hosts": {"secret_keys": ["0" * 64]}}},
    "a port for kubectl without a certificate": {"gateway": {"kubernetes": {"listen": True}}},
    "a port for kubectl that serves nothing": {
        "gateway": {"kubernetes": {"serve": False, "listen": True, "certificateSecret": "gateway-tls"}}
    },
    "a wrong quantity": {"services": {"session-manager": {"resources": {"requests": {"memory": "lots"}}}}},
}


class Results:
    """Counts checks and prints each as it ends."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, problems):
        """Records one check; `problems` are the findings, none when it passed."""
        problems = list(problems)
        if problems:
            self.failed += 1
            print(f"FAILED  {what}")
            for problem in problems:
                print(f"          {problem}")
        else:
            self.passed += 1
            print(f"ok      {what}")


def render(chart, release, values):
    """Every object of a release, as parsed YAML."""
    texts = chart.render(copy.deepcopy(values), name=release, namespace=NAMESPACE)
    manifests = (text for name, text in sorted(texts.items()) if name.endswith(".yaml"))
    return [document for text in manifests for document in yaml.safe_load_all(text) if document]


def of_kind(objects, kind):
    return [candidate for candidate in objects if candidate["kind"] == kind]


def name_of(candidate):
    return candidate["metadata"]["name"]


def container_of(deployment):
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


def schema_problems(objects, version):
    for candidate in objects:
        try:
            kubernetes_validate.validate(candidate, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            path = ".".join(str(step) for step in error.path)
            yield f"{candidate['kind']} {name_of(candidate)}: {path}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield error.message


def part_problems(objects, wanted):
    """Each part has one Deployment and one Service, and the Service selects that Deployment alone."""
    deployments = of_kind(objects, "Deployment")
    services = of_kind(objects, "Service")
    for kind, found in (("deployments", deployments), ("services", services)):
        parts = sorted(item["metadata"]["labels"]["app.kubernetes.io/component"] for item in found)
        if parts != sorted(wanted):
            yield f"{kind} are {parts}"
    for service in services:
        selector = service["spec"]["selector"].items()
        selected = [
            name_of(deployment)
            for deployment in deployments
            if selector <= deployment["spec"]["template"]["metadata"]["labels"].items()
        ]
        if selected != [name_of(service)]:
            yield f"service {name_of(service)} selects {selected}"


def replica_problems(objects):
    """What there are several of is replaced one by one, and machines are emptied one replica at a time."""
    budgets = {name_of(budget): budget["spec"] for budget in of_kind(objects, "PodDisruptionBudget")}
    several = {name_of(item): item["spec"] for item in of_kind(objects, "Deployment") if item["spec"]["replicas"] > 1}
    if budgets.keys() != several.keys():
        yield f"budgets are of {sorted(budgets)} and there are several of {sorted(several)}"
    for name, deployment in several.items():
        if deployment["strategy"]["type"] != "RollingUpdate":
            yield f"{name} is not replaced one by one"
        if name in budgets and budgets[name]["selector"] != deployment["selector"]:
            yield f"the budget of {name} is about something else"


def name_problems(objects):
    """Every name is unique within its kind, and those of Services, being host names, have at most 63 letters."""
    names = [(item["kind"], name_of(item)) for item in objects]
    yield from (f"{kind} {name} is there twice" for kind, name in set(names) if names.count((kind, name)) > 1)
    yield from (f"{kind} {name} is too long" for kind, name in names if kind == "Service" and len(name) > 63)


def pod_problems(objects):
    """Every pod is probed, bounded and unprivileged."""
    for deployment in of_kind(objects, "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        container = container_of(deployment)
        probes = {"startupProbe", "readinessProbe", "livenessProbe"}
        demands = {
            "lacks a probe": probes <= container.keys(),
            "requests nothing": bool(container["resources"].get("requests")),
            "may run as root": pod["securityContext"]["runAsNonRoot"] is True,
            "may write its root file system": container["securityContext"]["readOnlyRootFilesystem"] is True,
            "may gain privileges": container["securityContext"]["allowPrivilegeEscalation"] is False,
            "keeps capabilities": container["securityContext"]["capabilities"]["drop"] == ["ALL"],
        }
        yield from (f"{name_of(deployment)} {complaint}" for complaint, holds in demands.items() if not holds)


def probe_problems(objects, values):
    """The kubelet asks over TLS where a part has a certificate, and nowhere else."""
    for deployment in of_kind(objects, "Deployment"):
        part = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        probe = container_of(deployment)["readinessProbe"]
        scheme = probe.get("httpGet", {}).get("scheme", "HTTP")
        if (scheme == "HTTPS") != has_certificate(part, values):
            yield f"{part} is probed over {scheme}"


def environment_of(deployment):
    """Variables of a container; those from Secrets carry the Secret's name as `secret:NAME`."""
    variables = {}
    for variable in container_of(deployment)["env"]:
        secret = variable.get("valueFrom", {}).get("secretKeyRef", {}).get("name")
        variables[variable["name"]] = variable.get("value", f"secret:{secret}")
    return variables


def has_certificate(part, values):
    """Whether the port that a part has for the others, or the gateway for everybody, is encrypted."""
    tls = values.get("tls", {})
    return bool(tls.get("gatewaySecret") if part == "gateway" else tls.get("enabled"))


def address_problems(objects, values):
    """A part listens where its Service sends, and every address names a Service, its port and its encryption."""
    served = set()
    for item in of_kind(objects, "Service"):
        encrypted = has_certificate(item["metadata"]["labels"]["app.kubernetes.io/component"], values)
        served.add(f"{'https' if encrypted else 'http'}://{name_of(item)}:{item['spec']['ports'][0]['port']}")
    for deployment in of_kind(objects, "Deployment"):
        variables = environment_of(deployment)
        port = container_of(deployment)["ports"][0]["containerPort"]
        listens = [value for name, value in variables.items() if name.endswith("__LISTEN")]
        if listens != [f"0.0.0.0:{port}"]:
            yield f"{name_of(deployment)} listens on {listens} and its port is {port}"
        urls = {value for name, value in variables.items() if name.endswith("__URL")}
        if urls != served:
            yield f"{name_of(deployment)} is told {sorted(urls ^ served)} wrongly"


def database_problems(objects, values):
    """The owners of data, and the status evaluator where it has one, take their database from a Secret of their own."""
    given = values.get("databases", {})
    owners = OWNERS | {name for name, database in given.items() if any(database.values())}
    made = {name_of(secret) for secret in of_kind(objects, "Secret")}
    taken = {}
    for deployment in of_kind(objects, "Deployment"):
        part = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        variables = environment_of(deployment)
        secrets = [value for name, value in variables.items() if name.endswith("__DATABASE_URL")]
        if len(secrets) != (part in owners):
            yield f"{part} has the databases {secrets}"
        taken.update({secret.removeprefix("secret:"): part for secret in secrets})
    if len(taken) != len(owners):
        yield f"the secrets are {sorted(taken)}"
    expected = {name for name, part in taken.items() if given.get(part, {}).get("url")}
    if made != expected:
        yield f"the chart makes the secrets {sorted(made)}"


def own_secret_problems(objects, values):
    """Keys of hosts are mounted where values of secrets are kept, and the certificate where kubectl finds it."""
    kubernetes = values.get("gateway", {}).get("kubernetes", {})
    tls = values.get("tls", {})
    wanted = {
        "component-registry": [values.get("hostSecretKeys", {}).get("existingSecret")],
        "fleet-manager": [values.get("deviceAuthority", {}).get("existingSecret")],
        "gateway": [kubernetes.get("certificateSecret"), tls.get("gatewaySecret")],
    }
    given = {secret["name"] for secret in values.get("secrets", [])}
    for deployment in of_kind(objects, "Deployment"):
        part = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        mounted = {mount["name"] for mount in container_of(deployment)["volumeMounts"]}
        volumes = deployment["spec"]["template"]["spec"]["volumes"]
        own = {volume["secret"]["secretName"] for volume in volumes if "secret" in volume} - given
        expected = {secret for secret in wanted.get(part, []) if secret}
        if tls.get("enabled"):
            expected.add(f"{name_of(deployment)}-tls")
        if own != expected:
            yield f"{part} has the secrets {sorted(own)}"
        if mounted != {volume["name"] for volume in volumes}:
            yield f"{part} mounts {sorted(mounted)}"
    ports = {name_of(item): item["spec"]["ports"] for item in of_kind(objects, "Service")}
    served = sorted(name for name, entries in ports.items() if "kubernetes" in [entry["name"] for entry in entries])
    if len(served) != kubernetes.get("listen", False):
        yield f"kubectl finds a port at {served}"


def definition_problems(objects, values):
    """The kinds of hosts are defined where that is wanted, and no release takes them away."""
    definitions = of_kind(objects, "CustomResourceDefinition")
    if bool(definitions) != values.get("customResourceDefinitions", {}).get("create", False):
        yield f"there are {len(definitions)} definitions"
    for definition in definitions:
        if definition["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep":
            yield f"{name_of(definition)} goes with the release"


def settings_problems(objects, binaries):
    """Each program, started with the settings and variables of its container, takes them."""
    (settings,) = of_kind(objects, "ConfigMap")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "reveille.toml")
        file.write_text(settings["data"]["reveille.toml"])
        for deployment in of_kind(objects, "Deployment"):
            container = container_of(deployment)
            (program,) = container["command"]
            flags = [file if flag == "/etc/reveille/reveille.toml" else flag for flag in container["args"]]
            variables = {
                name: "postgres://reveille@postgres/reveille" if value.startswith("secret:") else value
                for name, value in environment_of(deployment).items()
            }
            listen = next(value for name, value in variables.items() if name.endswith("__LISTEN"))
            yield from refusals([binaries / program, *flags, "--print-config"], variables, listen)


def refusals(command, variables, listen):
    """Why a program does not take its settings, or takes another address than `listen` from them."""
    environment = {**os.environ, **variables}
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        yield f"cannot start: {error}"
        return
    if ran.returncode != 0:
        yield f"{command[0].name} exits {ran.returncode}: {(ran.stderr or ran.stdout).strip()}"
    elif listen not in ran.stdout:
        yield f"{command[0].name} does not listen on {listen}"


def refusal_problems(chart, values):
    try:
        render(chart, "reveille", values)
    except helm.HelmValuesError:
        return
    yield "was rendered"


def check_variant(results, chart, name, binaries):
    release, values, parts = VARIANTS[name]
    objects = render(chart, release, values)
    for version in KUBERNETES:
        results.check(f"{name}: {len(objects)} objects fit Kubernetes {version}", schema_problems(objects, version))
    results.check(f"{name}: names are unique and short enough", name_problems(objects))
    results.check(f"{name}: {len(parts)} parts, each behind its service", part_problems(objects, parts))
    results.check(f"{name}: several replicas stay available", replica_problems(objects))
    results.check(f"{name}: pods are probed, bounded, unprivileged", pod_problems(objects))
    results.check(f"{name}: probes are encrypted as the ports", probe_problems(objects, values))
    results.check(f"{name}: addresses meet", address_problems(objects, values))
    results.check(f"{name}: one database each", database_problems(objects, values))
    results.check(f"{name}: keys and certificates where they belong", own_secret_problems(objects, values))
    results.check(f"{name}: kinds of hosts", definition_problems(objects, values))
    if binaries:
        results.check(f"{name}: the programs take their settings", settings_problems(objects, binaries))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("chart", type=Path)
    arguments.add_argument("--binaries", type=Path, help="folder with the built programs; without: they are not asked")
    options = arguments.parse_args()
    results = Results()
    findings = helm.lint(str(options.chart))
    results.check("the chart has no lint errors", map(str, findings["errors"]))
    with helm.Chart.load(str(options.chart)) as chart:
        for name in VARIANTS:
            check_variant(results, chart, name, options.binaries)
        for name, values in REFUSED.items():
            results.check(f"refused: {name}", refusal_problems(chart, values))
    print(f"{results.passed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
