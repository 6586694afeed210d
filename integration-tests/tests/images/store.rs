//! A process that stores objects as S3 does.

use std::{fs, path::Path, process::Stdio};

use chassis::settings;
use integration_tests::{authority::CertificateAuthority, ports::free_ports, tools};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// The only bucket.
pub const BUCKET: &str = "boot-images";

/// Names the key that opens the store.
const ACCESS_KEY: &str = "reveille";

/// The key.
pub const SECRET_KEY: &str = "s3cret+of/the=store";

/// A store that runs until it is stopped or dropped.
pub struct ObjectStore {
    port: u16,
    directory: TempDir,
    process: Child,
}

impl ObjectStore {
    /// Starts a store of `objects`, each a key and a content; `None` where the tools of the tests are not installed,
    /// and need not be.
    pub async fn start(objects: &[(String, String)]) -> Option<Self> {
        tools::program("moto_server")?;
        let directory = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::new();
        authority.issue(directory.path());
        fs::write(directory.path().join("authority.pem"), authority.pem()).unwrap();
        for (key, content) in objects {
            let object = directory.path().join("objects").join(BUCKET).join(key);
            fs::create_dir_all(object.parent().unwrap()).unwrap();
            fs::write(object, content).unwrap();
        }
        let port = free_ports(1)[0];
        let process = launch(directory.path(), port).await;
        let store = Self { port, directory, process };
        store.tell_key(SECRET_KEY);
        Some(store)
    }

    /// Stops it.
    pub async fn stop(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Starts it again at the same place, with the same objects.
    pub async fn start_again(&mut self) {
        self.process = launch(self.directory.path(), self.port).await;
    }

    /// Returns the settings of a mesh for the store.
    pub fn settings(&self) -> settings::Images {
        let path = |name| self.directory.path().join(name);
        let usual = settings::Images::default();
        settings::Images {
            driver: settings::ImagesDriver::S3,
            region: "eu-central-1".into(),
            s3: settings::Peer {
                url: format!("https://127.0.0.1:{}", self.port),
                ca_file: path("authority.pem"),
                credentials: format!("file:{}", path("keys.toml").display()),
                ..usual.s3
            },
            ..usual
        }
    }

    /// Writes the key of the store to the mesh's credentials.
    pub fn tell_key(&self, secret_key: &str) {
        let keys = format!("access_key = \"{ACCESS_KEY}\"\nsecret_key = \"{secret_key}\"\n");
        // Renamed into place, as operators and Kubernetes replace such files, so that no reader gets half a file.
        let file = self.directory.path().join("keys.toml");
        fs::write(file.with_extension("new"), keys).unwrap();
        fs::rename(file.with_extension("new"), file).unwrap();
    }
}

/// Objects of an image that the mesh reads: all but the root file system.
pub fn image(image: &str, boot_parameters: &str) -> Vec<(String, String)> {
    let artifact = |kind: &str, name: &str| {
        let link = json!({ "path": s3(image, name), "etag": format!("etag-of-{name}"), "type": "s3" });
        json!({ "type": format!("application/vnd.cray.image.{kind}"), "link": link, "md5": "unused" })
    };
    let artifacts = [
        artifact("kernel", "kernel"),
        artifact("initrd", "initrd"),
        artifact("rootfs.squashfs", "rootfs"),
        artifact("parameters.boot", "boot_parameters"),
    ];
    let manifest = json!({ "version": "1.0", "created": "2026-11-20 09:05:00", "artifacts": artifacts });
    vec![
        (format!("{image}/manifest.json"), manifest.to_string()),
        (format!("{image}/boot_parameters"), boot_parameters.to_owned()),
        (format!("{image}/kernel"), "-".to_owned()),
        (format!("{image}/initrd"), "-".to_owned()),
    ]
}

/// The path of a part of an image.
pub fn s3(image: &str, name: &str) -> String {
    format!("s3://{BUCKET}/{image}/{name}")
}

/// Starts the process and waits until it listens.
async fn launch(directory: &Path, port: u16) -> Child {
    let python = tools::program("python").unwrap();
    let log = fs::File::create(directory.join("log")).unwrap();
    let mut process = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/store.py"))
        .arg(port.to_string())
        .args(["certificate.pem", "key.pem", ACCESS_KEY, SECRET_KEY, "objects"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut told).await.unwrap();
    assert!(!told.is_empty(), "{}", fs::read_to_string(directory.join("log")).unwrap());
    process
}
