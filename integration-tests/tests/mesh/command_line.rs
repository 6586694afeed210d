//! The program `reveille` as people start it.
