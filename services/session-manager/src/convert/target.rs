//! Contents of images, and target states of members.

use chassis::kinds::component::{artifacts_to_wire, pause_to_wire};
use domain::{
    boot::{
        session::Session,
        template::{
            image::{ImageArtifacts, Rootfs},
            target::TargetState,
        },
    },
    core::id::ComponentId,
};
use proto::{
    component::{AssignSessionRequest, Assignment},
    simulation::GetImageResponse,
};

/// Reads the contents of an image's manifest. A root file system without a version cannot be compared, and counts as
/// absent.
pub(crate) fn image_from_wire(image: GetImageResponse) -> ImageArtifacts {
    let rootfs = image.rootfs.zip(image.rootfs_etag);
    ImageArtifacts {
        kernel: image.kernel,
        initrd: image.initrd,
        rootfs: rootfs.map(|(path, etag)| Rootfs { path, etag }),
        boot_parameters: image.boot_parameters,
    }
}

/// Converts the target state of one group of members.
pub(crate) fn assignment(members: &[ComponentId], target: &TargetState) -> Assignment {
    Assignment {
        ids: members.iter().map(|id| id.as_str().to_owned()).collect(),
        boot_artifacts: Some(artifacts_to_wire(&target.boot_artifacts)),
        configuration: target.configuration.clone(),
        clear_actual_state: target.clear_actual_state,
        clear_bss_token: target.clear_bss_token,
    }
}

/// Builds the call that assigns every member to `session` at once.
pub(crate) fn assign_session(session: &Session, assignments: Vec<Assignment>) -> AssignSessionRequest {
    AssignSessionRequest {
        assignment_id: session.id.clone(),
        session: session.name.clone(),
        assignments,
        stage: session.stage,
        tenant: session.tenant.as_str().to_owned(),
        pause: session.rollout_mark().as_ref().map(pause_to_wire),
        trace_parent: session.trace.to_string(),
    }
}
