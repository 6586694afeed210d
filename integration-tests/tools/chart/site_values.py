"""Values that sites usually set, with the place where each has to arrive."""

from chart.objects import of_kind, part_of, render
from chart.variants import OWNERS

POOL = {"pool": "service"}
DISK = [{"name": "scratch", "emptyDir": {}}]
MOUNT = [{"name": "scratch", "mountPath": "/scratch"}]
TOLERATION = [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]
SPREAD = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
SITE = {"name": "SITE", "value": "one"}
DIGEST = "sha256:" + "0" * 64
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"

# Values of every part, which one part may have too: name -> (value, path in the Deployment, what is there).
POD_VALUES = {
    "nodeSelector": (POOL, f"{POD}.nodeSelector", POOL),
    "tolerations": (TOLERATION, f"{POD}.tolerations", TOLERATION),
    "affinity": (AFFINITY, f"{POD}.affinity", AFFINITY),
    "topologySpreadConstraints": ([SPREAD], f"{POD}.topologySpreadConstraints.0.topologyKey", "rack"),
    "priorityClassName": ("high", f"{POD}.priorityClassName", "high"),
    "runtimeClassName": ("gvisor", f"{POD}.runtimeClassName", "gvisor"),
    "schedulerName": ("volcano", f"{POD}.schedulerName", "volcano"),
    "podLabels": ({"team": "night"}, "spec.template.metadata.labels.team", "night"),
    "podAnnotations": (
        {"example.com/inject": "false"},
        "spec.template.metadata.annotations.example=com/inject",
        "false",
    ),
    "deploymentAnnotations": ({"reload": "true"}, "metadata.annotations.reload", "true"),
    "extraEnv": ([SITE], f"{CONTAINER}.env.-1", SITE),
    "extraEnvFrom": ([{"configMapRef": {"name": "proxy"}}], f"{CONTAINER}.envFrom.0.configMapRef.name", "proxy"),
    "extraVolumes": (DISK, f"{POD}.volumes.-1", DISK[0]),
    "extraVolumeMounts": (MOUNT, f"{CONTAINER}.volumeMounts.-1", MOUNT[0]),
    "extraContainers": ([{"name": "logs", "image": "logs:1"}], f"{POD}.containers.1.name", "logs"),
    "initContainers": ([{"name": "wait", "image": "wait:1"}], f"{POD}.initContainers.0.name", "wait"),
    "hostAliases": ([{"ip": "10.1.1.1", "hostnames": ["pcs"]}], f"{POD}.hostAliases.0.ip", "10.1.1.1"),
    "dnsPolicy": ("Default", f"{POD}.dnsPolicy", "Default"),
    "dnsConfig": ({"searches": ["site.example"]}, f"{POD}.dnsConfig.searches.0", "site.example"),
    "podSecurityContext": ({"runAsUser": 1000680000}, f"{POD}.securityContext.runAsUser", 1000680000),
    "securityContext": (
        {"readOnlyRootFilesystem": False},
        f"{CONTAINER}.securityContext.readOnlyRootFilesystem",
        False,
    ),
    "image": ({"digest": DIGEST}, f"{CONTAINER}.image", f"reveille@{DIGEST}"),
    "imagePullSecrets": ([{"name": "pull"}], f"{POD}.imagePullSecrets.0.name", "pull"),
    "strategy": (
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}},
        "spec.strategy.rollingUpdate.maxSurge",
        "50%",
    ),
    "revisionHistoryLimit": (3, "spec.revisionHistoryLimit", 3),
    "minReadySeconds": (15, "spec.minReadySeconds", 15),
    "progressDeadlineSeconds": (90, "spec.progressDeadlineSeconds", 90),
    "terminationGracePeriodSeconds": (120, f"{POD}.terminationGracePeriodSeconds", 120),
    "probes": ({"startup": {"failureThreshold": 900}}, f"{CONTAINER}.startupProbe.failureThreshold", 900),
}

SERVICE_VALUES = {
    "type": ("LoadBalancer", "spec.type", "LoadBalancer"),
    "annotations": ({"pool": "public"}, "metadata.annotations.pool", "public"),
    "labels": ({"pool": "public"}, "metadata.labels.pool", "public"),
    "loadBalancerIP": ("10.92.100.71", "spec.loadBalancerIP", "10.92.100.71"),
    "loadBalancerClass": ("metallb", "spec.loadBalancerClass", "metallb"),
    "loadBalancerSourceRanges": (["10.0.0.0/8"], "spec.loadBalancerSourceRanges.0", "10.0.0.0/8"),
    "externalTrafficPolicy": ("Local", "spec.externalTrafficPolicy", "Local"),
    "internalTrafficPolicy": ("Local", "spec.internalTrafficPolicy", "Local"),
    "nodePort": (30770, "spec.ports.0.nodePort", 30770),
    "clusterIP": ("None", "spec.clusterIP", "None"),
    "sessionAffinity": ("ClientIP", "spec.sessionAffinity", "ClientIP"),
    "ipFamilyPolicy": ("PreferDualStack", "spec.ipFamilyPolicy", "PreferDualStack"),
}

