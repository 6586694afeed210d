"""Ways in which people install the chart."""

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

# name -> (release, values)
VARIANTS = {
    "defaults": ("reveille", {}),
    "existing secrets and own resources": (
        "blue",
        {
            "image": {"repository": "registry.local/fleet/reveille", "tag": "1.2.3"},
            "imagePullSecrets": [{"name": "pull"}],
            "settings": {
                "shutdown_grace_seconds": 60,
                "log": {"filter": "debug"},
                "compat": {"strict_bos": True},
                "sessions": {
                    "complete_applied": True,
                    "confirm_above_nodes": 1000,
                    "confirm_above_percent": 50,
                    "confirm_roles": ["Management", "Compute_GPU"],
                },
                "gateway": {"connections": 100, "patience_seconds": 10},
            },
            "databases": {name: {"existingSecret": f"postgres.{name}"} for name in OWNERS},
            "services": {"component-registry": {"resources": {"requests": {"cpu": 2, "memory": "2Gi"}}}},
            "gateway": {"port": 8080, "replicas": 3, "service": {"type": "LoadBalancer"}},
            "simulator": {"enabled": False},
        },
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
    ),
    "replicas": (
        "three",
        {
            "databases": {name: {"existingSecret": f"postgres.{name}"} for name in OWNERS | {"status-evaluator"}},
            "services": {name: {"replicas": 3} for name in SERVICES},
            "gateway": {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": "50%"}},
            "simulator": {"enabled": False},
        },
    ),
    "hosts with logins and a port for kubectl": (
        "metal",
        {
            "profile": "redfish",
            "settings": {
                "hosts": {"slots": 5},
                "host_operations": {"driver": "redfish", "redfish": {"verify_tls": False}},
            },
            "hostSecretKeys": {"existingSecret": "host-keys", "keys": ["new", "old"]},
            "deviceAuthority": {"existingSecret": "device-authority"},
            "gateway": {"kubernetes": {"listen": True, "certificateSecret": "gateway-tls"}},
            "simulator": {"enabled": False},
        },
    ),
    "devices with agents": (
        "edge",
        {
            "deviceAuthority": {"existingSecret": "device-authority"},
            "gateway": {
                "flightctl": {"listen": True, "certificateSecret": "gateway-tls"},
                "agents": {"listen": True, "port": 8443, "certificateSecret": "agents-tls"},
            },
        },
    ),
    "certificates between the parts": (
        "mutual",
        {"tls": {"enabled": True, "callers": "spiffe://site/ns/fleet/*", "names": {"administrator": "spiffe://site/ns/fleet/ops"}}},
    ),
    "certificates everywhere": (
        "reveille",
        {
            "tls": {"enabled": True, "gatewaySecret": "gateway-public", "insecure": False},
            "hostSecretKeys": {"existingSecret": "host-keys", "keys": ["new"]},
            "gateway": {"kubernetes": {"listen": True, "certificateSecret": "gateway-tls"}},
            "simulator": {"enabled": False},
        },
    ),
    "certificates by cert-manager": (
        "signed",
        {
            "tls": {
                "enabled": True,
                "insecure": False,
                "certManager": {
                    "enabled": True,
                    "issuerRef": {"name": "parts", "kind": "ClusterIssuer"},
                    "trustDomain": "site.example",
                    "gateway": {"enabled": True, "dnsNames": ["reveille.example"], "issuerRef": {"name": "public"}},
                },
            },
        },
    ),
    "reachable in every way": (
        "open",
        {
            "ingress": {
                "enabled": True,
                "className": "nginx",
                "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "64m"},
                "hosts": [{"host": "bos.example", "paths": [{"path": "/apis/bos", "pathType": "Prefix"}]}],
                "tls": [{"hosts": ["bos.example"], "secretName": "bos-tls"}],
            },
            "httpRoute": {
                "enabled": True,
                "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "https"}],
                "hostnames": ["bos.example"],
                "filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "bos"}}],
                "timeouts": {"request": "60s"},
            },
            "crayBosService": {"create": True},
            "headlessServices": {"create": True},
            "gateway": {
                "autoscaling": {"enabled": True, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}}},
                "service": {"type": "LoadBalancer", "annotations": {"metallb.io/address-pool": "hmn"}},
            },
        },
    ),
    "policies for calls in": (
        "closed",
        {
            "networkPolicy": {
                "enabled": True,
                "clients": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
                "scrapers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            },
        },
    ),
    "policies for calls in and out": (
        "sealed",
        {
            "networkPolicy": {
                "enabled": True,
                "restrictEgress": True,
                "egress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [{"port": 5432}, {"port": 443}]}],
            },
            "simulator": {"enabled": False},
        },
    ),
    "watched": (
        "reveille",
        {
            "serviceMonitor": {
                "enabled": True,
                "interval": "30s",
                "labels": {"release": "prometheus"},
                "metricRelabelings": [{"action": "drop", "sourceLabels": ["le"], "regex": "0.002"}],
            },
            "prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example/RUNBOOK.md"},
            "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Machines"}},
            "headlessServices": {"create": True},
        },
    ),
    "encrypted and watched": (
        "mutual",
        {
            "tls": {"enabled": True, "insecure": False, "certManager": {"enabled": True, "gateway": {"enabled": True}}},
            "serviceMonitor": {"enabled": True},
        },
    ),
    "files that are lost with their pods": ("trial", {"persistence": {"enabled": False}}),
    "some services on PostgreSQL": (
        "mixed",
        {
            "databases": {
                "component-registry": {"existingSecret": "registry-app", "existingSecretKey": "uri"},
                "session-manager": {"persistence": {"size": "20Gi", "storageClassName": "fast", "keep": False}},
                "power-controller": {"persistence": {"existingClaim": "transitions"}},
            },
            "services": {"component-registry": {"replicas": 2}},
        },
    ),
    "definitions of hosts": ("reveille", {"customResourceDefinitions": {"create": True}}),
    "database addresses in the values": (
        "a-release-name-that-is-as-long-as-helm-lets-it-be-000",
        {"databases": {name: {"url": f"postgres://reveille:secret@postgres/{name}"} for name in OWNERS}},
    ),
}

# Variants that need nothing that the chart does not make, and that are started.
STARTED = ["defaults", "encrypted and watched"]


def parts_of(values):
    """The parts that run with these values."""
    return PARTS | ({"simulator"} if values.get("simulator", {}).get("enabled", True) else set())


def has_server(service, values):
    """Whether a service has a PostgreSQL database."""
    database = values.get("databases", {}).get(service, {})
    return bool(database.get("url") or database.get("existingSecret"))
