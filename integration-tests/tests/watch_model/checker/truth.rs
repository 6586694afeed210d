//! The truth that all observations together imply.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{RuleViolation, WatchRule};
use crate::history::{
    ComponentEvent, LANES, Moment, RunHistory, WatcherEntry, WriteChange, WriteOutcome, WriteRecord,
};

/// A change that was delivered to at least one watcher.
struct KnownChange<'h> {
    event: &'h ComponentEvent,
    /// Moment and watcher of its first delivery.
    seen: Moment,
    by: &'h str,
}

/// All that was seen, by revision and by component.
pub(super) struct ObservedTruth<'h> {
    pub(super) history: &'h RunHistory,
    events: BTreeMap<u64, KnownChange<'h>>,
    of_key: HashMap<&'h str, Vec<u64>>,
    /// The write of each text that only one write has.
    marks: HashMap<&'h str, usize>,
    /// Writes that may have an effect on a component, in the order of their beginnings.
    writes: HashMap<&'h str, Vec<usize>>,
    /// Writes that may delete a component, in the same order.
    deletions: HashMap<&'h str, Vec<usize>>,
    /// Latest end of a deletion of a component.
    last_deletion: HashMap<&'h str, Moment>,
    /// The highest bookmark of any watcher from a moment on, and the watcher.
    bookmarks: Vec<(Moment, u64, &'h str)>,
}

impl<'h> ObservedTruth<'h> {
    /// Merges the observations, and returns their contradictions.
    pub(super) fn of(history: &'h RunHistory) -> (Self, Vec<RuleViolation>) {
        let mut truth = Self {
            history,
            events: BTreeMap::new(),
            of_key: HashMap::new(),
            marks: HashMap::new(),
            writes: HashMap::new(),
            deletions: HashMap::new(),
            last_deletion: HashMap::new(),
            bookmarks: Vec::new(),
        };
        let mut findings = Vec::new();
        for (index, write) in history.writes.iter().enumerate() {
            truth.learn(index, write);
        }
        for (name, entries) in &history.watchers {
            for entry in entries {
                truth.take_in(name, entry, &mut findings);
            }
        }
        for (revision, known) in &truth.events {
            truth.of_key.entry(&known.event.key).or_default().push(*revision);
        }
        truth.bookmarks.sort_unstable();
        let mut highest = (0, "");
        for (_, revision, by) in &mut truth.bookmarks {
            highest = highest.max((*revision, by));
            (*revision, *by) = highest;
        }
        (truth, findings)
    }

    fn learn(&mut self, index: usize, write: &'h WriteRecord) {
        if write.outcome == WriteOutcome::Refused {
            return;
        }
        for lane in 0..LANES {
            if let Some(Some(text)) = write.change.sets(lane).filter(|text| *text != Some("")) {
                self.marks.insert(text, index);
            }
        }
        for key in &write.keys {
            self.writes.entry(key).or_default().push(index);
            if matches!(write.change, WriteChange::Delete) {
                self.deletions.entry(key).or_default().push(index);
                let last = self.last_deletion.entry(key).or_default();
                *last = write.ended().max(*last);
            }
        }
        if let WriteOutcome::Acknowledged { at, revision: Some(revision) } = write.outcome {
            self.bookmarks.push((at, revision, "an answer"));
        }
    }

    fn take_in(&mut self, by: &'h str, entry: &'h WatcherEntry, findings: &mut Vec<RuleViolation>) {
        let (seen, events, revision): (_, Vec<&ComponentEvent>, _) = match entry {
            WatcherEntry::Listed { at, events, revision, .. } => (*at, events.iter().collect(), *revision),
            WatcherEntry::Told { at, changed, deleted, revision, .. } => {
                (*at, changed.iter().chain(deleted).collect(), *revision)
            }
            WatcherEntry::Opened { .. }
            | WatcherEntry::Expired
            | WatcherEntry::Broke { .. }
            | WatcherEntry::Stuck => return,
        };
        self.bookmarks.push((seen, revision, by));
        for event in events {
            let known = self.events.entry(event.revision).or_insert(KnownChange { event, seen, by });
            if known.event != event {
                let what = format!("{event:?}, but {} saw {:?}", known.by, known.event);
                findings.push(RuleViolation { rule: WatchRule::OneTruth, who: by.to_owned(), what });
            } else if seen < known.seen {
                (known.seen, known.by) = (seen, by);
            }
        }
    }

