//! Annotations of a device that carry state (device reference 1.6).

use std::sync::Arc;

use crate::device::record::version::{RenderedVersion, TemplateVersionName};

/// Annotations of a device. People cannot write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceAnnotations {
    /// Latest version that was rendered; `None`: nothing was rendered yet.
    pub rendered_version: Option<RenderedVersion>,
    /// Digest of the spec that was rendered last; `None`: render the spec again.
    pub rendered_spec_hash: Option<SpecHash>,
    /// Mark that a restored database leaves on a device.
    pub restore_mark: Option<RestoreMark>,
    /// Template version that was last rolled out to the device.
    pub template_version: Option<TemplateVersionName>,
    /// Template version that was last rendered for the device.
    pub rendered_template_version: Option<TemplateVersionName>,
    /// Reason why the template could not be applied, for people; empty: it could.
    pub last_rollout_error: Arc<str>,
}

/// Digest of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpecHash(pub Arc<str>);

/// Mark that a restored database leaves on a device. The contract has an annotation for each; a device that is marked
/// again awaits its agent again, so there is never more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestoreMark {
    /// The agent has not been seen since the database was restored.
    AwaitingReconnect,
    /// The agent runs a newer version than the restored database knows. A person has to resume the device.
    ConflictPaused,
}
