//! Requests of agents to be enrolled (device reference 3.3).

use chassis::Server;

/// Serves requests of agents.
pub(crate) fn serve(_server: &mut Server) {}
