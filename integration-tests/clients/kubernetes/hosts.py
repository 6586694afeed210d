"""Objects that the tests create. The simulated rack makes a host of every address."""

GROUP = "metal3.io/v1alpha1"


def namespace(name):
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def login(name):
    """The login that every BMC of the rack takes, as a secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {"username": "admin", "password": "password"},
    }


def host(name, secret, number, **spec):
    """A host, with its number in the rack."""
    bmc = {"address": f"redfish://10.0.0.{number}/redfish/v1/Systems/1", "credentialsName": secret}
    mac = f"00:5c:52:31:00:{number:02x}"
    return {
        "apiVersion": GROUP,
        "kind": "BareMetalHost",
        "metadata": {"name": name, "labels": {"rack": "r1"}},
        "spec": {"online": True, "bmc": bmc, "bootMACAddress": mac, **spec},
    }


IMAGE = {"url": "http://images/os.qcow2", "checksum": "ab12", "checksumType": "sha256", "format": "qcow2"}
