//! Inventories of simulated hosts: believable, and the same for the same host.

use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

/// Model of a server.
struct ServerModel {
    manufacturer: &'static str,
    product: &'static str,
    processor: &'static str,
    architecture: &'static str,
    threads: u32,
    memory_gib: u64,
    disks: &'static [(&'static str, u64)],
}

const MODELS: [ServerModel; 3] = [
    ServerModel {
        manufacturer: "HPE",
        product: "ProLiant DL385 Gen11",
        processor: "AMD EPYC 9354 32-Core Processor",
        architecture: "x86_64",
        threads: 128,
        memory_gib: 384,
        disks: &[("/dev/nvme0n1", 1920), ("/dev/nvme1n1", 1920)],
    },
    ServerModel {
        manufacturer: "Dell Inc.",
        product: "PowerEdge R650",
        processor: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz",
        architecture: "x86_64",
        threads: 128,
        memory_gib: 256,
        disks: &[("/dev/sda", 480), ("/dev/sdb", 4000), ("/dev/sdc", 4000)],
    },
    ServerModel {
        manufacturer: "Supermicro",
        product: "SYS-111E-WR",
        processor: "Intel(R) Xeon(R) Silver 4416+",
        architecture: "x86_64",
        threads: 40,
        memory_gib: 128,
        disks: &[("/dev/sda", 960)],
    },
];

/// Returns the inventory of the host with that seed, and its CPU architecture.
pub(super) fn inventory(name: &str, boot_mac: &str, seed: u64) -> (Value, &'static str) {
    let index = usize::try_from(seed % MODELS.len() as u64).unwrap_or(0);
    let model = &MODELS[index];
    let document = json!({
        "hostname": name.rsplit('/').next().unwrap_or(name),
        "systemVendor": {
            "manufacturer": model.manufacturer,
            "productName": model.product,
            "serialNumber": format!("SIM{:09}", seed % 1_000_000_000),
        },
        "firmware": {"bios": {"vendor": model.manufacturer, "version": "2.14", "date": "2025-03-01"}},
        "ramMebibytes": model.memory_gib * 1024,
        "cpu": {
            "arch": model.architecture,
            "model": model.processor,
            "count": model.threads,
            "clockMegahertz": 2000 + (seed % 16) * 100,
            "flags": ["aes", "avx", "avx2", "lm", "sse4_2"],
        },
        "nics": [nic("eno1", &first_mac(boot_mac, seed), 25, true), nic("eno2", &mac(seed, 2), 25, false)],
        "storage": model.disks.iter().enumerate().map(|(at, disk)| storage(*disk, seed, at)).collect::<Vec<_>>(),
    });
    (document, model.architecture)
}

fn nic(name: &str, mac: &str, speed: u32, boots: bool) -> Value {
    json!({"name": name, "model": "0x15b3 0x101d", "mac": mac, "speedGbps": speed, "pxe": boots})
}

fn storage((name, gigabytes): (&str, u64), seed: u64, at: usize) -> Value {
    let is_nvme = name.starts_with("/dev/nvme");
    let spins = !is_nvme && gigabytes > 2000;
    json!({
        "name": name,
        "type": if is_nvme { "NVME" } else if spins { "HDD" } else { "SSD" },
        "rotational": spins,
        "sizeBytes": gigabytes * GIB,
        "model": "Simulated disk",
        "serialNumber": format!("DISK{:06}{at}", seed % 1_000_000),
    })
}

fn first_mac(boot_mac: &str, seed: u64) -> String {
    if boot_mac.is_empty() { mac(seed, 1) } else { boot_mac.to_lowercase() }
}

/// Returns a MAC address of the locally administered range.
fn mac(seed: u64, port: u8) -> String {
    let [_, _, _, _, a, b, c, d] = seed.to_be_bytes();
    format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{port:02x}")
}
