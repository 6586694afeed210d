//! The state that handlers of this face share.

use crate::mesh::MeshHandle;

/// Clients of the services behind this face. Clones share them.
#[derive(Clone)]
pub(crate) struct FlightctlFace {
    pub mesh: MeshHandle,
}

impl FlightctlFace {
    pub(crate) fn new(mesh: MeshHandle) -> Self {
        Self { mesh }
    }
}
