//! Contents of the simulated boot script server and image store.

use std::{sync::Arc, time::Duration};

use proto::simulation::GetImageResponse;

/// Period of a node's reports if its command line names none: the default of `component_actual_state_ttl`, 4 h.
const UPDATE_FREQUENCY: Duration = Duration::from_secs(4 * 60 * 60);

/// Boot data that a node reads from its kernel command line (BOS reference 8).
#[derive(Debug, PartialEq, Eq)]
pub struct BootData {
    /// Token of the boot data.
    pub token: Arc<str>,
    /// Pause between two reports.
    pub report_period: Duration,
}

impl BootData {
    /// Accepts boot data: the server generates a token and appends it to the command line.
    pub fn accept(params: &str) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self::on(&format!("{params} bss_referral_token={token}"))
    }

    fn on(command_line: &str) -> Self {
        let frequency = word(command_line, "bos_update_frequency").and_then(duration);
        Self {
            token: word(command_line, "bss_referral_token").unwrap_or_default().into(),
            report_period: frequency.unwrap_or(UPDATE_FREQUENCY).mul_f64(0.75),
        }
    }
}

/// Returns the value of the first word `name=value`; words with more than one `=` do not count.
fn word<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    command_line
        .split(' ')
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('=').filter(|value| !value.contains('=')))
}

/// Parses a number with one of the units s, m, h, d, w. Zero is invalid, or a node would report without pause.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let number: u32 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number > 0)?;
    Some(Duration::from_secs(u64::from(number) * seconds))
}

/// Returns the image at a manifest path. Every image of every bucket exists; only the shape of the path is checked.
pub(crate) fn image(path: &str) -> Option<GetImageResponse> {
    let folder = path.strip_suffix("/manifest.json")?;
    let (bucket, image) = folder.strip_prefix("s3://")?.split_once('/')?;
    if bucket.is_empty() || image.is_empty() || image.contains('/') {
        return None;
    }
    let object = |name: &str| Some(format!("{folder}/{name}"));
    Some(GetImageResponse {
        kernel: object("kernel"),
        initrd: object("initrd"),
        rootfs: object("rootfs"),
        // A real store has a checksum; here the name identifies the content as well.
        rootfs_etag: Some(format!("{image}-1")),
        boot_parameters: Some("console=ttyS0,115200 ip=dhcp".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn reads_a_command_line_as_the_node_reporter_does() {
        let lines = [
            "bss_referral_token=t1",
            "bos_update_frequency=4h bss_referral_token=t1",
            "bos_update_frequency=2m bos_update_frequency=9m bss_referral_token=t1 bss_referral_token=t2",
            "bos_update_frequency=4H bss_referral_token=t1",
            "bos_update_frequency=0h bss_referral_token=t1",
            "bos_update_frequency=soon bss_referral_token=t=1",
        ];
        let seen = lines.map(|line| format!("{line}: {:?}\n", BootData::on(line)));
        expect![[r#"
            bss_referral_token=t1: BootData { token: "t1", report_period: 10800s }
            bos_update_frequency=4h bss_referral_token=t1: BootData { token: "t1", report_period: 10800s }
            bos_update_frequency=2m bos_update_frequency=9m bss_referral_token=t1 bss_referral_token=t2: BootData { token: "t1", report_period: 90s }
            bos_update_frequency=4H bss_referral_token=t1: BootData { token: "t1", report_period: 10800s }
            bos_update_frequency=0h bss_referral_token=t1: BootData { token: "t1", report_period: 10800s }
            bos_update_frequency=soon bss_referral_token=t=1: BootData { token: "", report_period: 10800s }
        "#]].assert_eq(&seen.concat());
    }

    #[test]
    fn every_acceptance_makes_up_a_token() {
        assert_ne!(BootData::accept("quiet").token, BootData::accept("quiet").token);
    }

    #[test]
    fn finds_images_by_the_shape_of_their_path() {
        let paths = [
            "s3://boot-images/compute-2025.11/manifest.json",
            "s3://boot-images/manifest.json",
            "s3://boot-images/a/b/manifest.json",
            "s3:///compute/manifest.json",
            "s3://boot-images//manifest.json",
            "s3://boot-images/compute/manifest.yaml",
            "https://boot-images/compute/manifest.json",
            "",
        ];
        expect![[r#"
            "s3://boot-images/compute-2025.11/manifest.json": Some(GetImageResponse { kernel: Some("s3://boot-images/compute-2025.11/kernel"), initrd: Some("s3://boot-images/compute-2025.11/initrd"), rootfs: Some("s3://boot-images/compute-2025.11/rootfs"), rootfs_etag: Some("compute-2025.11-1"), boot_parameters: Some("console=ttyS0,115200 ip=dhcp") })
            "s3://boot-images/manifest.json": None
            "s3://boot-images/a/b/manifest.json": None
            "s3:///compute/manifest.json": None
            "s3://boot-images//manifest.json": None
            "s3://boot-images/compute/manifest.yaml": None
            "https://boot-images/compute/manifest.json": None
            "": None
        "#]].assert_eq(&paths.map(|path| format!("{path:?}: {:?}\n", image(path))).concat());
    }
}
