//! States of power, and the transitions that change them.

use std::borrow::Cow;

use domain::core::invalid::Invalid;
use proto::power::{PowerState, Transition};

use crate::{
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

impl Resource for PowerState {
    const KIND: &'static str = "power_state";

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

impl WireForm for PowerState {
    type Message = Self;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, Self> {
        Cow::Borrowed(self)
    }

    fn from_wire(message: Self, (): &mut ()) -> Result<Self, Invalid> {
        Ok(message)
    }
}

impl MirroredKind for PowerState {}

impl Resource for Transition {
    const KIND: &'static str = "transition";

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

impl WireForm for Transition {
    type Message = Self;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, Self> {
        Cow::Borrowed(self)
    }

    fn from_wire(mut message: Self, (): &mut ()) -> Result<Self, Invalid> {
        // Decoding adds members one by one, which leaves room for as many more.
        message.members.shrink_to_fit();
        Ok(message)
    }
}
