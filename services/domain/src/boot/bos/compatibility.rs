//! The strictness of following BOS where BOS is wrong.
//!
//! Most defects of BOS are always mended, and some of its oddities are always kept. The defects here are mended too,
//! but repeated where BOS is followed strictly, so that clients that depend on them find the usual behaviour (BOS
//! reference 12, code C):
//!
//! | defect | where it is repeated or mended |
//! |---|---|
//! | BUG-01: `enabled=false` alone filters nothing | gateway |
//! | BUG-02: `DELETE /v2/sessions` without filters deletes all of them | gateway |
//! | BUG-03: `ids` of a list has at most 127 characters | gateway |
//! | BUG-14: unknown architectures | [`crate::boot::session::membership`] |
//!  BUG-15: a component that is both in a session and staged by it counts twice | [`crate::boot::session::status`] |
//! | BUG-22: an outage during the setup of a session ends the session after ten tries | session manager, `Setback::followed` |
//! | BUG-29: `PUT` of components ignores the tenant | gateway |
//! | BUG-32: a node that an upstream left out is given up | [`crate::boot::evaluation::Decision::followed`] |
//! | BUG-34: forgetting an old report erases the error and the time that a boot may take | [`crate::boot::component::write`] |
//!  BUG-35: applying a staged state keeps the earlier error | [`crate::boot::session::staging`] |
//!
//! With several tenants, applying a state that another tenant's session staged fails, and the node continues unchanged;
//! with the option `clear_stage` the state is not staged any more, as in BOS ([`crate::boot::session::staging`]).
//! Strictly, such a session counts as gone as in BOS, and the node is disabled and given to it (BOS reference 9.3).
//! Either way a session is identified by its id, so that sessions of the same name of different tenants are
//! distinguished (BUG-28).
//!
//! One more defect has that code and is never repeated, because it switches off nodes that may be running: an undefined
//! power state does not count as on (BUG-11).
//!
//! Strictly, texts for which BOS has its own words use them (BOS reference, appendix A):
//! [`crate::boot::session::create`], [`crate::boot::session::staging`],
//! [`crate::boot::evaluation::Decision::followed`].
//!
//! Strictly, Reveille also shows nothing that BOS does not have: no reason why a session waits, no warning about a
//! template that BOS does not give (BUG-25, BUG-39), and no option `disable_components_on_completion`, which BOS lost
//! with 2.48.

/// Choices about defects of BOS that clients may have come to depend on (BOS reference 12, code C).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compatibility {
    /// Whether to repeat such defects instead of mending them. Unsafe actions are never repeated.
    pub strict_bos: bool,
}
