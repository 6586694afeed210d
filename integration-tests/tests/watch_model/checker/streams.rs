//! One watcher, replayed with the copy that it would keep.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Contract, Finding, Rule, truth::Truth};
use crate::history::{Entry, Event, Key, LANES, Lanes, Moment};

/// The newest revision of each component, and what it holds; none where it was deleted.
type Copy = HashMap<Key, (u64, Option<Lanes>)>;

/// Ends of a watch that crashes and restarts explain.
const KNOWN_ENDS: [&str; 5] = ["the end", "Unavailable", "Unknown", "Cancelled", "Internal"];

/// Goes through everything that happened to a watcher.
pub(super) fn replay<'h>(
    truth: &Truth<'h>,
    contract: Contract,
    name: &str,
    entries: &'h [Entry],
) -> Vec<Finding> {
    let resumed_from = entries.iter().filter_map(|entry| match entry {
        Entry::Opened { from, .. } => Some(*from),
        _ => None,
    });
    let mut replay = Replay {
        truth,
        contract,
        name,
        needed: resumed_from.collect(),
        kept: HashMap::new(),
        copy: Copy::new(),
        highest: 0,
        stream: Stream::default(),
        findings: Vec::new(),
    };
    for entry in entries {
        replay.step(entry);
    }
    replay.end(entries.last());
    replay.findings
}

struct Replay<'t, 'h> {
    truth: &'t Truth<'h>,
    contract: Contract,
    name: &'t str,
    /// Revisions that the watcher resumes from at some time.
    needed: HashSet<u64>,
    /// What it had at these revisions.
    kept: HashMap<u64, Copy>,
    copy: Copy,
    /// The highest bookmark that it ever got.
    highest: u64,
    stream: Stream<'h>,
    findings: Vec<Finding>,
}

/// A watch under way.
#[derive(Default)]
struct Stream<'h> {
    opened: Moment,
    bookmark: u64,
    delivered: HashSet<u64>,
    synced: bool,
    /// Components whose newest change is due at a later bookmark.
    owed: BTreeSet<&'h str>,
}

