//! One watcher, replayed with the copy that it would keep.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{RuleViolation, WatchContract, WatchRule, truth::ObservedTruth};
use crate::history::{ComponentEvent, Key, LANES, Lanes, Moment, WatcherEntry};

/// Newest revision of each component, and its lanes; `None` where it was deleted.
type Copy = HashMap<Key, (u64, Option<Lanes>)>;

/// Ends of a watch that crashes and restarts explain.
const KNOWN_ENDS: [&str; 5] = ["the end", "Unavailable", "Unknown", "Cancelled", "Internal"];

/// Goes through everything that happened to a watcher.
pub(super) fn replay<'h>(
    truth: &ObservedTruth<'h>,
    contract: WatchContract,
    name: &str,
    entries: &'h [WatcherEntry],
) -> Vec<RuleViolation> {
    let resumed_from = entries.iter().filter_map(|entry| match entry {
        WatcherEntry::Opened { from, .. } => Some(*from),
        _ => None,
    });
    let mut replay = StreamReplay {
        truth,
        contract,
        name,
        needed: resumed_from.collect(),
        kept: HashMap::new(),
        copy: Copy::new(),
        highest: 0,
        stream: OpenStream::default(),
        findings: Vec::new(),
    };
    for entry in entries {
        replay.step(entry);
    }
    replay.end(entries.last());
    replay.findings
}

struct StreamReplay<'t, 'h> {
    truth: &'t ObservedTruth<'h>,
    contract: WatchContract,
    name: &'t str,
    /// Revisions that the watcher resumes from at some time.
    needed: HashSet<u64>,
    /// Copies at these revisions.
    kept: HashMap<u64, Copy>,
    copy: Copy,
    /// The highest bookmark that it ever got.
    highest: u64,
    stream: OpenStream<'h>,
    findings: Vec<RuleViolation>,
}

/// A watch under way.
#[derive(Default)]
struct OpenStream<'h> {
    opened: Moment,
    bookmark: u64,
    delivered: HashSet<u64>,
    synced: bool,
    /// Components with a newest change that is due at a later bookmark.
    owed: BTreeSet<&'h str>,
}

