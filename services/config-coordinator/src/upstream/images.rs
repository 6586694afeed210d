//! The upstream that projects the root file systems of images: nodes with `root=sbps-s3` mount theirs from the place
//! where the image management service has it served (BOS reference 5.5 step 3, 6.7).

use std::time::Duration;

use ::upstream::{Peer, Request};
use chassis::settings::{CatalogueDriver, Images};
use domain::boot::{component::artifacts::BootArtifacts, template::image};
use serde_json::json;

use super::{Failure, FailureKind, peer};

/// Kernel parameter that requests a projected root file system.
const PROJECTED: &str = "root=sbps-s3";

/// Word in place of the id in the path of an image that was deleted and can be restored.
const DELETED: &str = "deleted";

/// Upstreams that project images.
#[derive(Clone)]
pub(crate) enum ImageUpstream {
    /// No upstream: other systems serve the images.
    Nobody,
    /// The image management service.
    Ims(Peer),
}

impl ImageUpstream {
    /// Returns the driver that the settings name.
    ///
    /// # Errors
    /// When it cannot be called with these settings.
    pub(crate) fn new(settings: &Images) -> anyhow::Result<Self> {
        Ok(match settings.catalogue {
            CatalogueDriver::None => Self::Nobody,
            CatalogueDriver::Ims => Self::Ims(peer("IMS", "images.ims", &settings.ims)?),
        })
    }

    /// Returns whether the upstream has to be called before `artifacts` can be booted.
    pub(crate) fn is_needed(&self, artifacts: &BootArtifacts) -> bool {
        match self {
            Self::Nobody => false,
            Self::Ims(_) => is_projected(artifacts),
        }
    }

    /// Requests that the root file system of the image of the kernel at `path` is served.
    pub(crate) async fn project(&self, path: &str, deadline: Duration) -> Result<(), Failure> {
        match self {
            Self::Nobody => Ok(()),
            Self::Ims(ims) => {
                let id = image_id(path).map_err(|text| Failure {
                    kind: FailureKind::Refused,
                    status: None,
                    text,
                })?;
                let metadata = json!({ "operation": "set", "key": "sbps-project", "value": "true" });
                let request = Request::patch("image_project", format!("/images/{id}"))
                    .json(&json!({ "metadata": metadata }))
                    .items(1)
                    .answer_within(deadline);
                ims.call(request).await.map(drop)
            }
        }
    }
}

/// Returns whether the root file system is projected. BOS searches the parameters for the text at any place, and so
/// does this function.
fn is_projected(artifacts: &BootArtifacts) -> bool {
    artifacts.kernel_parameters.as_deref().is_some_and(|parameters| parameters.contains(PROJECTED))
}

/// Returns the id of the image of the kernel at `path`, as it stands in a URL; or the reason why there is none.
fn image_id(path: &str) -> Result<&str, String> {
    let Some(id) = image::ims_id(path) else {
        return Err(format!("the path of the kernel '{path}' names no image"));
    };
    if id == DELETED {
        return Err(format!("the image of the kernel '{path}' is deleted"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    if id.chars().all(plain) {
        Ok(id)
    } else {
        Err(format!("the path of the kernel '{path}' names no image"))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_path_of_the_kernel_names_the_image() {
        let rows = [
            "s3://boot-images/3f4b-11/kernel",
            "s3://other/not-a-uuid/deep/kernel",
            "s3://boot-images/deleted/3f4b-11/kernel",
            "s3://boot-images/kernel",
            "s3://boot-images/a?b/kernel",
            "https://host/kernel",
            "",
        ];
        let told: String = rows
            .iter()
            .map(|path| match image_id(path) {
                Ok(id) => format!("{path}: {id}\n"),
                Err(why) => format!("{path}: no, {why}\n"),
            })
            .collect();
        expect![[r#"
            s3://boot-images/3f4b-11/kernel: 3f4b-11
            s3://other/not-a-uuid/deep/kernel: not-a-uuid
            s3://boot-images/deleted/3f4b-11/kernel: no, the image of the kernel 's3://boot-images/deleted/3f4b-11/kernel' is deleted
            s3://boot-images/kernel: no, the path of the kernel 's3://boot-images/kernel' names no image
            s3://boot-images/a?b/kernel: no, the path of the kernel 's3://boot-images/a?b/kernel' names no image
            https://host/kernel: no, the path of the kernel 'https://host/kernel' names no image
            : no, the path of the kernel '' names no image
        "#]].assert_eq(&told);
    }

    #[test]
    fn only_projected_root_file_systems_are_projected() {
        for (parameters, projected) in [
            (None, false),
            (Some(""), false),
            (Some("quiet root=sbps-s3:s3://boot-images/i/rootfs:etag:wwn nmd"), true),
            (Some("root=craycps-s3:s3://boot-images/i/rootfs"), false),
        ] {
            let artifacts =
                BootArtifacts { kernel_parameters: parameters.map(Into::into), ..BootArtifacts::default() };
            assert_eq!(is_projected(&artifacts), projected, "{parameters:?}");
        }
    }
}
