//! Sizes of the buffers between a stream and its client.

#[cfg(feature = "simulation")]
pub(crate) use crate::simulation::buffer_size as size;

/// Returns the size of a buffer that holds `usual` bytes or messages.
#[cfg(not(feature = "simulation"))]
pub(crate) const fn size(usual: usize) -> usize {
    usual
}
