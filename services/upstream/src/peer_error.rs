//! A setting with which a peer cannot be called.

/// The setting, and why it is refused.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct PeerError {
    /// Name of the setting within the peer's section.
    pub field: &'static str,
    /// Reason of the refusal.
    pub reason: String,
}
