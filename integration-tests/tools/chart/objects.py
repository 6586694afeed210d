"""Objects of a release, as the chart renders them."""

import copy

import yaml

NAMESPACE = "fleet"
COMPONENT = "app.kubernetes.io/component"


def render(chart, release, values):
    """Every object of a release, as parsed YAML."""
    texts = chart.render(copy.deepcopy(values), name=release, namespace=NAMESPACE)
    manifests = (text for name, text in sorted(texts.items()) if name.endswith(".yaml"))
    return [document for text in manifests for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def of_kind(objects, kind):
    return [candidate for candidate in objects if candidate["kind"] == kind]


def name_of(candidate):
    return candidate["metadata"]["name"]


def part_of(candidate):
    """The part that an object belongs to, `None` if it belongs to all."""
    return candidate["metadata"].get("labels", {}).get(COMPONENT)


def pod_of(deployment):
    return deployment["spec"]["template"]["spec"]


def replicas_of(deployment, objects):
    """Replicas of a Deployment; the fewest of one that is scaled."""
    fewest = {
        item["spec"]["scaleTargetRef"]["name"]: item["spec"]["minReplicas"]
        for item in of_kind(objects, "HorizontalPodAutoscaler")
    }
    return deployment["spec"].get("replicas") or fewest[name_of(deployment)]


def container_of(deployment):
    """The container of the part, which has its name; a site may add others."""
    (container,) = (one for one in pod_of(deployment)["containers"] if one["name"] == part_of(deployment))
    return container


def environment_of(deployment):
    """Variables of a container; those from Secrets carry the Secret's name as `secret:NAME`."""
    variables = {}
    for variable in container_of(deployment)["env"]:
        secret = variable.get("valueFrom", {}).get("secretKeyRef", {}).get("name")
        variables[variable["name"]] = variable.get("value", f"secret:{secret}")
    return variables
