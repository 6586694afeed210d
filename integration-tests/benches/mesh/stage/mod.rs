//! What is measured: the mesh as the program that people run, its databases, and the systems around it.

mod binary;
mod postgres;
mod server;
mod surroundings;

use std::path::PathBuf;

pub use binary::build;
pub use postgres::Postgres;
pub use server::{Registry, Server};
pub use surroundings::Surroundings;

/// Where a mesh keeps its data.
pub enum Database {
    /// A file for each part.
    Sqlite,
    /// A server for this run.
    Postgresql(Box<Postgres>),
}

impl Database {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql(_) => "postgresql",
        }
    }

    /// Transactions that were committed so far; none where nobody counts them.
    pub async fn commits(&self) -> Option<u64> {
        match self {
            Self::Sqlite => None,
            Self::Postgresql(server) => Some(server.commits().await),
        }
    }
}

/// The stage for one measurement after the other.
pub struct Stage {
    /// Where meshes keep their data.
    pub database: Database,
    /// The program.
    pub program: PathBuf,
}
