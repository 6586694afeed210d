//! The state that handlers of this face share.

use axum::extract::FromRef;
use chassis::Settings;

use crate::mesh::Mesh;

/// The services, and how closely to follow BOS. Clones share the services.
#[derive(Clone)]
pub(crate) struct BosFace {
    pub mesh: Mesh,
    /// Repeat surprising answers of BOS.
    pub strict: bool,
}

impl BosFace {
    pub(crate) fn new(mesh: Mesh, settings: &Settings) -> Self {
        Self { mesh, strict: settings.compat.strict_bos }
    }
}

impl FromRef<BosFace> for Mesh {
    fn from_ref(face: &BosFace) -> Self {
        face.mesh.clone()
    }
}
