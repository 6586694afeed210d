//! The wanted state of the members of a boot set (BOS reference 5.4.4, 5.4.5).

use std::sync::Arc;

use super::{BootSet, SessionTemplate};
use crate::{
    boot::{
        component::artifacts::BootArtifacts,
        template::image::{ImageArtifacts, Rootfs},
    },
    core::limits::LONGEST_KERNEL_PARAMETERS,
};

/// Only provider of root file systems that works.
const SBPS: &str = "sbps";

/// Wanted state of every member of a boot set, and the state to forget when that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// Artifacts to boot; empty: nothing, the node should be off.
    pub boot_artifacts: BootArtifacts,
    /// Name of the configuration; empty: none.
    pub configuration: String,
    /// Whether the reported boot is forgotten, so that a node boots even if it runs the target.
    pub clear_actual_state: bool,
    /// Whether the token of earlier boot data is forgotten.
    pub clear_bss_token: bool,
}

/// A boot set that cannot be booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("boot set '{boot_set}': {obstacle}")]
pub struct Unbootable {
    /// Name of the boot set.
    pub boot_set: String,
    /// Reason why it cannot be booted.
    pub obstacle: Obstacle,
}

/// Reason why a boot set cannot be booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The template has no boot set of that name.
    #[error("the template has no such boot set")]
    NoBootSet,
    /// The image has no kernel.
    #[error("the image has no kernel")]
    NoKernel,
    /// The image has no initial RAM disk.
    #[error("the image has no initrd")]
    NoInitrd,
    /// The provider needs a root file system.
    #[error("the image has no rootfs, which rootfs_provider '{SBPS}' needs")]
    NoRootfs,
    /// The provider is not supported, so nodes would not find their root file system.
    #[error("unsupported rootfs_provider '{0}'")]
    UnsupportedProvider(String),
    /// The parameters of image, template and Reveille are too long together.
    #[error(
        "kernel_parameters have {0} characters together with those of the image but may have at most \
         {LONGEST_KERNEL_PARAMETERS}"
    )]
    TooLong(usize),
}

/// Returns the target of a boot session for the members of a boot set. `update_frequency` is the option
/// `component_actual_state_ttl`, from which nodes derive how often to report.
///
/// # Errors
/// When image and boot set together give nothing that could boot.
pub fn boot(
    template: &SessionTemplate,
    boot_set_name: &str,
    image: &ImageArtifacts,
    update_frequency: &str,
) -> Result<TargetState, Unbootable> {
    let Some(boot_set) = template.boot_sets.get(boot_set_name) else {
        return Err(unbootable(boot_set_name, Obstacle::NoBootSet));
    };
    Ok(TargetState {
        boot_artifacts: artifacts(boot_set, image, update_frequency)
            .map_err(|obstacle| unbootable(boot_set_name, obstacle))?,
        configuration: template.configuration(boot_set).to_owned(),
        clear_actual_state: false,
        clear_bss_token: false,
    })
}

/// Returns the target of a reboot session: as [`boot`], but no node counts as booted already.
///
/// # Errors
/// As [`boot`].
pub fn reboot(
    template: &SessionTemplate,
    boot_set_name: &str,
    image: &ImageArtifacts,
    update_frequency: &str,
) -> Result<TargetState, Unbootable> {
    let target = boot(template, boot_set_name, image, update_frequency)?;
    Ok(TargetState { clear_actual_state: true, ..target })
}

/// Returns the target of a shutdown session: nothing to run.
pub fn shutdown() -> TargetState {
    TargetState {
        boot_artifacts: BootArtifacts::empty(),
        configuration: String::new(),
        clear_actual_state: false,
        clear_bss_token: true,
    }
}

/// Builds the kernel command line. Later words override earlier ones in the kernel, so the boot set overrides the
/// image.
fn kernel_parameters(
    boot_set: &BootSet,
    image: &ImageArtifacts,
    update_frequency: &str,
) -> Result<String, Obstacle> {
    let mut pieces: Vec<String> =
        image.boot_parameters.iter().flat_map(|file| file.split_whitespace()).map(str::to_owned).collect();
    pieces.extend(boot_set.kernel_parameters.clone().filter(|own| !own.is_empty()));
    pieces.extend(rootfs_parameters(boot_set, image)?);
    pieces.push(format!("bos_update_frequency={update_frequency}"));
    let line = pieces.join(" ");
    match line.chars().count() {
        0..=LONGEST_KERNEL_PARAMETERS => Ok(line),
        characters => Err(Obstacle::TooLong(characters)),
    }
}

