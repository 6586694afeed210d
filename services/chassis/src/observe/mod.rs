//! Following what others keep: copies of their collections, and items that need a decision.

pub mod mirror;
pub mod work;
