"""Checks that the objects of a release fit together."""

from chart.objects import container_of, environment_of, name_of, of_kind, part_of, pod_of, replicas_of
from chart.variants import OWNERS, SERVICES, has_server


def part_problems(objects, wanted):
    """Each part has one Deployment and one Service of its name, and every Service selects the pods of one part."""
    deployments = of_kind(objects, "Deployment")
    if sorted(part_of(deployment) for deployment in deployments) != sorted(wanted):
        yield f"deployments are {sorted(name_of(deployment) for deployment in deployments)}"
    lonely = {name_of(deployment) for deployment in deployments} - {
        name_of(service) for service in of_kind(objects, "Service")
    }
    if lonely:
        yield f"there is no service of {sorted(lonely)}"
    for service in of_kind(objects, "Service"):
        selector = service["spec"]["selector"].items()
        selected = [
            part_of(deployment)
            for deployment in deployments
            if selector <= deployment["spec"]["template"]["metadata"]["labels"].items()
        ]
        if selected != [part_of(service)]:
            yield f"service {name_of(service)} selects {selected}"


def replica_problems(objects):
    """What there are several of is replaced one by one, and machines are emptied one replica at a time."""
    budgets = {name_of(budget): budget["spec"] for budget in of_kind(objects, "PodDisruptionBudget")}
    deployments = of_kind(objects, "Deployment")
    several = {name_of(item): item["spec"] for item in deployments if replicas_of(item, objects) > 1}
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
    """Every part is probed, and every pod is bounded and unprivileged."""
    for deployment in of_kind(objects, "Deployment"):
        if not {"startupProbe", "readinessProbe", "livenessProbe"} <= container_of(deployment).keys():
            yield f"{name_of(deployment)} lacks a probe"
    pods = {name_of(pod): pod["spec"] for pod in of_kind(objects, "Pod")}
    pods |= {name_of(deployment): pod_of(deployment) for deployment in of_kind(objects, "Deployment")}
    for name, pod in pods.items():
        for container in pod["containers"]:
            demands = {
                "requests nothing": bool(container["resources"].get("requests")),
                "may run as root": pod["securityContext"]["runAsNonRoot"] is True,
                "may call anything": pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"},
                "has the right of its account": pod["automountServiceAccountToken"] is False,
                "may write its root file system": container["securityContext"]["readOnlyRootFilesystem"] is True,
                "may gain privileges": container["securityContext"]["allowPrivilegeEscalation"] is False,
                "keeps capabilities": container["securityContext"]["capabilities"]["drop"] == ["ALL"],
            }
            yield from (f"{name} {complaint}" for complaint, holds in demands.items() if not holds)


def probe_problems(objects, values):
    """The kubelet asks over TLS where a part has a certificate, and nowhere else."""
    for deployment in of_kind(objects, "Deployment"):
        part = part_of(deployment)
        probe = container_of(deployment)["readinessProbe"]
        scheme = probe.get("httpGet", {}).get("scheme", "HTTP")
        if (scheme == "HTTPS") != has_certificate(part, values):
            yield f"{part} is probed over {scheme}"


def has_certificate(part, values):
    """Whether the port that a part has for the others, or the gateway for everybody, is encrypted."""
    tls = values.get("tls", {})
    if part != "gateway":
        return bool(tls.get("enabled"))
    return bool(tls.get("gatewaySecret") or tls.get("certManager", {}).get("gateway", {}).get("enabled"))


def address_problems(objects, values):
    """A part listens where its Service sends, and every address names a Service, its port and its encryption."""
    served = set()
    deployments = of_kind(objects, "Deployment")
    names = {name_of(deployment) for deployment in deployments}
    for item in of_kind(objects, "Service"):
        encrypted = has_certificate(part_of(item), values)
        if name_of(item) in names:
            served.add(f"{'https' if encrypted else 'http'}://{name_of(item)}:{item['spec']['ports'][0]['port']}")
    for deployment in deployments:
        variables = environment_of(deployment)
        port = container_of(deployment)["ports"][0]["containerPort"]
        listens = [value for name, value in variables.items() if name.endswith("__LISTEN")]
        if listens != [f"0.0.0.0:{port}"]:
            yield f"{name_of(deployment)} listens on {listens} and its port is {port}"
        urls = {value for name, value in variables.items() if name.endswith("__URL")}
        if urls != served:
            yield f"{name_of(deployment)} is told {sorted(urls ^ served)} wrongly"


def database_problems(objects, values):
    """A part with a PostgreSQL database takes its address from a Secret of its own."""
    taken = {}
    for deployment in of_kind(objects, "Deployment"):
        part = part_of(deployment)
        variables = environment_of(deployment)
        secrets = [value for name, value in variables.items() if name.endswith("__DATABASE_URL")]
        if len(secrets) != has_server(part, values):
            yield f"{part} has the databases {secrets}"
        taken.update({secret.removeprefix("secret:"): part for secret in secrets})
    servers = {part for part in SERVICES if has_server(part, values)}
    if len(taken) != len(servers):
        yield f"the secrets are {sorted(taken)}"
    given = values.get("databases", {})
    made = {name_of(secret) for secret in of_kind(objects, "Secret")}
    expected = {name for name, part in taken.items() if given.get(part, {}).get("url")}
    if made != expected:
        yield f"the chart makes the secrets {sorted(made)}"