    /// Judges the rules about writes and their visible effects.
    pub(super) fn judge(&self) -> Vec<RuleViolation> {
        let mut findings = Vec::new();
        for known in self.events.values() {
            self.was_written(known, &mut findings);
            self.lost_nothing(known, &mut findings);
        }
        for (key, revisions) in &self.of_key {
            self.returns_to_nothing(key, revisions, &mut findings);
        }
        let first = self.first_seen();
        for (index, write) in self.history.writes.iter().enumerate() {
            if write.outcome != WriteOutcome::Refused {
                self.in_order(index, write, &first, &mut findings);
                self.was_seen(index, write, &first, &mut findings);
            }
        }
        findings
    }

    /// [`WatchRule::Written`].
    fn was_written(&self, known: &KnownChange<'h>, findings: &mut Vec<RuleViolation>) {
        let KnownChange { event, seen, by } = known;
        for lane in 0..LANES {
            let value = value(event, lane);
            let written = self.sources(&event.key, lane, value).any(|write| write.invoked < *seen);
            if !written {
                let what = format!("nobody wrote {value:?} of {event:?}");
                findings.push(RuleViolation { rule: WatchRule::Written, who: (*by).to_owned(), what });
                return;
            }
        }
    }

    /// [`WatchRule::NothingLost`], judged by the other lanes of a change.
    fn lost_nothing(&self, known: &KnownChange<'h>, findings: &mut Vec<RuleViolation>) {
        let Some(newest) = self.invoked(known.event) else { return };
        for lane in 0..LANES {
            let value = value(known.event, lane);
            if let Some(lost) = self.overwritten(&known.event.key, lane, value, newest) {
                let what = format!("w{lost} is lost in {:?}", known.event);
                findings.push(RuleViolation { rule: WatchRule::NothingLost, who: known.by.to_owned(), what });
            }
        }
    }

    /// [`WatchRule::NothingLost`], judged by the order of revisions: an overwritten value does not return.
    fn returns_to_nothing(&self, key: &str, revisions: &[u64], findings: &mut Vec<RuleViolation>) {
        for lane in 0..LANES {
            let (mut over, mut current) = (HashSet::new(), None);
            for known in revisions.iter().map(|revision| &self.events[revision]) {
                let next = value(known.event, lane).filter(|text| !text.is_empty());
                if next == current {
                    continue;
                }
                over.extend(current);
                current = next;
                if next.is_some_and(|next| over.contains(next)) {
                    let what = format!("{next:?} of {key} is back at {}", known.event.revision);
                    findings.push(RuleViolation {
                        rule: WatchRule::NothingLost,
                        who: known.by.to_owned(),
                        what,
                    });
                }
            }
        }
    }

    /// [`WatchRule::InOrder`].
    fn in_order(
        &self,
        index: usize,
        write: &WriteRecord,
        first: &FirstSeen<'h>,
        findings: &mut Vec<RuleViolation>,
    ) {
        let revisions = || write.keys.iter().filter_map(|key| first.get(&(index, &**key)).copied());
        let (known, by) = self.known_at(write.invoked);
        if let Some(early) = revisions().find(|revision| *revision <= known) {
            let what = format!("w{index} got revision {early}, but everything up to {known} was told before");
            findings.push(RuleViolation { rule: WatchRule::InOrder, who: by.to_owned(), what });
        }
        if let WriteOutcome::Acknowledged { revision: Some(answered), .. } = write.outcome
            && let Some(late) =
                revisions().find(|revision| *revision > answered && !self.may_be_of_another(index, *revision))
        {
            let what = format!("w{index} got revision {late}, but its answer said {answered}");
            findings.push(RuleViolation { rule: WatchRule::InOrder, who: "an answer".to_owned(), what });
        }
    }

