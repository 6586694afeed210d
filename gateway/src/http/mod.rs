//! HTTP without a contract: the arrival of requests, their parsing and refusal, and the sending of answers. Faces build
//! on this module and bring their own paths, JSON, titles and texts; it knows none of them.
//!
//! - `serve`, `paced`, `refusal`: connections, the least pace of clients, and heads that cannot be parsed
//! - `certificate`: the certificate of a listener
//! - `trace`: request id and span; `admission`: places and room for bodies, by class
//! - `extract`, `query`: JSON bodies, names in paths, query parameters; `problem`: refusals
//! - `answer`, `stream`: JSON answers and lists of any length; `warnings`: remarks that are no refusals
//! - `call`, `retry`: calls to the services behind, their deadline, and the retry of reads
//! - `endpoint`: paths with their handlers; `document`, `description`: the OpenAPI document made from them

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod certificate;
pub(crate) mod description;
pub(crate) mod document;
pub(crate) mod endpoint;
pub(crate) mod extract;
mod paced;
pub(crate) mod problem;
pub(crate) mod query;
mod refusal;
pub(crate) mod retry;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod trace;
pub(crate) mod warnings;
