use std::{borrow::Cow, sync::atomic::AtomicU64, time::Duration};

use domain::core::invalid::Invalid;
use futures_util::stream;
use proto::option::OptionsRecord;

use super::*;
use crate::{process::shared_values::SharedValues, store::ledger::LedgerView};

#[derive(Debug, Clone, PartialEq)]
struct Wait(Timestamp, u64);

impl Resource for Wait {
    const KIND: &'static str = "wait";

    fn key(&self) -> &str {
        "one"
    }

    fn revision(&self) -> u64 {
        self.1
    }

    fn set_revision(&mut self, revision: u64) {
        self.1 = revision;
    }
}

impl WireForm for Wait {
    type Message = OptionsRecord;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, OptionsRecord> {
        Cow::Owned(OptionsRecord { options: None, revision: self.1 })
    }

    fn from_wire(message: OptionsRecord, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self(Timestamp(1), message.revision))
    }
}

static WATCHES: AtomicU64 = AtomicU64::new(0);

impl MirroredKind for Wait {
    /// The owner has changed the resource once more at each watch.
    async fn watch(_: Channel, resume: ResumeToken) -> Result<AdmittedWatch<Self>, Status> {
        let revision = 1 + WATCHES.fetch_add(1, Ordering::SeqCst);
        assert_eq!(resume.revision, revision - 1, "it goes on where it was");
        let changed = vec![Arc::new(Self(Timestamp(1), revision))];
        let batch = Batch { changed, deleted: Vec::new(), revision, synced: true };
        let batches = stream::iter([Ok(batch)]).chain(stream::pending()).boxed();
        Ok(AdmittedWatch { incarnation: None, batches })
    }

    fn began(&self) -> Option<Timestamp> {
        Some(self.0)
    }

    fn with_began(self: &Arc<Self>, began: Timestamp) -> Arc<Self> {
        Arc::new(Self(began, self.1))
    }
}

fn nobody() -> Channel {
    crate::plain_channel("http://127.0.0.1:1").expect("an address")
}

#[tokio::test]
async fn parts_of_a_process_share_a_mirror_and_each_hears_of_everything_once() {
    let shared = SharedValues::default();
    let first = shared.of::<Mirror<Wait>>();
    let heard = |mirror: &Mirror<Wait>| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        mirror.tell(Box::new(move |changes| {
            told.lock().extend(changes.iter().map(|change| change.current.as_ref().map(|wait| wait.1)));
        }));
        heard
    };
    let early = heard(&first);
    let mut follower = MirrorFollower::new(first, OwnerView::default(), nobody());
    let mut change = |revision| {
        let changed = vec![Arc::new(Wait(clock::now(), revision))];
        follower.apply(Batch { changed, deleted: Vec::new(), revision, synced: true });
    };
    change(1);
    let second = shared.clone().of::<Mirror<Wait>>();
    let late = heard(&second);
    change(2);
    assert_eq!(*early.lock(), [Some(1), Some(2)]);
    assert_eq!(*late.lock(), [Some(1), Some(2)]);
    assert_eq!((second.get("one").map(|wait| wait.1), second.revision()), (Some(2), 2));
}

#[tokio::test]
async fn what_the_ledger_of_the_process_has_is_held_once() {
    let (same, newer) = (Wait(Timestamp(1), 1), Wait(Timestamp(1), 2));
    let (owned, owner) = (Arc::new(same.clone()), OwnerView::default());
    let view = Arc::new(LedgerView::of(vec![Arc::clone(&owned)]));
    owner.set(&view);
    let mut follower = MirrorFollower::new(Mirror::<Wait>::default(), owner, nobody());
    let mut held = |told: &Wait| {
        let revision = told.1;
        let changed = vec![Arc::new(told.clone())];
        follower.apply(Batch { changed, deleted: Vec::new(), revision, synced: true });
        follower.mirror.get("one").expect("it is held")
    };
    assert!(Arc::ptr_eq(&held(&same), &owned));
    assert_eq!(*held(&newer), newer, "the ledger does not show it yet, or is another one");
    drop(view);
    assert!(!Arc::ptr_eq(&held(&same), &owned), "there is no ledger any more");
}