    /// [`WatchRule::Seen`].
    fn was_seen(
        &self,
        index: usize,
        write: &WriteRecord,
        first: &FirstSeen<'h>,
        findings: &mut Vec<RuleViolation>,
    ) {
        if write.outcome == WriteOutcome::Unknown {
            return;
        }
        for key in &write.keys {
            let seen = |index: &usize| match &self.history.writes[*index].change {
                WriteChange::Delete => self.of_key.get(&**key).is_some_and(|revisions| {
                    revisions.iter().any(|revision| self.events[revision].event.lanes.is_none())
                }),
                WriteChange::Merge(_) | WriteChange::Replace(_) => first.contains_key(&(*index, &**key)),
            };
            let covers = |other: &&usize| {
                let other = &self.history.writes[**other];
                let overwrites = |lane| match write.change.sets(lane) {
                    None | Some(Some("")) => true,
                    Some(Some(_)) => other.change.sets(lane).is_some(),
                    // A write that creates it again may be overwritten in turn.
                    Some(None) => true,
                };
                other.ended() > write.invoked && (0..LANES).all(overwrites)
            };
            let others = self.writes.get(&**key).into_iter().flatten().filter(|other| **other != index);
            if !seen(&index) && !others.filter(covers).any(seen) {
                let what = format!("nobody saw what it did to {key}: {:?}", write.change);
                findings.push(RuleViolation { rule: WatchRule::Seen, who: format!("w{index}"), what });
            }
        }
    }

