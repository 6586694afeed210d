//! Options of BOS, and how closely BOS is followed (BOS reference 4, 12).

pub mod compatibility;
pub mod options;
