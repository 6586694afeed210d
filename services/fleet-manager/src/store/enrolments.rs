//! Requests of agents to be enrolled, authorities, and revoked certificates.

use chassis::{
    kinds::{
        Interner,
        certificate::{AuthorityRecord, RevocationRecord},
        enrolment::EnrolmentRecord,
    },
    store::ledger::{Column, EventRule, StoredRow, Table},
};
use domain::{
    core::event::Actor,
    device::enrolment::{event::event, mark_restored},
};

/// Author of writes that name none.
const OWNER: Actor = Actor::Service("fleet-manager");

/// Table of requests to be enrolled.
pub(crate) struct EnrolmentTable;

impl Table for EnrolmentTable {
    type Kind = EnrolmentRecord;
    type Pool = Interner;
    const NAME: &'static str = "enrolment_requests";
    const COLUMNS: &'static [Column<EnrolmentRecord, Interner>] = &[Column::record()];
    const EVENTS: Option<EventRule<EnrolmentRecord>> = Some(|before, after, _, _| {
        let event = event(before.map(|record| &record.request), after.map(|record| &record.request));
        event.into_iter().collect()
    });
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, texts: &mut Interner) -> anyhow::Result<EnrolmentRecord> {
        row.record(texts)
    }

    /// The device of a request may have been approved in the lost commits (device reference 2.7).
    fn after_loss(record: &EnrolmentRecord, _revision: u64) -> Option<EnrolmentRecord> {
        mark_restored(&record.request).map(|marked| record.changed(marked))
    }
}

/// Table of authorities that sign certificates of agents.
pub(crate) struct AuthorityTable;

impl Table for AuthorityTable {
    type Kind = AuthorityRecord;
    type Pool = ();
    const NAME: &'static str = "certificate_authorities";
    const COLUMNS: &'static [Column<AuthorityRecord>] = &[Column::record()];
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<AuthorityRecord> {
        row.record(pool)
    }
}

/// Table of the certificates that no longer count.
pub(crate) struct RevocationTable;

impl Table for RevocationTable {
    type Kind = RevocationRecord;
    type Pool = ();
    const NAME: &'static str = "certificate_revocations";
    const COLUMNS: &'static [Column<RevocationRecord>] = &[Column::record()];
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<RevocationRecord> {
        row.record(pool)
    }
}
