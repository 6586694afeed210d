//! The state that handlers of this face share.

use axum::extract::FromRef;
use chassis::Settings;

use crate::mesh::MeshHandle;

/// Services, and the strictness of following BOS. Clones share the services.
#[derive(Clone)]
pub(crate) struct BosFace {
    pub mesh: MeshHandle,
    /// Whether to repeat surprising answers of BOS.
    pub strict: bool,
}

impl BosFace {
    pub(crate) fn new(mesh: MeshHandle, settings: &Settings) -> Self {
        Self { mesh, strict: settings.compat.strict_bos }
    }
}

impl FromRef<BosFace> for MeshHandle {
    fn from_ref(face: &BosFace) -> Self {
        face.mesh.clone()
    }
}
