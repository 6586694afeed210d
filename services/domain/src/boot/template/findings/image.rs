//! Findings about the image of a boot set (BOS reference 7.3, 7.4).

use super::{Rules, Said, Warning};
use crate::boot::{
    bos::options::Options,
    template::{
        Arch, BootSet, Known, SessionTemplate,
        image::{Contents, Listing, Manifest, Part, STORE_TYPE, ims_id},
        target::{self, Obstacle},
    },
};

/// Check 5: the store has all that the boot set needs. The first warning hides others. An image without a lookup gives
/// no finding.
pub(super) fn artifacts(boot_set: &BootSet, known: &Known) -> Warning {
    let unfound = |why: &dyn std::fmt::Display| format!("Can't find boot artifacts. Error: {why}");
    if boot_set.kind != STORE_TYPE {
        let why = format!("No BootImageMetadata class for type {}", boot_set.kind);
        return Err(Said::new("type", unfound(&why)));
    }
    let path = &boot_set.path;
    let contents = match known.contents.get(path) {
        None => return Ok(None),
        Some(Err(unreadable)) => return Err(Said::new("path", unfound(unreadable))),
        Some(Ok(contents)) => contents,
    };
    let Contents { manifest: Manifest { kernel, initrd, .. }, missing, .. } = contents;
    let no_kernel = || "the manifest lists none".to_owned();
    let kernel_trouble = missing.get(&Part::Kernel).cloned().or_else(|| kernel.is_none().then(no_kernel));
    if let Some(why) = kernel_trouble {
        return Err(Said::new("path", format!("Can't find kernel in {path}. Error: {why}")));
    }
    if initrd.is_none() {
        return Ok(Some(Said::new("path", format!("{path} doesn't contain a initrd"))));
    }
    let first = missing.iter().next();
    Ok(first.map(|(part, why)| {
        Said::new("path", format!("Unable to check {} in {path}. Warning: {why}", part.word()))
    }))
}

/// Check 6: the catalogue has the image, with the architecture of the boot set. An image without a lookup gives no
/// finding, and neither does any image if there is no catalogue.
pub(super) fn catalogue(boot_set: &BootSet, known: &Known, options: &Options) -> Warning {
    let unverified = |why: &str| Said::new("path", format!("Can't validate boot image arch: {why}"));
    let Some(listings) = &known.listings else { return Ok(None) };
    let Some(id) = ims_id(&boot_set.path) else {
        return Ok(Some(unverified(&format!("'{}' is not the path of an IMS image", boot_set.path))));
    };
    match listings.get(id) {
        None => Ok(None),
        Some(Listing::Absent) => {
            let said = Said::new("path", format!("IMS image id '{id}' does not exist in IMS"));
            if options.ims_images_must_exist { Err(said) } else { Ok(Some(said)) }
        }
        Some(Listing::Silent(why)) => {
            if options.ims_errors_fatal {
                Err(unverified(why))
            } else {
                Ok(Some(unverified(why)))
            }
        }
        Some(Listing::Image { arch }) => architecture(boot_set.arch.unwrap_or_default(), arch),
    }
}

fn architecture(wanted: Arch, actual: &str) -> Warning {
    let expected = match wanted {
        Arch::X86 | Arch::Unknown => "x86_64",
        Arch::Arm => "aarch64",
        Arch::Other => {
            let text = "Can't validate boot image arch: Boot set arch set to 'Other'";
            return Ok(Some(Said::new("arch", text)));
        }
    };
    if expected == actual {
        return Ok(None);
    }
    let text = format!(
        "Boot set arch '{}' means IMS image arch should be '{expected}', but actual IMS image arch is '{actual}'",
        wanted.word()
    );
    Err(Said::new("arch", text))
}

/// Returns a defect that BOS does not check and that keeps sessions from booting: too long a command line (BOS
/// reference 12, BUG-25), or a missing root file system. While the contents of the file of boot parameters are unknown,
/// the command line may be longer than computed.
pub(super) fn obstacle(
    template: &SessionTemplate,
    name: &str,
    boot_set: &BootSet,
    known: &Known,
    rules: Rules<'_>,
) -> Option<Said> {
    if rules.compatibility.strict_bos {
        return None;
    }
    let contents = known.contents.get(&boot_set.path)?.as_ref().ok()?;
    let image = contents.manifest.clone().artifacts(contents.boot_parameters.clone());
    let frequency = rules.options.actual_state_ttl_parameter();
    let obstacle = target::boot(template, name, &image, &frequency).err()?.obstacle;
    let field = match obstacle {
        Obstacle::NoRootfs => "rootfs_provider",
        Obstacle::TooLong(_) => "kernel_parameters",
        // These obstacles are found by other checks, or are impossible.
        Obstacle::NoKernel | Obstacle::NoInitrd | Obstacle::UnsupportedProvider(_) | Obstacle::NoBootSet => {
            return None;
        }
    };
    Some(Said::new(field, format!("{obstacle}: boot/reboot sessions will fail")))
}
