//! Keeps in the records which nodes the inventory locks. It looks while nodes are being acted on, and takes in
//! whatever others learn.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, ledger::Draft, pause, resource::Resource};
use domain::{component::Component, report};
use futures_util::StreamExt;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{FOR_ALL, Registry, hints::LEAST_GAP, inventory::Locked};

/// Ids of components.
type Ids = HashSet<Arc<str>>;

/// What is known about locks, whoever asked.
type Told = watch::Receiver<Option<Arc<Locked>>>;

/// Follows the locks for ever: looks at once when a hint comes. One replica also looks for all every `period` while a
/// component is enabled, and at once when one becomes so.
pub(crate) async fn run(registry: Arc<Registry>, period: Duration) -> anyhow::Result<Infallible> {
    let mut components = std::pin::pin!(registry.components.follow());
    let mut told = registry.inventory.locked();
    let mut handovers = std::pin::pin!(registry.leases.changes());
    let mut looks = Looks::new(period);
    loop {
        let due = looks.due;
        let for_all = registry.leases.holds(FOR_ALL);
        tokio::select! {
            Some(batch) = components.next() => if for_all {
                looks.notice(&batch.changed, Instant::now());
            },
            Some(handover) = handovers.next() => if handover.concerns(FOR_ALL) {
                looks.rest();
                if registry.leases.holds(FOR_ALL) {
                    looks.notice(&registry.components.view().all(), Instant::now());
                }
            },
            () = registry.hints.locks.notified() => looks.soon(Instant::now()),
            Ok(()) = told.changed() => match write(&registry, &mut told).await {
                Ok(()) => {}
                Err(fault) => looks.failed(&fault, Instant::now()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                looks.begin(Instant::now());
                match look(&registry, &mut told).await {
                    Ok(_) if !registry.leases.holds(FOR_ALL) => looks.rest(),
                    Ok(enabled) => looks.done(enabled),
                    Err(fault) => looks.failed(&fault, Instant::now()),
                }
            }
        }
    }
}

/// Looks at the locks if anybody is to be acted on, and says who that is. One look is enough for all.
async fn look(registry: &Registry, told: &mut Told) -> Result<Ids, Fault> {
    let components = registry.components.view().all();
    let enabled = components.iter().filter(|component| component.is_enabled());
    let enabled: Ids = enabled.map(|component| component.shared_key()).collect();
    if !enabled.is_empty() {
        registry.inventory.look_at_locks().await?;
    }
    write(registry, told).await?;
    Ok(enabled)
}

/// Writes what is known to the components that say otherwise. As long as nothing is known they stay.
async fn write(registry: &Registry, told: &mut Told) -> Result<(), Fault> {
    let Some(locked) = told.borrow_and_update().clone() else { return Ok(()) };
    let differing = differing(&registry.components.view().all(), &locked);
    if differing.is_empty() {
        return Ok(());
    }
    let lock = move |draft: &mut Draft<'_, Component>| {
        let components = differing.iter().filter_map(|id| draft.get(id));
        let changed: Vec<_> = components
            .filter_map(|component| report::lock(&component, locked.contains(component.id.as_str())))
            .collect();
        let count = changed.len();
        changed.into_iter().for_each(|component| draft.put(component));
        Ok(count)
    };
    let (changed, _) = registry.components.write(lock).await?;
    tracing::info!(changed, "locks of the inventory have changed");
    Ok(())
}

/// Components whose record does not say what is known.
fn differing(components: &[Arc<Component>], locked: &Locked) -> Vec<Arc<str>> {
    let differs = |component: &&Arc<Component>| component.locked != locked.contains(component.key());
    components.iter().filter(differs).map(|component| component.shared_key()).collect()
}

/// When to look next.
#[derive(Debug)]
struct Looks {
    period: Duration,
    /// When the last one began.
    began: Option<Instant>,
    /// When the next one is due; none while nobody is acted on.
    due: Option<Instant>,
    /// Components whose locks were looked at since they are enabled.
    covered: Ids,
    /// Looks in a row that failed.
    failures: u32,
}

impl Looks {
    fn new(period: Duration) -> Self {
        Self { period, began: None, due: None, covered: Ids::new(), failures: 0 }
    }

    /// Takes in what changed of components: a look is due once one was enabled.
    fn notice(&mut self, changed: &[Arc<Component>], now: Instant) {
        let (enabled, disabled): (Vec<_>, Vec<_>) = changed.iter().partition(|one| one.is_enabled());
        for component in disabled {
            self.covered.remove(component.key());
        }
        if enabled.iter().any(|component| !self.covered.contains(component.key())) {
            self.soon(now);
        }
    }

