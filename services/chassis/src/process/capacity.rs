//! Memory and file descriptors that the process may have.

use std::{fs, path::Path};

use crate::settings::Settings;

const MIB: u64 = 1 << 20;

/// Memory that each part needs with 10,000 nodes, as LIMITS.md documents it.
const MINIMA: [(&str, u64); 10] = [
    ("component_registry", 192 * MIB),
    ("session_manager", 128 * MIB),
    ("status_evaluator", 128 * MIB),
    ("power_controller", 128 * MIB),
    ("config_coordinator", 128 * MIB),
    ("host_provisioner", 128 * MIB),
    ("fleet_manager", 128 * MIB),
    ("insight", 128 * MIB),
    ("gateway", 64 * MIB),
    ("simulator", 64 * MIB),
];

/// Memory and file descriptors that the process may have; `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessCapacity {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// File descriptors.
    pub descriptors: Option<u64>,
}

impl ProcessCapacity {
    /// The limits of this process. A limit of memory in the settings takes the place of the control group's.
    pub fn of_process(settings: &Settings) -> Self {
        let memory = match settings.limits.memory_bytes {
            0 => control_group_limit(),
            bytes => Some(bytes),
        };
        Self { memory, descriptors: descriptor_limit() }
    }

    /// Bytes of one budget that should have `wanted`.
    pub fn share(&self, wanted: u64) -> u64 {
        domain::core::capacity::budget(wanted, self.memory)
    }

    /// Connections that may be accepted where there should be `wanted`.
    pub fn connections(&self, wanted: u32) -> u32 {
        domain::core::capacity::connections(wanted, self.descriptors)
    }

    /// Warns when the process may have less memory than `parts` need together.
    pub(crate) fn check(&self, parts: &[&str]) {
        let Some(limit) = self.memory else { return };
        let minimum = minimum(parts);
        if limit < minimum {
            tracing::warn!(
                limit_mib = limit / MIB,
                minimum_mib = minimum / MIB,
                "the memory limit is below the documented minimum; the process may be killed under load"
            );
        }
    }
}

/// Returns the memory that `parts` need in one process; that of all parts, if none is named.
fn minimum(parts: &[&str]) -> u64 {
    let counted = MINIMA.iter().filter(|(part, _)| parts.is_empty() || parts.contains(part));
    counted.map(|(_, bytes)| bytes).sum()
}

/// The memory limit of the control group of this process, or of the nearest ancestor with a smaller one.
fn control_group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let files = groups.lines().flat_map(limit_files);
    let limits: Vec<_> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    domain::core::capacity::memory_limit(limits.iter().map(String::as_str))
}

/// The files with the memory limits of a control group and its ancestors. `group` is a line of `/proc/self/cgroup`.
fn limit_files(group: &str) -> Vec<String> {
    let mut parts = group.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        v1 if v1.split(',').any(|controller| controller == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let ancestors = Path::new(path).ancestors();
    ancestors
        .map(|ancestor| format!("{root}{}/{file}", ancestor.display().to_string().trim_end_matches('/')))
        .collect()
}

#[cfg(target_os = "linux")]
pub(super) fn descriptor_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descriptor_limit() -> Option<u64> {
    None
}

/// Raises the limit of file descriptors as far as the process may.
pub(crate) fn raise_descriptor_limit() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::debug!(%error, "the limit of file descriptors stays as it is");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_ancestors_are_read() {
        for (group, files) in [
            ("0::/", vec!["/sys/fs/cgroup/memory.max"]),
            (
                "0::/pods/a",
                vec![
                    "/sys/fs/cgroup/pods/a/memory.max",
                    "/sys/fs/cgroup/pods/memory.max",
                    "/sys/fs/cgroup/memory.max",
                ],
            ),
            ("9:memory:/", vec!["/sys/fs/cgroup/memory/memory.limit_in_bytes"]),
            ("4:cpu,cpuacct:/a", vec![]),
            ("nonsense", vec![]),
        ] {
            assert_eq!(limit_files(group), files, "{group}");
        }
    }

    #[test]
    fn parts_in_one_process_need_the_sum() {
        assert_eq!(minimum(&["gateway"]), 64 * MIB);
        assert_eq!(minimum(&[]), 1216 * MIB);
    }
}