impl<'h> Replay<'_, 'h> {
    fn find(&mut self, rule: Rule, what: String) {
        self.findings.push(Finding { rule, who: self.name.to_owned(), what });
    }

    fn step(&mut self, entry: &'h Entry) {
        match entry {
            Entry::Listed { asked, at, events, revision } => self.listed(*asked, *at, events, *revision),
            Entry::Opened { at, from } => self.opened(*at, *from),
            Entry::Told { at, changed, deleted, revision, synced } => {
                self.told(changed, deleted, *revision);
                self.reach(*at, *revision);
                if *synced {
                    self.synced(*revision);
                }
            }
            Entry::Expired => self.expired(),
            Entry::Broke { why, .. } => {
                if !KNOWN_ENDS.iter().any(|known| why.starts_with(known)) {
                    self.find(Rule::EndsInOrder, why.clone());
                }
            }
            Entry::Stuck => {
                let what = format!("stays at {} of {}", self.stream.bookmark, self.truth.history.last);
                self.find(Rule::Arrives, what);
            }
        }
    }

    fn listed(&mut self, asked: Moment, at: Moment, events: &'h [Event], revision: u64) {
        self.copy.clear();
        self.stream = Stream { opened: asked, ..Stream::default() };
        events.iter().for_each(|event| self.apply(event));
        self.reach(at, revision);
        self.caught_up(revision);
    }

    fn opened(&mut self, at: Moment, from: u64) {
        self.copy = match from {
            0 => Copy::new(),
            _ => self.kept.get(&from).expect("a revision that the watcher had reached").clone(),
        };
        self.stream = Stream { opened: at, bookmark: from, ..Stream::default() };
    }

    fn told(&mut self, changed: &'h [Event], deleted: &'h [Event], revision: u64) {
        for events in [changed, deleted] {
            for pair in events.windows(2).filter(|pair| pair[0].revision > pair[1].revision) {
                self.find(Rule::NoTimeTravel, format!("{pair:?} in one batch"));
            }
        }
        // Deletions come first: a component that is in both was made anew.
        for event in deleted.iter().chain(changed) {
            let fresh = self.stream.delivered.insert(event.revision);
            if !fresh {
                self.find(Rule::NoDuplicate, format!("{event:?} again"));
            } else if event.revision <= self.stream.bookmark {
                let what = format!("{event:?} after bookmark {}", self.stream.bookmark);
                self.find(Rule::NoTimeTravel, what);
            }
            if event.revision > revision {
                self.find(Rule::WithinBookmark, format!("{event:?} in a batch up to {revision}"));
            }
            self.apply(event);
        }
    }

    /// A client keeps the newer of what it has and what it is told.
    fn apply(&mut self, event: &Event) {
        let held = self.copy.get(&event.key).map_or(0, |(revision, _)| *revision);
        if event.revision >= held {
            self.copy.insert(event.key.clone(), (event.revision, event.lanes.clone()));
        }
    }

    /// The watcher has a bookmark.
    fn reach(&mut self, at: Moment, revision: u64) {
        let before = self.stream.bookmark;
        if revision < before {
            self.find(Rule::NoTimeTravel, format!("bookmark {revision} after {before}"));
        }
        let mut due = std::mem::take(&mut self.stream.owed);
        due.extend(self.truth.changed(before, revision));
        for key in due {
            let Some(newest) = self.truth.newest(key, revision) else { continue };
            if self.has(newest, at) {
                continue;
            }
            self.stream.owed.insert(key);
            if !self.truth.superseded(key, revision, at) {
                let held = self.copy.get(key).map(|(revision, _)| *revision);
                let what = format!("bookmark {revision} without {newest:?}; it has {held:?}");
                self.find(Rule::NoGap, what);
            }
        }
        self.stream.bookmark = revision;
        if self.stream.synced {
            self.highest = self.highest.max(revision);
        }
        if self.needed.contains(&revision) {
            self.kept.insert(revision, self.copy.clone());
        }
    }

    fn has(&self, newest: &Event, at: Moment) -> bool {
        match self.copy.get(&newest.key) {
            Some((revision, _)) => *revision >= newest.revision,
            // Who never had it need not be told that it is gone.
            None => newest.lanes.is_none() || self.truth.may_be_deleted(newest, at),
        }
    }

    fn synced(&mut self, revision: u64) {
        if std::mem::replace(&mut self.stream.synced, true) {
            self.find(Rule::SyncedOnce, format!("again at {revision}"));
        }
        self.caught_up(revision);
    }

    /// The copy is complete, as of some moment after it was asked for.
    fn caught_up(&mut self, revision: u64) {
        if revision < self.highest {
            self.find(Rule::NoTimeTravel, format!("complete at {revision}, after {}", self.highest));
        }
        let (known, by) = self.truth.known_at(self.stream.opened);
        if revision < known {
            self.find(Rule::Fresh, format!("complete at {revision}, but {by} had {known}"));
        }
        self.up_to_date(self.stream.opened);
        self.highest = self.highest.max(revision);
    }

    /// [`Rule::Fresh`] and [`Rule::Gone`], of what was acknowledged before a moment.
    fn up_to_date(&mut self, before: Moment) {
        let mut findings = Vec::new();
        for key in self.truth.keys() {
            let held = self.copy.get(key).and_then(|(_, lanes)| lanes.as_ref());
            for lane in 0..LANES {
                let value = held.map(|lanes| &*lanes[lane]);
                let Some(write) = self.truth.overwritten(key, lane, value, before) else { continue };
                let gone = self.truth.history.writes[write].change.sets(lane) == Some(None);
                let rule = if gone { Rule::Gone } else { Rule::Fresh };
                findings.push((rule, format!("has {value:?} of {key} although w{write} was acknowledged")));
                break;
            }
        }
        findings.into_iter().for_each(|(rule, what)| self.find(rule, what));
    }

    fn expired(&mut self) {
        let from = self.stream.bookmark;
        let (known, _) = self.truth.known_at(self.stream.opened);
        if from <= known && self.truth.deletions() < self.contract.remembered {
            self.find(Rule::Remembered, format!("{from} is refused"));
        }
    }

    fn end(&mut self, last: Option<&Entry>) {
        let reached = self.stream.bookmark.max(self.highest);
        if reached < self.truth.history.last && !matches!(last, Some(Entry::Stuck)) {
            self.find(Rule::Arrives, format!("ends at {reached} of {}", self.truth.history.last));
        }
        if last.is_some() {
            self.up_to_date(Moment::MAX);
        }
    }
}
