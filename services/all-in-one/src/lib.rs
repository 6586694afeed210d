//! The whole mesh in one process: the same services, tables and gRPC calls as in a cluster, over the loopback
//! interface.

pub mod mesh;
pub mod surroundings;
