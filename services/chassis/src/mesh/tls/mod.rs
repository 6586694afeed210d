//! TLS of the parts: as servers, as clients of one another, and the certificates for it.
//!
//! Between the parts both ends present a certificate of the same authorities, and the identity in it decides; names of
//! machines do not count, so certificates as SPIRE makes them are enough. Files are checked with each new connection, and
//! read again when they changed. Connections that exist keep the certificates that they began with.
//!
//! A listener for clients of other kinds verifies certificates by authorities that its owner sets at any time, and leaves
//! the decision about a client to the requests, which then can name the reason.

mod authorities;
mod authority;
mod client;
mod files;
mod reloaded;
mod server;

pub use authorities::ClientAuthorities;
pub use authority::{CertificateIssuer, IssuedCertificate, self_signed, write_private};
pub(crate) use client::ClientTls;
pub use files::CertificateFiles;
pub use reloaded::ReloadedValue;
pub use server::{AcceptedTls, CallerVerdict, ClientCertificate, ServerTls};
