"""Values that must be refused, each with a word that the message has to have."""

# name -> (values, part of the message)
REFUSED = {
    "ports without certificates that are not accepted": ({"tls": {"insecure": False}}, "needs tls.enabled"),
    "a gateway without a certificate that is not accepted": (
        {"tls": {"enabled": True, "insecure": False}},
        "tls.gatewaySecret",
    ),
    "certificates for parts that have none": ({"tls": {"certManager": {"enabled": True}}}, "needs tls.enabled"),
    "two certificates of the gateway": (
        {
            "tls": {
                "enabled": True,
                "gatewaySecret": "a",
                "certManager": {"enabled": True, "gateway": {"enabled": True}},
            }
        },
        "set one of the two",
    ),
    "an unknown profile": ({"profile": "cloud"}, "/profile"),
    "a list among the settings": ({"settings": {"power": {"pcs": ["https://pcs.example"]}}}, "/settings/power/pcs"),
    "an unknown key": ({"replicas": 3}, "'replicas'"),
    "a wrong letter in a common value": ({"nodeSelecter": {"pool": "service"}}, "'nodeSelecter'"),
    "a wrong letter in a value of a part": ({"services": {"session-manager": {"affinty": {}}}}, "'affinty'"),
    "a wrong letter in a value of the gateway": ({"gateway": {"service": {"anotations": {}}}}, "'anotations'"),
    "an affinity of an unknown kind": ({"affinity": {"machineAffinity": {}}}, "'machineAffinity'"),
    "tolerations that are no list": ({"tolerations": {"key": "a"}}, "/tolerations"),
    "a variable without a name": ({"extraEnv": [{"value": "a"}]}, "'name'"),
    "a label that selects the pods": ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "app.kubernetes.io/name"),
    "a label that is a number": ({"commonLabels": {"cost": 7}}, "/commonLabels/cost"),
    "a digest without its algorithm": ({"image": {"digest": "0" * 64}}, "/image/digest"),
    "definitions by a word": ({"customResourceDefinitions": {"create": "yes"}}, "/customResourceDefinitions/create"),
    "an unknown service": ({"services": {"scheduler": {"port": 7710}}}, "'scheduler'"),
    "a switch of a part that has none": (
        {"services": {"session-manager": {"enabled": False}}},
        "session-manager/enabled",
    ),
    "replicas of the simulator": ({"simulator": {"replicas": 2}}, "/simulator/replicas"),
    "no replicas of a service": ({"services": {"session-manager": {"replicas": 0}}}, "want 1"),
    "replicas that share a SQLite file": (
        {"services": {"session-manager": {"replicas": 2}}},
        "2 replicas need a PostgreSQL database, databases.session-manager.url",
    ),
    "a second pod beside one with a SQLite file": ({"strategy": {"type": "RollingUpdate"}}, "must not run twice"),
    "evaluators that cannot share the work": (
        {"services": {"status-evaluator": {"replicas": 2}}},
        "databases.status-evaluator.url",
    ),
    "a route through no Gateway": ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
    "rules for calls out that hold for nothing": (
        {"networkPolicy": {"enabled": True, "egress": [{"ports": [{"port": 5432}]}]}},
        "networkPolicy.restrictEgress",
    ),
    "a path of an Ingress without its type": (
        {"ingress": {"enabled": True, "hosts": [{"host": "a.example", "paths": [{"path": "/"}]}]}},
        "'pathType'",
    ),
    "metrics that no one may read": (
        {"tls": {"enabled": True}, "serviceMonitor": {"enabled": True}},
        "serviceMonitor.tls.existingSecret",
    ),
    "a time without its unit": ({"serviceMonitor": {"interval": "30"}}, "/serviceMonitor/interval"),
    "fewer replicas at most than at least": (
        {"gateway": {"autoscaling": {"enabled": True, "minReplicas": 9}}},
        "more than maxReplicas",
    ),
    "less time to end than calls have": ({"terminationGracePeriodSeconds": 5}, "settings.shutdown_grace_seconds"),
    "an unknown setting": ({"settings": {"log": {"colour": "red"}}}, "'colour'"),
    "an unknown log format": ({"settings": {"log": {"format": "xml"}}}, "/settings/log/format"),
    "no connections": ({"settings": {"gateway": {"connections": 0}}}, "/settings/gateway/connections"),
    "a port that is not a number": ({"gateway": {"port": "http"}}, "/gateway/port"),
    "a privileged port": ({"gateway": {"port": 80}}, "/gateway/port"),
    "a negative number of replicas": ({"gateway": {"replicas": -1}}, "/gateway/replicas"),
    "a database of another kind": (
        {"databases": {"session-manager": {"url": "mysql://db/sessions"}}},
        "session-manager/url",
    ),
    "a database for a part without": ({"databases": {"gateway": {"url": "postgres://db/x"}}}, "'gateway'"),
    "a volume for a part without": ({"databases": {"status-evaluator": {"persistence": {}}}}, "'persistence'"),
    "a host secret without keys": (
        {"hostSecretKeys": {"existingSecret": "host-keys", "keys": []}},
        "/hostSecretKeys/keys",
    ),
    "keys of secrets in plain sight": ({"settings": {"hosts": {"secret_keys": ["0" * 64]}}}, "'secret_keys'"),
    "a port for kubectl without a certificate": (
        {"gateway": {"kubernetes": {"listen": True}}},
        "/gateway/kubernetes/certificateSecret",
    ),
    "a port for kubectl that serves nothing": (
        {"gateway": {"kubernetes": {"serve": False, "listen": True, "certificateSecret": "gateway-tls"}}},
        "/gateway/kubernetes/serve",
    ),
    "a port of agents without a certificate": (
        {"gateway": {"agents": {"listen": True}}},
        "/gateway/agents/certificateSecret",
    ),
    "a wrong quantity": (
        {"services": {"session-manager": {"resources": {"requests": {"memory": "lots"}}}}},
        "/services/session-manager/resources/requests/memory",
    ),
}