#[tokio::test]
async fn copy_is_of_one_incarnation_at_any_time() {
    let [before, after] = [1, 2].map(|id| Some(Uuid::from_u128(id)));
    let mirror = Mirror::<Wait>::default();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    mirror.tell(Box::new(move |changes| {
        let revision = |wait: &Option<Arc<Wait>>| wait.as_ref().map(|wait| wait.1);
        told.lock().extend(changes.iter().map(|one| (revision(&one.previous), revision(&one.current))));
    }));
    let mut follower = MirrorFollower::new(mirror.clone(), OwnerView::default(), nobody());
    let batch = |changed: Option<u64>, synced| Batch {
        changed: changed.map(|revision| Arc::new(Wait(clock::now(), revision))).into_iter().collect(),
        deleted: Vec::new(),
        revision: changed.unwrap_or(9),
        synced,
    };
    follower.enter(before);
    follower.apply(batch(Some(5), true));
    follower.start_over();
    follower.enter(after);
    assert!(!mirror.is_complete());
    follower.apply(batch(Some(3), false));
    assert_eq!(mirror.get("one").map(|wait| wait.1), Some(5), "the new set is not whole");
    assert!(!mirror.is_complete());
    follower.apply(batch(None, true));
    assert_eq!((mirror.get("one").map(|wait| wait.1), mirror.revision()), (Some(3), 9));
    assert_eq!(*heard.lock(), [(None, Some(5)), (Some(5), Some(3))]);
    assert_eq!(follower.resume, ResumeToken { incarnation: after, revision: 9 });
    follower.start_over();
    follower.enter(after);
    assert!(mirror.is_complete(), "the history is the same");
    follower.apply(batch(None, true));
    assert_eq!(mirror.get("one"), None);
}

#[tokio::test]
async fn waits_count_by_our_clock_when_the_owners_is_another() {
    let mut follower = MirrorFollower::new(Mirror::<Wait>::default(), OwnerView::default(), nobody());
    let start = clock::now();
    let (ahead, behind) = (start.plus(Duration::from_secs(3600)), Timestamp(start.0 - 3_600_000));
    let mut revision = 0;
    let mut held = |told: Timestamp, synced: bool| {
        revision += 1;
        let changed = vec![Arc::new(Wait(told, revision))];
        follower.apply(Batch { changed, deleted: Vec::new(), revision, synced });
        follower.mirror.get("one").expect("it is held").0
    };
    assert_eq!(held(behind, false), behind, "it began before we looked");
    assert_eq!(held(behind, true), behind);
    assert_eq!(held(behind, false), behind, "a change of something else begins nothing");
    let began = held(ahead, false);
    assert!((start..=clock::now()).contains(&began), "it cannot have begun in the future");
    assert_eq!(held(ahead, false), began, "a change of something else does not begin it anew");
    let again = held(Timestamp(behind.0 + 1), false);
    assert!((began..=clock::now()).contains(&again), "we have seen it begin");
    assert_eq!(held(start, false), start, "the clocks agree again");
}

#[tokio::test]
async fn whoever_catches_up_knows_what_was_done_until_then() {
    let context = Context::new(crate::Settings::default());
    let mirror = Mirror::<Wait>::start(&context, nobody(), |_| {});
    mirror.reached(1).await;
    assert_eq!(mirror.get("one").map(|wait| wait.1), Some(1));
    for times in 2..5 {
        mirror.catch_up().await;
        assert_eq!(mirror.get("one").map(|wait| wait.1), Some(times));
    }
    context.tasks.shutdown().cancel();
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_current_while_its_owner_is_heard() {
    let mirror = Mirror::<Wait>::default();
    let mut follower = MirrorFollower::new(mirror.clone(), OwnerView::default(), nobody());
    let resumed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&resumed);
    mirror.on_availability_change(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let resumed = || resumed.load(Ordering::SeqCst);
    let mut seen = None;
    assert!(!mirror.is_current());
    assert!(follower.goes_on(&mut seen) && mirror.is_current());
    tokio::time::advance(BEAT).await;
    assert!(follower.goes_on(&mut seen) && mirror.is_current());
    assert_eq!(resumed(), 1);

    tokio::time::advance(LAPSE).await;
    assert!(!mirror.is_current());
    assert!(!follower.goes_on(&mut seen), "what was reported meanwhile is still on its way");
    assert!(!mirror.is_current());
    // The watch was begun again and has caught up.
    assert!(follower.goes_on(&mut None) && mirror.is_current());
    assert_eq!(resumed(), 2);
}

#[tokio::test(start_paused = true)]
async fn outage_of_the_owner_is_noticed_when_it_lasts() {
    let mirror = Mirror::<Wait>::default();
    let mut follower = MirrorFollower::new(mirror.clone(), OwnerView::default(), nobody());
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    mirror.on_availability_change(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let told = || told.load(Ordering::SeqCst);
    let broken = |error: &str| Fault::unavailable("power controller", error);
    follower.note_break(&broken("connection reset"));
    tokio::time::advance(OUTAGE - BEAT).await;
    follower.note_break(&broken("connection refused"));
    assert_eq!((mirror.outage(), told()), (None, 0));

    tokio::time::advance(BEAT).await;
    follower.note_break(&broken("connection refused"));
    follower.note_break(&broken("no route to host"));
    let error = mirror.outage().map(|outage| outage.error);
    assert_eq!((error.as_deref(), told()), (Some("power controller: connection refused"), 1));

    assert!(follower.goes_on(&mut None));
    assert_eq!((mirror.outage(), told()), (None, 2));
}
