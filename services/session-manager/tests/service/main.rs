//! The session manager against its own database and peers that answer as they are told to.

mod completion;
mod peers;
mod records;
mod restart;
mod setup;
mod world;