    /// The first revision at which each write shows in each of its components.
    fn first_seen(&self) -> FirstSeen<'h> {
        let mut first = HashMap::new();
        for (revision, known) in &self.events {
            for text in known.event.lanes.iter().flatten() {
                if let Some(write) = self.marks.get(&**text) {
                    first.entry((*write, &*known.event.key)).or_insert(*revision);
                }
            }
        }
        first
    }

    /// The writes that may have set a lane to this; the beginning counts as one that left nothing.
    fn sources<'s>(
        &'s self,
        key: &str,
        lane: usize,
        value: Option<&'s str>,
    ) -> impl Iterator<Item = LaneSource> + 's {
        let own = listed(&self.writes, key);
        let marked =
            value.and_then(|text| self.marks.get(text)).filter(|index| own.binary_search(index).is_ok());
        let unmarked = match value {
            None => listed(&self.deletions, key),
            Some("") => own,
            Some(_) => &[],
        };
        let candidates = marked.into_iter().chain(unmarked).map(|index| &self.history.writes[*index]);
        let writes = candidates.filter(move |write| write.change.sets(lane) == Some(value));
        let sources = writes.map(|write| LaneSource { invoked: write.invoked, ended: write.ended() });
        let beginning = value.is_none().then_some(LaneSource { invoked: 0, ended: 0 });
        beginning.into_iter().chain(sources)
    }

    /// An acknowledged write that certainly replaced a lane's present value, and was over before `before`.
    pub(super) fn overwritten(
        &self,
        key: &str,
        lane: usize,
        value: Option<&str>,
        before: Moment,
    ) -> Option<usize> {
        // The lane's value may have been set as late as its latest possible source ended.
        let latest = match value {
            None => self.last_deletion.get(key).copied().unwrap_or_default(),
            Some(_) => self.sources(key, lane, value).map(|source| source.ended).max()?,
        };
        let write = |index: &usize| &self.history.writes[*index];
        let own = listed(&self.writes, key);
        let later = &own[own.partition_point(|index| write(index).invoked <= latest)..];
        let mut between = later.iter().take_while(|index| write(index).invoked < before);
        between
            .find(|index| write(index).change.sets(lane).is_some() && write(index).ended() < before)
            .copied()
    }

    /// Returns whether a change that shows a write may be that of a later one: then the step between was never
    /// delivered.
    fn may_be_of_another(&self, index: usize, revision: u64) -> bool {
        let event = self.events[&revision].event;
        let began = self.history.writes[index].invoked;
        self.writes.get(&*event.key).into_iter().flatten().filter(|other| **other != index).any(|other| {
            let other = &self.history.writes[*other];
            let shows = |lane| other.change.sets(lane).is_some_and(|set| set == value(event, lane));
            other.ended() > began && (0..LANES).any(shows)
        })
    }

    /// Returns the latest beginning of the writes that show in a change: it was not committed before. `None` when its
    /// lanes show no write.
    fn invoked(&self, event: &ComponentEvent) -> Option<Moment> {
        let texts = event.lanes.iter().flatten();
        texts.filter_map(|text| Some(self.history.writes[*self.marks.get(&**text)?].invoked)).max()
    }

    /// Returns whether a change of `key` beyond `revision` may have been committed at that moment.
    pub(super) fn superseded(&self, key: &str, revision: u64, at: Moment) -> bool {
        let revisions = self.of_key.get(key).map_or(&[][..], Vec::as_slice);
        revisions.iter().rev().take_while(|later| **later > revision).any(|later| {
            let event = self.events[later].event;
            match event.lanes {
                Some(_) => self.invoked(event).is_none_or(|invoked| invoked < at),
                None => self.sources(key, 0, None).any(|source| source.invoked < at),
            }
        })
    }

    /// Returns whether a delivered change may have been followed by an undelivered deletion before a moment.
    pub(super) fn may_be_deleted(&self, event: &ComponentEvent, before: Moment) -> bool {
        let changed = self.invoked(event).unwrap_or_default();
        let mut deletions = self.sources(&event.key, 0, None);
        deletions.any(|deletion| deletion.invoked < before && deletion.ended > changed)
    }

    /// The components that changed after one revision and up to another.
    pub(super) fn changed(&self, after: u64, up_to: u64) -> impl Iterator<Item = &'h str> {
        let range = if after < up_to { after + 1..up_to + 1 } else { 0..0 };
        self.events.range(range).map(|(_, known)| &*known.event.key)
    }

    /// The newest change of a component up to a revision.
    pub(super) fn newest(&self, key: &str, up_to: u64) -> Option<&'h ComponentEvent> {
        let revisions = self.of_key.get(key)?;
        let place = revisions.partition_point(|revision| *revision <= up_to).checked_sub(1)?;
        Some(self.events[&revisions[place]].event)
    }

    /// The highest bookmark of any watcher before a moment, and the watcher.
    pub(super) fn known_at(&self, moment: Moment) -> (u64, &'h str) {
        let place = self.bookmarks.partition_point(|(at, ..)| *at < moment).checked_sub(1);
        place.map_or((0, ""), |place| (self.bookmarks[place].1, self.bookmarks[place].2))
    }

    /// Every component of any write.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'h str> {
        self.writes.keys().copied()
    }

    /// Returns the largest possible number of deletions.
    pub(super) fn deletions(&self) -> usize {
        let writes = self.history.writes.iter();
        writes
            .filter(|write| {
                matches!(write.change, WriteChange::Delete) && write.outcome != WriteOutcome::Refused
            })
            .count()
    }
}

/// The first revision at which a write shows in a component.
type FirstSeen<'h> = HashMap<(usize, &'h str), u64>;

/// Times of the write that a lane shows.
struct LaneSource {
    invoked: Moment,
    ended: Moment,
}

/// Returns the writes listed for a component.
fn listed<'w>(lists: &'w HashMap<&str, Vec<usize>>, key: &str) -> &'w [usize] {
    lists.get(key).map_or(&[], Vec::as_slice)
}

fn value(event: &ComponentEvent, lane: usize) -> Option<&str> {
    event.lanes.as_ref().map(|lanes| &*lanes[lane])
}