    /// Looks without delay, but not too often, and not before the pause after a failure is over.
    fn soon(&mut self, now: Instant) {
        if self.failures > 0 {
            return;
        }
        let earliest = self.began.map_or(now, |began| now.max(began + LEAST_GAP));
        self.due = Some(self.due.map_or(earliest, |due| due.min(earliest)));
    }

    /// Another replica looks for all.
    fn rest(&mut self) {
        (self.due, self.failures) = (None, 0);
        self.covered.clear();
    }

    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.due = None;
    }

    fn done(&mut self, enabled: Ids) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "the locks of the inventory are known again");
        }
        self.failures = 0;
        let next = self.began.map(|began| began + self.period);
        self.due = next.filter(|_| !enabled.is_empty());
        self.covered = enabled;
    }

    fn failed(&mut self, fault: &Fault, now: Instant) {
        self.failures += 1;
        self.due = Some(now + pause::after(self.failures));
        if self.failures == 1 {
            tracing::warn!(%fault, "cannot look at the locks of the inventory; those that are known stay");
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::id::ComponentId;

    use super::*;

    fn component(id: &str, enabled: bool, locked: bool) -> Arc<Component> {
        let component = Component::new(ComponentId::parse(id).unwrap());
        Arc::new(Component { enabled: Some(enabled), locked, ..component })
    }

    fn ids(text: &str) -> Ids {
        text.split_whitespace().map(Arc::from).collect()
    }

    #[test]
    fn only_records_that_say_otherwise_differ() {
        let components = [
            component("free", true, false),
            component("newly-locked", false, false),
            component("still-locked", true, true),
            component("unlocked", true, true),
        ];
        let locked = ["newly-locked", "still-locked", "stranger"].map(str::to_owned).into();
        let differing = differing(&components, &locked);
        assert_eq!(differing.iter().map(|id| &**id).collect::<Vec<_>>(), ["newly-locked", "unlocked"]);
    }

    const PERIOD: Duration = Duration::from_secs(10);

    /// Does what the words say, one second each, and gives the seconds at which looks began. `a+` enables a, `a-`
    /// disables it, `hint` hints, `outage` and `mended` say what becomes of looks, `.` is a second of nothing.
    fn play(words: &str) -> Vec<u64> {
        let start = Instant::now();
        let (mut looks, mut enabled, mut up, mut began) = (Looks::new(PERIOD), Ids::new(), true, Vec::new());
        for (second, word) in words.split_whitespace().enumerate() {
            let now = start + Duration::from_secs(second as u64);
            match (word, word.split_at(1)) {
                ("hint", _) => looks.soon(now),
                ("outage", _) => up = false,
                ("mended", _) => up = true,
                (".", _) => {}
                (_, (id, on)) => {
                    match on {
                        "+" => enabled.insert(id.into()),
                        _ => enabled.remove(id),
                    };
                    looks.notice(&[component(id, on == "+", false)], now);
                }
            }
            if looks.due.is_some_and(|due| due <= now) {
                looks.begin(now);
                match up {
                    true if enabled.is_empty() => looks.done(Ids::new()),
                    true => {
                        began.push(second as u64);
                        looks.done(enabled.clone());
                    }
                    false => {
                        began.push(second as u64);
                        looks.failed(&Fault::unavailable("inventory", "gone"), now);
                    }
                }
            }
        }
        began
    }

    #[test]
    fn looks_come_while_somebody_is_acted_on() {
        let rows: [(&str, &[u64]); 6] = [
            (". hint . a- . . . . . . . . . .", &[]),
            (". a+ . . . . . . . . . . . . . . . . . . . . a- . . . . . . . . . .", &[1, 11, 21]),
            // Another one is looked at without delay, one that is known is not.
            ("a+ . . b+ a+ b+ . .", &[0, 3]),
            ("a+ . b+ b- . b+ . .", &[0, 2, 5]),
            ("a+ hint . hint . . . . . . . . . .", &[0, 1, 3, 13]),
            // Pauses after failures are shorter than a second at first.
            ("a+ outage hint hint mended . . . . . . .", &[0, 2, 3, 4]),
        ];
        for (words, expected) in rows {
            assert_eq!(play(words), expected, "{words}");
        }
    }

    #[test]
    fn looks_keep_their_distance() {
        let start = Instant::now();
        let mut looks = Looks::new(PERIOD);
        looks.soon(start);
        looks.begin(start);
        looks.done(ids("a"));
        for milliseconds in [1, 5, 900] {
            looks.soon(start + Duration::from_millis(milliseconds));
            assert_eq!(looks.due, Some(start + LEAST_GAP));
        }
    }
}
