//! Tests of the whole mesh. One binary, because linking every part takes longer than running most tests.

mod boot;
mod processes;
mod rest;
