//! Hosts on the demo's rack, as objects of the Kubernetes API, and the template that boots them.

use chassis::settings::RackSettings;
use serde_json::{Map, Value, json};
use simulator::topology;

/// Most hosts: one for each address of a small network.
pub(super) const MOST_HOSTS: u8 = 250;

/// Group of the hosts.
const GROUP: &str = "rack-1";

/// Path of the secrets.
pub(super) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Path of the hosts.
pub(super) const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts";

/// Host on the rack: a node of the simulated fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DemoHost {
    /// Number of the host, from 1.
    number: u8,
    xname: String,
}

/// Returns so many hosts.
pub(super) fn hosts(count: u8) -> Vec<DemoHost> {
    let nodes = topology::generate(count.into()).into_iter();
    (1..=count).zip(nodes).map(|(number, node)| DemoHost { number, xname: node.id }).collect()
}

/// Returns the template that boots every host.
pub(super) fn template() -> Map<String, Value> {
    let compute = json!({
        "path": "s3://boot-images/compute-2025.11/manifest.json",
        "type": "s3",
        "etag": "f3a90d1c77b54e2f8a6b5c0e9d214370",
        "kernel_parameters": "quiet crashkernel=512M rd.retry=10",
        "node_groups": [GROUP],
    });
    Map::from_iter([
        ("description".to_owned(), "Hosts of the rack".into()),
        ("boot_sets".to_owned(), json!({"rack": compute})),
    ])
}

impl DemoHost {
    /// Name of the host.
    pub(super) fn name(&self) -> String {
        format!("node-{}", self.number)
    }

    /// Id of the component that the host becomes.
    pub(super) fn xname(&self) -> &str {
        &self.xname
    }

    /// Returns the secret with the login at the BMC.
    pub(super) fn secret(&self, rack: &RackSettings) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.secret_name(), "namespace": "default"},
            "stringData": {"username": rack.username, "password": rack.password},
        })
    }

    /// Returns the host. Its address is one that no machine has, and names its node of the fleet.
    pub(super) fn manifest(&self) -> Value {
        let number = self.number;
        json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {
                "name": self.name(),
                "namespace": "default",
                "labels": {"reveille.io/group": GROUP},
                "annotations": {"reveille.io/xname": self.xname, "reveille.io/nid": number.to_string()},
            },
            "spec": {
                "online": true,
                "bootMACAddress": format!("02:00:00:00:00:{number:02x}"),
                "bmc": {
                    "address": format!("redfish-virtualmedia://192.0.2.{number}/redfish/v1/Systems/{}", self.xname),
                    "credentialsName": self.secret_name(),
                },
            },
        })
    }

    fn secret_name(&self) -> String {
        format!("{}-bmc", self.name())
    }
}
