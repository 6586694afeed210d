//! What all observations together say happened.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Finding, Rule};
use crate::history::{Change, Entry, Event, History, LANES, Moment, Outcome, Write};

/// A change that somebody saw.
struct Known<'h> {
    event: &'h Event,
    /// When it was seen first, and by whom.
    seen: Moment,
    by: &'h str,
}

/// All that was seen, by revision and by component.
pub(super) struct Truth<'h> {
    pub(super) history: &'h History,
    events: BTreeMap<u64, Known<'h>>,
    of_key: HashMap<&'h str, Vec<u64>>,
    /// The write of each text that only one write has.
    marks: HashMap<&'h str, usize>,
    /// Writes that may have an effect on a component.
    writes: HashMap<&'h str, Vec<usize>>,
    /// The highest bookmark that anybody had from a moment on, and who.
    bookmarks: Vec<(Moment, u64, &'h str)>,
}

impl<'h> Truth<'h> {
    /// Puts together what was seen, and tells where observations contradict one another.
    pub(super) fn of(history: &'h History) -> (Self, Vec<Finding>) {
        let mut truth = Self {
            history,
            events: BTreeMap::new(),
            of_key: HashMap::new(),
            marks: HashMap::new(),
            writes: HashMap::new(),
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

    fn learn(&mut self, index: usize, write: &'h Write) {
        if write.outcome == Outcome::Refused {
            return;
        }
        for lane in 0..LANES {
            if let Some(Some(text)) = write.change.sets(lane).filter(|text| *text != Some("")) {
                self.marks.insert(text, index);
            }
        }
        for key in &write.keys {
            self.writes.entry(key).or_default().push(index);
        }
        if let Outcome::Acknowledged { at, revision: Some(revision) } = write.outcome {
            self.bookmarks.push((at, revision, "an answer"));
        }
    }

    fn take_in(&mut self, by: &'h str, entry: &'h Entry, findings: &mut Vec<Finding>) {
        let (seen, events, revision): (_, Vec<&Event>, _) = match entry {
            Entry::Listed { at, events, revision, .. } => (*at, events.iter().collect(), *revision),
            Entry::Told { at, changed, deleted, revision, .. } => {
                (*at, changed.iter().chain(deleted).collect(), *revision)
            }
            Entry::Opened { .. } | Entry::Expired | Entry::Broke { .. } | Entry::Stuck => return,
        };
        self.bookmarks.push((seen, revision, by));
        for event in events {
            let known = self.events.entry(event.revision).or_insert(Known { event, seen, by });
            if known.event != event {
                let what = format!("{event:?}, but {} saw {:?}", known.by, known.event);
                findings.push(Finding { rule: Rule::OneTruth, who: by.to_owned(), what });
            } else if seen < known.seen {
                (known.seen, known.by) = (seen, by);
            }
        }
    }

    /// The rules about what was written and what was seen of it.
    pub(super) fn judge(&self) -> Vec<Finding> {
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
            if write.outcome != Outcome::Refused {
                self.in_order(index, write, &first, &mut findings);
                self.was_seen(index, write, &first, &mut findings);
            }
        }
        findings
    }

    /// [`Rule::Written`].
    fn was_written(&self, known: &Known<'h>, findings: &mut Vec<Finding>) {
        let Known { event, seen, by } = known;
        for lane in 0..LANES {
            let value = value(event, lane);
            let written = self.sources(&event.key, lane, value).iter().any(|write| write.invoked < *seen);
            if !written {
                let what = format!("nobody wrote {value:?} of {event:?}");
                findings.push(Finding { rule: Rule::Written, who: (*by).to_owned(), what });
                return;
            }
        }
    }

    /// [`Rule::NothingLost`], judged by what else a change shows.
    fn lost_nothing(&self, known: &Known<'h>, findings: &mut Vec<Finding>) {
        let Some(newest) = self.invoked(known.event) else { return };
        for lane in 0..LANES {
            let value = value(known.event, lane);
            if let Some(lost) = self.overwritten(&known.event.key, lane, value, newest) {
                let what = format!("w{lost} is lost in {:?}", known.event);
                findings.push(Finding { rule: Rule::NothingLost, who: known.by.to_owned(), what });
            }
        }
    }

    /// [`Rule::NothingLost`], judged by the order of revisions: what was overwritten does not come back.
    fn returns_to_nothing(&self, key: &str, revisions: &[u64], findings: &mut Vec<Finding>) {
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
                    findings.push(Finding { rule: Rule::NothingLost, who: known.by.to_owned(), what });
                }
            }
        }
    }

    /// [`Rule::InOrder`].
    fn in_order(&self, index: usize, write: &Write, first: &FirstSeen<'h>, findings: &mut Vec<Finding>) {
        let revisions = || write.keys.iter().filter_map(|key| first.get(&(index, &**key)).copied());
        let (known, by) = self.known_at(write.invoked);
        if let Some(early) = revisions().find(|revision| *revision <= known) {
            let what = format!("w{index} got revision {early}, but everything up to {known} was told before");
            findings.push(Finding { rule: Rule::InOrder, who: by.to_owned(), what });
        }
        if let Outcome::Acknowledged { revision: Some(answered), .. } = write.outcome
            && let Some(late) =
                revisions().find(|revision| *revision > answered && !self.may_be_of_another(index, *revision))
        {
            let what = format!("w{index} got revision {late}, but its answer said {answered}");
            findings.push(Finding { rule: Rule::InOrder, who: "an answer".to_owned(), what });
        }
    }

    /// [`Rule::Seen`].
    fn was_seen(&self, index: usize, write: &Write, first: &FirstSeen<'h>, findings: &mut Vec<Finding>) {
        if write.outcome == Outcome::Unknown {
            return;
        }
        for key in &write.keys {
            let seen = |index: &usize| match &self.history.writes[*index].change {
                Change::Delete => self.of_key.get(&**key).is_some_and(|revisions| {
                    revisions.iter().any(|revision| self.events[revision].event.lanes.is_none())
                }),
                Change::Merge(_) | Change::Replace(_) => first.contains_key(&(*index, &**key)),
            };
            let covers = |other: &&usize| {
                let other = &self.history.writes[**other];
                let overwrites = |lane| match write.change.sets(lane) {
                    None | Some(Some("")) => true,
                    Some(Some(_)) => other.change.sets(lane).is_some(),
                    // Whoever makes it anew may be overwritten in turn.
                    Some(None) => true,
                };
                other.ended() > write.invoked && (0..LANES).all(overwrites)
            };
            let others = self.writes.get(&**key).into_iter().flatten().filter(|other| **other != index);
            if !seen(&index) && !others.filter(covers).any(seen) {
                let what = format!("nobody saw what it did to {key}: {:?}", write.change);
                findings.push(Finding { rule: Rule::Seen, who: format!("w{index}"), what });
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
    fn sources(&self, key: &str, lane: usize, value: Option<&str>) -> Vec<Source> {
        let own = self.writes.get(key).map_or(&[][..], Vec::as_slice);
        let marked =
            value.and_then(|text| self.marks.get(text)).filter(|index| own.binary_search(index).is_ok());
        let unmarked = if value.is_none_or(str::is_empty) { own } else { &[] };
        let candidates = marked.into_iter().chain(unmarked).map(|index| &self.history.writes[*index]);
        let about = |write: &&Write| write.change.sets(lane) == Some(value);
        let beginning = value.is_none().then_some(Source { invoked: 0, ended: 0 });
        let writes = candidates.filter(about);
        let sources = writes.map(|write| Source { invoked: write.invoked, ended: write.ended() });
        sources.chain(beginning).collect()
    }

    /// An acknowledged write that certainly replaced what a lane still shows, and was over before `before`.
    pub(super) fn overwritten(
        &self,
        key: &str,
        lane: usize,
        value: Option<&str>,
        before: Moment,
    ) -> Option<usize> {
        // Whatever set it last may have done so as late as the latest of those who may have.
        let latest = self.sources(key, lane, value).iter().map(|source| source.ended).max()?;
        self.writes.get(key).into_iter().flatten().copied().find(|index| {
            let write = &self.history.writes[*index];
            write.change.sets(lane).is_some() && write.invoked > latest && write.ended() < before
        })
    }

    /// Whether a change in which a write shows may be that of a later one: then nobody was told the step between.
    fn may_be_of_another(&self, index: usize, revision: u64) -> bool {
        let event = self.events[&revision].event;
        let began = self.history.writes[index].invoked;
        self.writes.get(&*event.key).into_iter().flatten().filter(|other| **other != index).any(|other| {
            let other = &self.history.writes[*other];
            let shows = |lane| other.change.sets(lane).is_some_and(|set| set == value(event, lane));
            other.ended() > began && (0..LANES).any(shows)
        })
    }

    /// The latest moment at which a write began that shows in a change: it was not committed before. None when
    /// nothing in it tells.
    fn invoked(&self, event: &Event) -> Option<Moment> {
        let texts = event.lanes.iter().flatten();
        texts.filter_map(|text| Some(self.history.writes[*self.marks.get(&**text)?].invoked)).max()
    }

    /// Whether a change of `key` beyond `revision` may have been committed at that moment.
    pub(super) fn superseded(&self, key: &str, revision: u64, at: Moment) -> bool {
        let revisions = self.of_key.get(key).map_or(&[][..], Vec::as_slice);
        revisions.iter().rev().take_while(|later| **later > revision).any(|later| {
            let event = self.events[later].event;
            match event.lanes {
                Some(_) => self.invoked(event).is_none_or(|invoked| invoked < at),
                None => self.sources(key, 0, None).iter().any(|source| source.invoked < at),
            }
        })
    }

    /// Whether a change that somebody saw may have been followed by a deletion that nobody saw, before a moment.
    pub(super) fn may_be_deleted(&self, event: &Event, before: Moment) -> bool {
        let changed = self.invoked(event).unwrap_or_default();
        let deletions = self.sources(&event.key, 0, None);
        deletions.iter().any(|deletion| deletion.invoked < before && deletion.ended > changed)
    }

    /// The components that changed after one revision and up to another.
    pub(super) fn changed(&self, after: u64, up_to: u64) -> impl Iterator<Item = &'h str> {
        let range = if after < up_to { after + 1..up_to + 1 } else { 0..0 };
        self.events.range(range).map(|(_, known)| &*known.event.key)
    }

    /// The newest change of a component up to a revision.
    pub(super) fn newest(&self, key: &str, up_to: u64) -> Option<&'h Event> {
        let revisions = self.of_key.get(key)?;
        let place = revisions.partition_point(|revision| *revision <= up_to).checked_sub(1)?;
        Some(self.events[&revisions[place]].event)
    }

    /// The highest bookmark that anybody had before a moment, and who.
    pub(super) fn known_at(&self, moment: Moment) -> (u64, &'h str) {
        let place = self.bookmarks.partition_point(|(at, ..)| *at < moment).checked_sub(1);
        place.map_or((0, ""), |place| (self.bookmarks[place].1, self.bookmarks[place].2))
    }

    /// Every component that somebody may have written.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'h str> {
        self.writes.keys().copied()
    }

    /// How many deletions there may have been.
    pub(super) fn deletions(&self) -> usize {
        let writes = self.history.writes.iter();
        writes
            .filter(|write| matches!(write.change, Change::Delete) && write.outcome != Outcome::Refused)
            .count()
    }
}

/// The first revision at which a write shows in a component.
type FirstSeen<'h> = HashMap<(usize, &'h str), u64>;

/// When something was written that a lane shows.
struct Source {
    invoked: Moment,
    ended: Moment,
}

fn value(event: &Event, lane: usize) -> Option<&str> {
    event.lanes.as_ref().map(|lanes| &*lanes[lane])
}
