//! Options of BOS, and the strictness with which BOS is followed (BOS reference 4, 12).

pub mod compatibility;
pub mod option_event;
pub mod options;
