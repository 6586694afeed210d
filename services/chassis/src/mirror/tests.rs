use std::time::Duration;

use super::*;

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

impl Mirrored for Wait {
    async fn watch(_: Channel, _: u64) -> Result<Watch<Self>, Status> {
        Err(Status::unavailable("nobody is watched here"))
    }

    fn began(&self) -> Option<Timestamp> {
        Some(self.0)
    }

    fn with_began(self: &Arc<Self>, began: Timestamp) -> Arc<Self> {
        Arc::new(Self(began, self.1))
    }
}

#[tokio::test]
async fn waits_count_by_our_clock_when_the_owners_is_another() {
    let shared = Arc::new(Shared { resources: RwLock::default(), revision: watch::Sender::new(0) });
    let mut follower = Follower {
        mirror: Mirror { shared },
        channel: crate::channel("http://127.0.0.1:1").expect("an address"),
        listener: |_: &[Change<Wait>]| {},
        records: crate::mirror::Pool::default().of(),
        stale: None,
        resume: 0,
        live: false,
        began: HashMap::new(),
    };
    let start = time::now();
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
    assert!((start..=time::now()).contains(&began), "it cannot have begun in the future");
    assert_eq!(held(ahead, false), began, "a change of something else does not begin it anew");
    let again = held(Timestamp(behind.0 + 1), false);
    assert!((began..=time::now()).contains(&again), "we have seen it begin");
    assert_eq!(held(start, false), start, "the clocks agree again");
}
