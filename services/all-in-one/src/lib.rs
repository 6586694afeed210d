//! The whole mesh in one process: the same parts, tables and gRPC calls as in a cluster, over loopback.

pub mod mesh;
pub mod surroundings;
