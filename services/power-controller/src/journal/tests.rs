use chassis::{Context, Settings, lease::Role};
use futures_util::StreamExt;
use sea_orm::{ConnectionTrait, DatabaseConnection};

use super::*;
use crate::{Migrator, finished::MOST_TRANSITIONS, testing::until};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Journal, and the role under which it is written.
struct JournalScene {
    context: Context,
    database: DatabaseConnection,
    role: Role,
    journal: TransitionJournal,
}

impl JournalScene {
    async fn on(url: &str) -> Self {
        let context = Context::new(Settings::default());
        let database = chassis::store::database::connect::<Migrator>(url).await.unwrap();
        let ledger = Ledger::open(&context, database.clone()).await.unwrap();
        let role = Role::start(&context, "power-controller", &database).await.unwrap();
        role.take_part();
        let term = term(&role).await;
        Self { context, database, role, journal: TransitionJournal::new(ledger, term) }
    }

    async fn put(&self, transitions: Vec<PowerTransition>) {
        let write = self.journal.ledger.write(|draft| {
            transitions.into_iter().for_each(|transition| draft.put(transition));
            Ok(())
        });
        write.await.unwrap();
    }

    fn ids(&self) -> HashSet<String> {
        self.journal.all().iter().map(|one| one.id.clone()).collect()
    }
}

/// Returns the next term that lasts.
async fn term(role: &Role) -> Term {
    let mut terms = std::pin::pin!(role.terms());
    loop {
        if let Some(term) = terms.next().await.unwrap().filter(Term::is_current) {
            return term;
        }
    }
}

impl Drop for JournalScene {
    fn drop(&mut self) {
        self.context.tasks.shutdown().cancel();
    }
}

fn transition(id: &str, delivery: TransitionDelivery, age: Duration) -> PowerTransition {
    let age = i64::try_from(age.as_millis()).unwrap();
    let sent_at = Some(Timestamp(clock::now().0 - age));
    PowerTransition { id: id.to_owned(), delivery, sent_at, ..PowerTransition::default() }
}

fn as_many_as_are_kept() -> Vec<PowerTransition> {
    let one = |number: usize| {
        let age = Duration::from_secs((MOST_TRANSITIONS - number) as u64);
        transition(&format!("t{number}"), TransitionDelivery::Finished, age)
    };
    (0..MOST_TRANSITIONS).map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_refused_record_would_have_pushed_out_goes_with_the_next_one() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let scene = JournalScene::on(&url).await;
    scene.put(as_many_as_are_kept()).await;
    let late = transition("late", TransitionDelivery::Refused, Duration::ZERO);
    let take = "UPDATE roles SET holder = '', epoch = epoch + 1";
    scene.database.execute_unprepared(take).await.unwrap();
    assert!(
        scene.journal.write(JournalChanges { put: vec![late.clone()], delete: Vec::new() }).await.is_err()
    );
    assert_eq!(scene.journal.all().len(), MOST_TRANSITIONS, "nothing was written");
    until("a new term", || async {
        let journal = TransitionJournal::new(scene.journal.ledger.clone(), term(&scene.role).await);
        journal.write(JournalChanges { put: vec![late.clone()], delete: Vec::new() }).await.ok()
    })
    .await;
    let ids = scene.ids();
    assert_eq!(ids.len(), MOST_TRANSITIONS);
    assert!(ids.contains("late") && !ids.contains("t0") && ids.contains("t1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_transitions_go_when_they_are_old_and_open_ones_stay() {
    for database in test_databases::every_kind().await {
        let scene = JournalScene::on(&database.url).await;
        let old = 30 * DAY;
        scene
            .put(vec![
                transition("finished", TransitionDelivery::Finished, old),
                transition("refused", TransitionDelivery::Refused, old),
                transition("open", TransitionDelivery::Accepted, old),
                transition("young", TransitionDelivery::Finished, DAY),
            ])
            .await;
        let cleared = async {
            until("the old ones to go", || async { (scene.journal.all().len() == 2).then_some(()) }).await;
        };
        tokio::select! {
            _ = scene.journal.keep_clear() => unreachable!("it goes on for ever"),
            () = cleared => {}
        }
        assert_eq!(scene.ids(), ["open", "young"].map(str::to_owned).into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_write_does_not_open_a_transition_that_is_over() {
    for database in test_databases::every_kind().await {
        let scene = JournalScene::on(&database.url).await;
        for delivery in
            [TransitionDelivery::Accepted, TransitionDelivery::Finished, TransitionDelivery::Accepted]
        {
            let put = vec![transition("t", delivery, Duration::ZERO)];
            scene.journal.write(JournalChanges { put, delete: Vec::new() }).await.unwrap();
        }
        assert_eq!(scene.journal.all()[0].delivery, TransitionDelivery::Finished);
    }
}
