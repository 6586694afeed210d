//! Sizes of the buffers between a stream and its client.

/// Returns the size of a buffer that usually holds `usual` bytes or messages. In a simulation with narrow streams it
/// holds a 256th of that, so that a watch which nobody reads falls behind within seconds.
#[cfg(feature = "simulation")]
pub(crate) fn size(usual: usize) -> usize {
    if crate::simulation::has_narrow_streams() { usual / 256 } else { usual }
}

/// Returns the size of a buffer that holds `usual` bytes or messages.
#[cfg(not(feature = "simulation"))]
pub(crate) const fn size(usual: usize) -> usize {
    usual
}