/// Returns the parameters for finding the root file system, and for storing the memory of a crashed node.
fn rootfs_parameters(boot_set: &BootSet, image: &ImageArtifacts) -> Result<Vec<String>, Obstacle> {
    let passthrough = boot_set.rootfs_provider_passthrough.as_deref().filter(|words| !words.is_empty());
    match boot_set.rootfs_provider.as_deref() {
        None => Ok(passthrough.map(|words| format!("root=::{words}")).into_iter().collect()),
        Some(SBPS) => {
            let Rootfs { path, etag } = image.rootfs.as_ref().ok_or(Obstacle::NoRootfs)?;
            let tail = passthrough.map(|words| format!(":{words}")).unwrap_or_default();
            Ok(vec![format!("root=sbps-s3:{path}:{etag}{tail}"), format!("nmd_data=url={path},etag={etag}")])
        }
        Some(other) => Err(Obstacle::UnsupportedProvider(other.to_owned())),
    }
}

fn artifacts(
    boot_set: &BootSet,
    image: &ImageArtifacts,
    update_frequency: &str,
) -> Result<BootArtifacts, Obstacle> {
    let kernel = image.kernel.as_deref().ok_or(Obstacle::NoKernel)?;
    let initrd = image.initrd.as_deref().ok_or(Obstacle::NoInitrd)?;
    Ok(BootArtifacts {
        kernel: Some(Arc::from(kernel)),
        kernel_parameters: Some(kernel_parameters(boot_set, image, update_frequency)?.into()),
        initrd: Some(Arc::from(initrd)),
        timestamp: None,
    })
}

