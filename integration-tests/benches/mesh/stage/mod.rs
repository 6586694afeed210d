//! The mesh under test: the program, its databases, and the systems around it.

mod binary;
mod postgres;
mod server;
mod surroundings;

use std::path::PathBuf;

pub use binary::build;
pub use postgres::PostgresServer;
pub use server::{Registry, Server};
pub use surroundings::PlayedSurroundings;

/// Storage of a mesh.
pub enum Database {
    /// A file for each part.
    Sqlite,
    /// A server for this run.
    Postgresql(Box<PostgresServer>),
}

impl Database {
    /// Returns the name of the database in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql(_) => "postgresql",
        }
    }

    /// Returns the number of committed transactions so far; `None` where the database does not count them.
    pub async fn commits(&self) -> Option<u64> {
        match self {
            Self::Sqlite => None,
            Self::Postgresql(server) => Some(server.commits().await),
        }
    }
}

/// The stage for one measurement after the other.
pub struct Stage {
    /// Storage of the meshes.
    pub database: Database,
    /// The program.
    pub program: PathBuf,
}