# name -> (values, kind, path, what is there), of every object of the kind.
OTHER_VALUES = {
    "nameOverride": ({"nameOverride": "wake"}, "Service", "metadata.labels.app=kubernetes=io/name", "wake"),
    "fullnameOverride": ({"fullnameOverride": "wake"}, "ConfigMap", "metadata.name", "wake"),
    "commonLabels": ({"commonLabels": {"cost": "7"}}, "Deployment", "spec.template.metadata.labels.cost", "7"),
    "commonLabels of all": ({"commonLabels": {"cost": "7"}}, "*", "metadata.labels.cost", "7"),
    "commonAnnotations": ({"commonAnnotations": {"owner": "hpc"}}, "*", "metadata.annotations.owner", "hpc"),
    "account of the site": (
        {"serviceAccount": {"create": False, "name": "own"}},
        "Deployment",
        f"{POD}.serviceAccountName",
        "own",
    ),
    "no account": ({"serviceAccount": {"create": False}}, "Deployment", f"{POD}.serviceAccountName", "default"),
    "annotations of the account": (
        {"serviceAccount": {"annotations": {"role": "reader"}}},
        "ServiceAccount",
        "metadata.annotations.role",
        "reader",
    ),
    "class of the volumes": (
        {"persistence": {"storageClassName": "fast"}},
        "PersistentVolumeClaim",
        "spec.storageClassName",
        "fast",
    ),
    "labels of alerts": (
        {"prometheusRule": {"enabled": True, "alertLabels": {"team": "night"}}},
        "PrometheusRule",
        "spec.groups.0.rules.0.labels.team",
        "night",
    ),
    "alerts that are left out": (
        {"prometheusRule": {"enabled": True, "disabled": ["ReveillePartDown"]}},
        "PrometheusRule",
        "spec.groups.0.rules.0.alert",
        "ReveilleReplicaDown",
    ),
    "labels of monitors": (
        {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
        "ServiceMonitor",
        "metadata.labels.release",
        "prometheus",
    ),
    "class of the Ingress": (
        {"ingress": {"enabled": True, "className": "nginx"}},
        "Ingress",
        "spec.ingressClassName",
        "nginx",
    ),
    "further objects": (
        {"extraObjects": [{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "{{ .Release.Name }}-pcs"}}]},
        "Endpoints",
        "metadata.name",
        "reveille-pcs",
    ),
}

# Without SQLite files, which allow some values only, and without the simulator.
ON_SERVERS = {"databases": {name: {"existingSecret": "postgres"} for name in OWNERS}, "simulator": {"enabled": False}}


def rows(chart):
    """Each value with the problems that it meets."""
    for name, (value, path, wanted) in POD_VALUES.items():
        yield f"{name} of every part", arrival_problems(chart, {**ON_SERVERS, name: value}, "Deployment", path, wanted)
        for part in ("gateway", "session-manager"):
            own = {"gateway": {name: value}} if part == "gateway" else {"services": {part: {name: value}}}
            problems = arrival_problems(chart, {**ON_SERVERS, **own}, "Deployment", path, wanted, part)
            yield f"{name} of the {part} alone", problems
    for name, (value, path, wanted) in SERVICE_VALUES.items():
        values = {"gateway": {"service": {name: value}}}
        yield f"service.{name} of the gateway", arrival_problems(chart, values, "Service", path, wanted, "gateway")
    for name, (values, kind, path, wanted) in OTHER_VALUES.items():
        yield name, arrival_problems(chart, values, kind, path, wanted)


def arrival_problems(chart, values, kind, path, wanted, part=None):
    """`wanted` is at `path` of every object of the kind, or of that of `part` and of no other."""
    objects = render(chart, "reveille", values)
    if kind != "*":
        objects = of_kind(objects, kind)
    if not objects:
        yield f"there is no {kind}"
    for candidate in objects:
        found = at(candidate, path)
        if (found == wanted) != (part in (None, part_of(candidate))):
            yield f"{candidate['kind']} {candidate['metadata']['name']} has {found!r} at {path}"


def at(value, path):
    """The member at a path with dots between its steps, where `=` stands for a dot within one, or `None`."""
    for step in path.split("."):
        if isinstance(value, list):
            index = int(step)
            value = value[index] if -len(value) <= index < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step.replace("=", "."))
        else:
            return None
    return value
