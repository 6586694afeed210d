//! A site without any other service: nodes behind BMCs that a real emulator, sushy-tools, plays.

pub mod emulator;
pub mod nodes;
pub mod site;
