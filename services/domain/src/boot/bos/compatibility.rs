//! How closely to follow BOS where BOS is wrong.
//!
//! Most defects of BOS are mended for everybody, and some of its oddities are kept for everybody. Those here are
//! mended too, and repeated where BOS is followed strictly, so that clients that came to depend on them find what
//! they are used to (BOS reference 12, code C):
//!
//! | defect | where it is repeated or mended |
//! |---|---|
//! | BUG-01: `enabled=false` alone filters nothing | gateway |
//! | BUG-02: `DELETE /v2/sessions` without filters deletes all of them | gateway |
//! | BUG-03: `ids` of a list has at most 127 characters | gateway |
//! | BUG-14: unknown architectures | [`crate::boot::session::membership`] |
//! | BUG-15: who is both in a session and staged by it counts twice | [`crate::boot::session::status`] |
//! | BUG-22: an outage during the setup of a session ends the session after ten tries | session manager, `Setback::followed` |
//! | BUG-29: `PUT` of components ignores the tenant | gateway |
//! | BUG-32: a node that an upstream left out is given up | [`crate::boot::evaluation::Decision::followed`] |
//! | BUG-34: forgetting an old report erases the error and the time that a boot may take | [`crate::boot::component::write`] |
//! | BUG-35: applying a staged state keeps the error of before | [`crate::boot::session::staging`] |
//!
//! Where tenants meet, applying the staged state of somebody else's session fails, and the node goes on as before; with
//! the option `clear_stage` the state is staged no longer, as in BOS ([`crate::boot::session::staging`]). Strictly,
//! such a session is gone as in BOS, and the node is disabled and given to it (BOS reference 9.3). Either way a session
//! is known by its id, so that namesakes of different tenants are told apart (BUG-28).
//!
//! One more has that code and is never repeated, because it switches off nodes of which nobody knows whether they
//! run: a power state that is undefined does not count as on (BUG-11).
//!
//! Strictly, texts that BOS words itself have its words (BOS reference, appendix A): [`crate::boot::session::create`],
//! [`crate::boot::session::staging`], [`crate::boot::evaluation::Decision::followed`].
//!
//! Strictly, there is also nothing to see that BOS does not have: no reason why a session waits, no warning about a
//! template that BOS does not give (BUG-25, BUG-39), and no option `disable_components_on_completion`, which BOS lost
//! with 2.48.

/// Choices about defects of BOS that clients may have come to depend on (BOS reference 12, code C).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compatibility {
    /// Whether to repeat such defects instead of mending them. Unsafe actions are never repeated.
    pub strict_bos: bool,
}