def file_problems(objects, values):
    """A service that owns data and has no PostgreSQL database keeps a SQLite file on a volume, and never runs twice."""
    claims = {name_of(claim) for claim in of_kind(objects, "PersistentVolumeClaim")}
    used = set()
    for deployment in of_kind(objects, "Deployment"):
        part = part_of(deployment)
        folder = environment_of(deployment).get("REVEILLE__DATA_DIR")
        mounts = {mount["mountPath"]: mount["name"] for mount in container_of(deployment)["volumeMounts"]}
        if bool(folder) != (part in OWNERS and not has_server(part, values)):
            yield f"{part} has the folder {folder}"
        if not folder:
            continue
        volumes = {volume["name"]: volume for volume in pod_of(deployment)["volumes"]}
        volume = volumes[mounts[folder]]
        used.add(volume.get("persistentVolumeClaim", {}).get("claimName"))
        if deployment["spec"]["replicas"] != 1 or deployment["spec"]["strategy"]["type"] != "Recreate":
            yield f"{part} may run twice"
    own = values.get("databases", {}).values()
    given = {database.get("persistence", {}).get("existingClaim") for database in own} - {None}
    if used - given - {None} != claims:
        yield f"the chart makes the claims {sorted(claims)}"
    kept = values.get("persistence", {}).get("enabled", True)
    if (None in used) == kept:
        yield "files are lost with their pods" if kept else "files are kept"


def gateway_certificate(objects, values):
    """Secret with the certificate of the gateway, `None` without."""
    secrets = (item["spec"]["secretName"] for item in of_kind(objects, "Certificate"))
    made = next((secret for secret in secrets if secret.endswith("-public-tls")), None)
    return values.get("tls", {}).get("gatewaySecret") or made


def certificate_problems(objects, values):
    """Where cert-manager makes certificates, each part mounts one, which has its own identity."""
    certificates = [item["spec"] for item in of_kind(objects, "Certificate")]
    wanted = values.get("tls", {}).get("certManager", {})
    made = {spec["secretName"]: spec.get("uris", []) for spec in certificates}
    if bool(made) != wanted.get("enabled", False):
        yield f"there are certificates {sorted(made)}"
    if not made:
        return
    domain = wanted.get("trustDomain", "reveille")
    for deployment in of_kind(objects, "Deployment"):
        identities = made.get(f"{name_of(deployment)}-tls")
        if identities != [f"spiffe://{domain}/{part_of(deployment)}"]:
            yield f"{name_of(deployment)} has the identities {identities}"


def own_secret_problems(objects, values):
    """Keys of hosts are mounted where values of secrets are kept, and certificates where the ports of their clients are."""
    faces = {name: values.get("gateway", {}).get(name, {}) for name in ("kubernetes", "flightctl", "agents")}
    tls = values.get("tls", {})
    wanted = {
        "component-registry": [values.get("hostSecretKeys", {}).get("existingSecret")],
        "fleet-manager": [values.get("deviceAuthority", {}).get("existingSecret")],
        "gateway": [face.get("certificateSecret") for face in faces.values()] + [gateway_certificate(objects, values)],
    }
    given = {secret["name"] for secret in values.get("secrets", [])}
    for deployment in of_kind(objects, "Deployment"):
        part = part_of(deployment)
        mounted = {mount["name"] for mount in container_of(deployment)["volumeMounts"]}
        volumes = pod_of(deployment)["volumes"]
        own = {volume["secret"]["secretName"] for volume in volumes if "secret" in volume} - given
        expected = {secret for secret in wanted.get(part, []) if secret}
        if tls.get("enabled"):
            expected.add(f"{name_of(deployment)}-tls")
        if own != expected:
            yield f"{part} has the secrets {sorted(own)}"
        if mounted != {volume["name"] for volume in volumes}:
            yield f"{part} mounts {sorted(mounted)}"
    ports = {name_of(item): item["spec"]["ports"] for item in of_kind(objects, "Service")}
    for face, wishes in faces.items():
        served = sorted(name for name, entries in ports.items() if face in [entry["name"] for entry in entries])
        if len(served) != wishes.get("listen", False):
            yield f"clients of {face} find a port at {served}"


def definition_problems(objects, values):
    """The kinds of hosts are defined where that is wanted, and no release takes them away."""
    definitions = of_kind(objects, "CustomResourceDefinition")
    if bool(definitions) != values.get("customResourceDefinitions", {}).get("create", False):
        yield f"there are {len(definitions)} definitions"
    for definition in definitions:
        if definition["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep":
            yield f"{name_of(definition)} goes with the release"
