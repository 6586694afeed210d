//! A mesh that needs no other service, and its machine file.

use std::{fmt::Write as _, fs, path::PathBuf};

use chassis::settings::{
    BootParametersDriver, ConfigurationDriver, HostDriverName, ImagesDriver, InventoryDriver, PowerDriver,
    Settings,
};
use serde_json::json;
use tempfile::TempDir;

use super::emulator::{PASSWORD, USER, path};
use crate::{authority::CertificateAuthority, mesh::Mesh};

/// Directory with the files of a site.
pub struct RedfishSite {
    directory: TempDir,
    machine: String,
    nodes: u32,
}

/// Place of a node's power.
pub struct RedfishPlace<'a> {
    /// Name of its BMC.
    pub bmc: &'a str,
    /// Place of its system in the list of the BMC.
    pub system: usize,
}

impl RedfishSite {
    /// Creates a site with images and without nodes, whose BMCs have certificates of `authority`.
    ///
    /// # Panics
    /// When its directory cannot be made.
    pub fn new(authority: &CertificateAuthority) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let site = Self { directory, machine: String::new(), nodes: 0 };
        fs::write(site.file("authority.pem"), authority.pem()).expect("a writable directory");
        for image in ["image-1", "image-2"] {
            site.add_image(image);
        }
        site
    }

    /// A file of the site.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file with the credentials of a BMC.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_credentials(&self, name: &str, password: &str) {
        let text = format!("username = '{USER}'\npassword = '{password}'\n");
        fs::write(self.file(name), text).expect("a writable directory");
    }

    /// Adds a BMC at `url`, which has its credentials in the file of its name.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn add_bmc(&mut self, name: &str, url: &str) {
        self.write_credentials(name, PASSWORD);
        let credentials = format!("file:{}", self.file(name).display());
        writeln!(self.machine, "[[bmc]]\nname = '{name}'\nurl = '{url}'\ncredentials = '{credentials}'")
            .expect("a text");
    }

    /// Adds a node and returns its id.
    pub fn add_node(&mut self, place: &RedfishPlace<'_>) -> String {
        let (id, mac) = (id(self.nodes), mac(self.nodes));
        let (bmc, system) = (place.bmc, path(place.system));
        writeln!(
            self.machine,
            "[[node]]\nid = '{id}'\nnid = {}\nmacs = ['{mac}']\nbmc = '{bmc}'\nsystem = '{system}'",
            self.nodes + 1
        )
        .expect("a text");
        self.nodes += 1;
        id
    }

    /// Starts the mesh of the site.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(&self) -> Mesh {
        Mesh::start(async |settings| {
            self.set(settings);
            // A test has no time.
            settings.power.poll_seconds = 0.5;
            settings.power.follow_seconds = 0.2;
            settings.power.effect_seconds = 5.0;
        })
        .await
    }

    /// Starts a mesh that knows no nodes but the bare-metal hosts that are registered with it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_with_hosts(&self) -> Mesh {
        Mesh::start(async |settings| {
            self.set(settings);
            settings.inventory.driver = InventoryDriver::Hosts;
            settings.inventory.lock_poll_seconds = 0.5;
            settings.power.driver = PowerDriver::Hosts;
            settings.power.poll_seconds = 0.5;
            settings.power.follow_seconds = 0.2;
            settings.power.effect_seconds = 5.0;
            settings.host_operations.driver = HostDriverName::Redfish;
            settings.host_operations.listing_seconds = 0.5;
            settings.host_operations.redfish.ca_file = self.file("authority.pem");
        })
        .await
    }

    /// Makes `settings` those of a mesh of the site.
    ///
    /// # Panics
    /// When its machine file cannot be written.
    pub fn set(&self, settings: &mut Settings) {
        fs::write(self.file("machine.toml"), &self.machine).expect("a writable directory");
        settings.simulator.nodes = self.nodes;
        settings.machine_file = self.file("machine.toml");
        settings.inventory.driver = InventoryDriver::File;
        settings.power.driver = PowerDriver::Redfish;
        settings.power.redfish.ca_file = self.file("authority.pem");
        settings.boot_parameters.driver = BootParametersDriver::BuiltIn;
        settings.boot_parameters.built_in.artifact_url = "http://127.0.0.1:9/images".to_owned();
        settings.configuration.driver = ConfigurationDriver::None;
        settings.images.driver = ImagesDriver::File;
        settings.images.directory = self.file("images");
    }

    fn add_image(&self, name: &str) {
        let folder = self.file("images").join("boot-images").join(name);
        let artifact = |kind: &str, file: &str| {
            let path = format!("s3://boot-images/{name}/{file}");
            json!({ "type": format!("application/vnd.cray.image.{kind}"), "link": { "path": path, "etag": "1" } })
        };
        let artifacts = [
            artifact("kernel", "kernel"),
            artifact("initrd", "initrd"),
            artifact("rootfs.squashfs", "rootfs"),
        ];
        fs::create_dir_all(&folder).expect("a writable directory");
        let manifest = json!({ "version": "1.0", "artifacts": artifacts });
        for (file, content) in [("manifest.json", &*manifest.to_string()), ("kernel", "-"), ("initrd", "-")] {
            fs::write(folder.join(file), content).expect("a writable directory");
        }
    }
}

/// Id of a node by its number.
pub fn id(node: u32) -> String {
    format!("x3000c0s{}b0n0", node + 1)
}

/// MAC address of a node by its number.
pub fn mac(node: u32) -> String {
    format!("02:00:00:00:00:{node:02x}")
}
