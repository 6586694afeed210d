"""Checks that the network lets through what the mesh needs: who calls whom is read from the code of the parts."""

import re
from pathlib import Path

from chart.objects import COMPONENT, name_of, of_kind, part_of

ROOT = Path(__file__).parents[3]

# Addresses that a part puts into something without calling them.
WRITTEN_ONLY = {("config-coordinator", "gateway")}


def calls():
    """Pairs of caller and called part, from the addresses that each part takes out of its settings."""
    found = set()
    for source in [*ROOT.glob("services/*/src/**/*.rs"), *ROOT.glob("gateway/src/**/*.rs")]:
        folder = source.relative_to(ROOT).parts
        # Tests start other parts, which is no call.
        if "tests" in folder or source.name == "tests.rs":
            continue
        caller = folder[1] if folder[0] == "services" else folder[0]
        called = re.findall(r"settings\s*\.(\w+)\s*\.url\b", source.read_text())
        found.update((caller, name.replace("_", "-")) for name in called if name.replace("_", "-") != caller)
    return found - WRITTEN_ONLY


def network_problems(objects, values):
    """Where policies are wanted, each part is reached by its callers and reaches those that it calls."""
    policies = {part_of(policy): policy["spec"] for policy in of_kind(objects, "NetworkPolicy")}
    wanted = values.get("networkPolicy", {})
    parts = {part_of(deployment) for deployment in of_kind(objects, "Deployment")}
    if policies.keys() != (parts if wanted.get("enabled") else set()):
        yield f"there are policies of {sorted(policies)}"
        return
    if not policies:
        return
    needed = {(caller, called) for caller, called in calls() if {caller, called} <= parts}
    open_parts = {part for part, policy in policies.items() if any("from" not in rule for rule in policy["ingress"])}
    let_in = {(caller, part) for part, policy in policies.items() for caller in peers(policy["ingress"], "from")}
    missing = {(caller, called) for caller, called in needed - let_in if called not in open_parts}
    if missing:
        yield f"calls are kept out: {sorted(missing)}"
    idle = let_in - needed - {("test", "gateway")}
    if idle:
        yield f"nobody makes the calls {sorted(idle)}"
    if open_parts - {"gateway"}:
        yield f"everybody reaches {sorted(open_parts)}"
    if wanted.get("restrictEgress"):
        let_out = {(part, called) for part, policy in policies.items() for called in peers(policy["egress"], "to")}
        if let_out != needed:
            yield f"calls out differ by {sorted(let_out ^ needed)}"


def peers(rules, direction):
    """Parts that rules name."""
    selectors = (peer.get("podSelector", {}) for rule in rules for peer in rule.get(direction, []))
    parts = (selector.get("matchLabels", {}).get(COMPONENT) for selector in selectors)
    return {part for part in parts if part}


def route_problems(objects):
    """Every way from outside leads to a port that the Service of the gateway has."""
    served = {}
    for service in of_kind(objects, "Service"):
        ports = service["spec"]["ports"]
        served[name_of(service)] = {port["name"] for port in ports} | {port["port"] for port in ports}
    targets = []
    for ingress in of_kind(objects, "Ingress"):
        backends = [path["backend"]["service"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
        targets += [(backend["name"], backend["port"]["name"]) for backend in backends]
    for route in of_kind(objects, "HTTPRoute"):
        backends = [backend for rule in route["spec"]["rules"] for backend in rule["backendRefs"]]
        targets += [(backend["name"], backend["port"]) for backend in backends]
    for name, port in targets:
        if not name.endswith("-gateway") or port not in served.get(name, ()):
            yield f"nothing is served at {name}, port {port}"
