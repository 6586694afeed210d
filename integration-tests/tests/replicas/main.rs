//! Two and more replicas of every part on one PostgreSQL: they share the work, and whatever becomes of one of them,
//! no node is acted on twice or against an earlier action, and no client fails that repeats what was refused for now.

mod clients;
mod fleet;
mod handover;
