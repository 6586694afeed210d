//! How closely to follow BOS where BOS is wrong.

/// Choices about defects of BOS that clients may have come to depend on (BOS reference 12, code C).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compatibility {
    /// Whether to repeat such defects instead of mending them. Unsafe actions are never repeated.
    pub strict_bos: bool,
}
