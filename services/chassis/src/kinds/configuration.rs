//! States of configuration.

use std::borrow::Cow;

use domain::core::invalid::Invalid;
use proto::configuration::ConfigurationState;

use crate::{
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

impl Resource for ConfigurationState {
    const KIND: &'static str = "configuration_state";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl WireForm for ConfigurationState {
    type Message = Self;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, Self> {
        Cow::Borrowed(self)
    }

    fn from_wire(message: Self, (): &mut ()) -> Result<Self, Invalid> {
        Ok(message)
    }
}

impl MirroredKind for ConfigurationState {}