impl<'h> StreamReplay<'_, 'h> {
    fn find(&mut self, rule: WatchRule, what: String) {
        self.findings.push(RuleViolation { rule, who: self.name.to_owned(), what });
    }

    fn step(&mut self, entry: &'h WatcherEntry) {
        match entry {
            WatcherEntry::Listed { asked, at, events, revision } => {
                self.listed(*asked, *at, events, *revision)
            }
            WatcherEntry::Opened { at, from } => self.opened(*at, *from),
            WatcherEntry::Told { at, changed, deleted, revision, synced } => {
                self.told(changed, deleted, *revision);
                self.reach(*at, *revision);
                if *synced {
                    self.synced(*revision);
                }
            }
            WatcherEntry::Expired => self.expired(),
            WatcherEntry::Broke { why, .. } => {
                if !KNOWN_ENDS.iter().any(|known| why.starts_with(known)) {
                    self.find(WatchRule::EndsInOrder, why.clone());
                }
            }
            WatcherEntry::Stuck => {
                let what = format!("stays at {} of {}", self.stream.bookmark, self.truth.history.last);
                self.find(WatchRule::Arrives, what);
            }
        }
    }

    fn listed(&mut self, asked: Moment, at: Moment, events: &'h [ComponentEvent], revision: u64) {
        self.copy.clear();
        self.stream = OpenStream { opened: asked, ..OpenStream::default() };
        events.iter().for_each(|event| self.apply(event));
        self.reach(at, revision);
        self.caught_up(revision);
    }

    fn opened(&mut self, at: Moment, from: u64) {
        self.copy = match from {
            0 => Copy::new(),
            _ => self.kept.get(&from).expect("a revision that the watcher had reached").clone(),
        };
        self.stream = OpenStream { opened: at, bookmark: from, ..OpenStream::default() };
    }

    fn told(&mut self, changed: &'h [ComponentEvent], deleted: &'h [ComponentEvent], revision: u64) {
        for events in [changed, deleted] {
            for pair in events.windows(2).filter(|pair| pair[0].revision > pair[1].revision) {
                self.find(WatchRule::NoTimeTravel, format!("{pair:?} in one batch"));
            }
        }
        // Deletions come first: a component in both lists was created again.
        for event in deleted.iter().chain(changed) {
            let fresh = self.stream.delivered.insert(event.revision);
            if !fresh {
                self.find(WatchRule::NoDuplicate, format!("{event:?} again"));
            } else if event.revision <= self.stream.bookmark {
                let what = format!("{event:?} after bookmark {}", self.stream.bookmark);
                self.find(WatchRule::NoTimeTravel, what);
            }
            if event.revision > revision {
                self.find(WatchRule::WithinBookmark, format!("{event:?} in a batch up to {revision}"));
            }
            self.apply(event);
        }
    }

    /// A client keeps the newer of its copy and the delivered state.
    fn apply(&mut self, event: &ComponentEvent) {
        let held = self.copy.get(&event.key).map_or(0, |(revision, _)| *revision);
        if event.revision >= held {
            self.copy.insert(event.key.clone(), (event.revision, event.lanes.clone()));
        }
    }

    /// The watcher has a bookmark.
    fn reach(&mut self, at: Moment, revision: u64) {
        let before = self.stream.bookmark;
        if revision < before {
            self.find(WatchRule::NoTimeTravel, format!("bookmark {revision} after {before}"));
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
                self.find(WatchRule::NoGap, what);
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

    fn has(&self, newest: &ComponentEvent, at: Moment) -> bool {
        match self.copy.get(&newest.key) {
            Some((revision, _)) => *revision >= newest.revision,
            // A watcher that never had the component need not get its deletion.
            None => newest.lanes.is_none() || self.truth.may_be_deleted(newest, at),
        }
    }

    fn synced(&mut self, revision: u64) {
        if std::mem::replace(&mut self.stream.synced, true) {
            self.find(WatchRule::SyncedOnce, format!("again at {revision}"));
        }
        self.caught_up(revision);
    }

    /// The copy is complete, as of some moment after it was asked for.
    fn caught_up(&mut self, revision: u64) {
        if revision < self.highest {
            self.find(WatchRule::NoTimeTravel, format!("complete at {revision}, after {}", self.highest));
        }
        let (known, by) = self.truth.known_at(self.stream.opened);
        if revision < known {
            self.find(WatchRule::Fresh, format!("complete at {revision}, but {by} had {known}"));
        }
        self.up_to_date(self.stream.opened);
        self.highest = self.highest.max(revision);
    }

    /// [`WatchRule::Fresh`] and [`WatchRule::Gone`], for changes acknowledged before a moment.
    fn up_to_date(&mut self, before: Moment) {
        let mut findings = Vec::new();
        for key in self.truth.keys() {
            let held = self.copy.get(key).and_then(|(_, lanes)| lanes.as_ref());
            for lane in 0..LANES {
                let value = held.map(|lanes| &*lanes[lane]);
                let Some(write) = self.truth.overwritten(key, lane, value, before) else { continue };
                let gone = self.truth.history.writes[write].change.sets(lane) == Some(None);
                let rule = if gone { WatchRule::Gone } else { WatchRule::Fresh };
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
            self.find(WatchRule::Remembered, format!("{from} is refused"));
        }
    }

    fn end(&mut self, last: Option<&WatcherEntry>) {
        let reached = self.stream.bookmark.max(self.highest);
        if reached < self.truth.history.last && !matches!(last, Some(WatcherEntry::Stuck)) {
            self.find(WatchRule::Arrives, format!("ends at {reached} of {}", self.truth.history.last));
        }
        if last.is_some() {
            self.up_to_date(Moment::MAX);
        }
    }
}
