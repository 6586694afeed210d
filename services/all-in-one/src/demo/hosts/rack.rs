//! Hosts on the demo's rack, as objects of the Kubernetes API.

use chassis::settings::RackSettings;
use serde_json::{Value, json};

/// Most hosts: a cabinet has that many slots.
pub(super) const MOST_HOSTS: u8 = 64;

/// Path of the secrets.
pub(super) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Path of the hosts.
pub(super) const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts";

/// Host on the rack, by its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DemoHost(u8);

/// Returns so many hosts.
pub(super) fn hosts(count: u8) -> Vec<DemoHost> {
    (1..=count).map(DemoHost).collect()
}

impl DemoHost {
    /// Name of the host.
    pub(super) fn name(self) -> String {
        format!("node-{}", self.0)
    }

    /// Id of the component that the host becomes.
    pub(super) fn xname(self) -> String {
        format!("x3000c0s{}b0n0", self.0)
    }

    /// Returns the secret with the login at the BMC.
    pub(super) fn secret(self, rack: &RackSettings) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.secret_name(), "namespace": "default"},
            "stringData": {"username": rack.username, "password": rack.password},
        })
    }

    /// Returns the host. Its address is one that no machine has.
    pub(super) fn manifest(self) -> Value {
        let slot = self.0;
        json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {
                "name": self.name(),
                "namespace": "default",
                "labels": {"reveille.io/group": "rack-1"},
                "annotations": {"reveille.io/xname": self.xname(), "reveille.io/nid": slot.to_string()},
            },
            "spec": {
                "online": true,
                "bootMACAddress": format!("02:00:00:00:00:{slot:02x}"),
                "bmc": {
                    "address": format!("redfish-virtualmedia://192.0.2.{slot}/redfish/v1/Systems/1"),
                    "credentialsName": self.secret_name(),
                },
            },
        })
    }

    fn secret_name(self) -> String {
        format!("{}-bmc", self.name())
    }
}
