//! Two and more replicas of every part on one PostgreSQL: whichever of them fails, no node is acted on twice or against
//! an earlier action, and no client fails that repeats calls that were refused for now.

mod clients;
mod fleet;
mod handover;
mod hosts;