fn unbootable(boot_set_name: &str, obstacle: Obstacle) -> Unbootable {
    Unbootable { boot_set: boot_set_name.to_owned(), obstacle }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::template::tests::{boot_set, cfs, template};

    fn image() -> ImageArtifacts {
        ImageArtifacts {
            kernel: Some("s3://i/kernel".to_owned()),
            initrd: Some("s3://i/initrd".to_owned()),
            rootfs: Some(Rootfs { path: "s3://i/rootfs".to_owned(), etag: "e1".to_owned() }),
            boot_parameters: None,
        }
    }

    fn with(provider: Option<&str>, passthrough: Option<&str>, parameters: Option<&str>) -> BootSet {
        BootSet {
            rootfs_provider: provider.map(str::to_owned),
            rootfs_provider_passthrough: passthrough.map(str::to_owned),
            kernel_parameters: parameters.map(str::to_owned),
            ..boot_set("n0")
        }
    }

    #[test]
    fn the_command_line_is_joined_in_order() {
        let bare = ImageArtifacts { rootfs: None, ..image() };
        let parameters = |text: &str| ImageArtifacts { boot_parameters: Some(text.to_owned()), ..image() };
        let long = "k".repeat(4096 - " bos_update_frequency=4h".len());
        let mut rows = String::new();
        for (image, boot_set) in [
            (image(), with(None, None, None)),
            (image(), with(None, Some(""), Some(""))),
            (image(), with(None, Some("P"), None)),
            (image(), with(Some("sbps"), None, None)),
            (image(), with(Some("sbps"), Some(""), None)),
            (image(), with(Some("sbps"), Some("v1:iqn:300"), Some("console=ttyS0  quiet "))),
            (parameters(" a=1\tb\n\nc=${SPIRE_JOIN_TOKEN} \n"), with(Some("sbps"), Some("P"), Some("a=2"))),
            (parameters("\n"), with(None, None, Some("a=2"))),
            (bare.clone(), with(None, Some("P"), None)),
            (bare, with(Some("sbps"), None, None)),
            (image(), with(Some("cpss3"), None, None)),
            (image(), with(None, None, Some(&format!("{long}k")))),
        ] {
            match kernel_parameters(&boot_set, &image, "4h") {
                Ok(line) => rows += &format!("{line}\n"),
                Err(obstacle) => rows += &format!("error: {obstacle}\n"),
            }
        }
        expect![[r#"
            bos_update_frequency=4h
            bos_update_frequency=4h
            root=::P bos_update_frequency=4h
            root=sbps-s3:s3://i/rootfs:e1 nmd_data=url=s3://i/rootfs,etag=e1 bos_update_frequency=4h
            root=sbps-s3:s3://i/rootfs:e1 nmd_data=url=s3://i/rootfs,etag=e1 bos_update_frequency=4h
            console=ttyS0  quiet  root=sbps-s3:s3://i/rootfs:e1:v1:iqn:300 nmd_data=url=s3://i/rootfs,etag=e1 bos_update_frequency=4h
            a=1 b c=${SPIRE_JOIN_TOKEN} a=2 root=sbps-s3:s3://i/rootfs:e1:P nmd_data=url=s3://i/rootfs,etag=e1 bos_update_frequency=4h
            a=2 bos_update_frequency=4h
            root=::P bos_update_frequency=4h
            error: the image has no rootfs, which rootfs_provider 'sbps' needs
            error: unsupported rootfs_provider 'cpss3'
            error: kernel_parameters have 4097 characters together with those of the image but may have at most 4096
        "#]].assert_eq(&rows);
        assert!(kernel_parameters(&with(None, None, Some(&long)), &image(), "4h").is_ok());
    }

    #[test]
    fn operations_differ_in_what_they_forget() {
        let template =
            SessionTemplate { cfs: cfs("c"), ..template([("b", with(None, None, Some("quiet")))]) };
        let target = TargetState {
            boot_artifacts: BootArtifacts {
                kernel: Some("s3://i/kernel".into()),
                kernel_parameters: Some("quiet bos_update_frequency=1d".into()),
                initrd: Some("s3://i/initrd".into()),
                timestamp: None,
            },
            configuration: "c".to_owned(),
            clear_actual_state: false,
            clear_bss_token: false,
        };
        assert_eq!(boot(&template, "b", &image(), "1d"), Ok(target.clone()));
        assert_eq!(
            reboot(&template, "b", &image(), "1d"),
            Ok(TargetState { clear_actual_state: true, ..target.clone() })
        );
        let off = SessionTemplate { enable_cfs: Some(false), ..template };
        assert_eq!(
            boot(&off, "b", &image(), "1d"),
            Ok(TargetState { configuration: String::new(), ..target })
        );
        assert!(!shutdown().boot_artifacts.kernel_wanted());
        assert!(shutdown().clear_bss_token);
    }

    #[test]
    fn a_boot_set_that_cannot_boot_is_named() {
        let template = template([
            ("good", boot_set("n0")),
            ("long", with(None, None, Some(&"ä".repeat(4096)))),
            ("odd", with(Some("nfs"), None, None)),
            ("sbps", with(Some("sbps"), None, None)),
        ]);
        let nothing = ImageArtifacts::default();
        let no_initrd = ImageArtifacts { initrd: None, ..image() };
        let no_rootfs = ImageArtifacts { rootfs: None, ..image() };
        let rows: String = [
            ("good", &nothing),
            ("good", &no_initrd),
            ("sbps", &no_rootfs),
            ("odd", &image()),
            ("long", &image()),
            ("gone", &image()),
        ]
        .into_iter()
        .map(|(name, image)| match reboot(&template, name, image, "4h") {
            Ok(target) => format!("{name} boots {target:?}\n"),
            Err(error) => format!("{error}\n"),
        })
        .collect();
        expect![[r#"
            boot set 'good': the image has no kernel
            boot set 'good': the image has no initrd
            boot set 'sbps': the image has no rootfs, which rootfs_provider 'sbps' needs
            boot set 'odd': unsupported rootfs_provider 'nfs'
            boot set 'long': kernel_parameters have 4120 characters together with those of the image but may have at most 4096
            boot set 'gone': the template has no such boot set
        "#]].assert_eq(&rows);
    }
}
