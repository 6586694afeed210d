//! Policy of a rollout: how members are cut into batches, and when the next batch may be opened.

use std::{num::NonZeroU32, time::Duration};

use crate::core::invalid::Invalid;

/// Longest time between two batches.
pub const LONGEST_SOAK: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Percent of members that have to succeed if nobody says otherwise.
pub const USUAL_THRESHOLD: u32 = 100;

/// Part of the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchShare {
    /// Number of members.
    Count(NonZeroU32),
    /// Part of all members in percent, at most 100; at least one member.
    Percent(NonZeroU32),
}

impl BatchShare {
    /// Returns the number of members that the share is, of `all`. It is never 0.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Count(count) => count.get() as usize,
            Self::Percent(percent) => (all * percent.get() as usize).div_ceil(100).max(1),
        }
    }

    /// Reads a share that is given as a count or in percent; `None`: neither is given.
    ///
    /// # Errors
    /// Names the field that is 0, beyond 100 percent, or beside the other one.
    fn parse(name: &str, count: Option<u32>, percent: Option<u32>) -> Result<Option<Self>, Invalid> {
        let (in_numbers, in_percent) = (format!("{name}_count"), format!("{name}_percent"));
        match (count, percent) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Invalid::new(
                in_percent,
                format!("cannot stand beside {in_numbers}: give one of the two"),
            )),
            (Some(count), None) => Ok(Some(Self::Count(positive(&in_numbers, count)?))),
            (None, Some(percent)) => {
                let percent = positive(&in_percent, percent)?;
                check_percent(&in_percent, percent.get())?;
                Ok(Some(Self::Percent(percent)))
            }
        }
    }
}

fn positive(field: &str, number: u32) -> Result<NonZeroU32, Invalid> {
    NonZeroU32::new(number).ok_or_else(|| Invalid::new(field, "is 0 but has to be at least 1"))
}

fn check_percent(field: &str, percent: u32) -> Result<(), Invalid> {
    if percent > 100 {
        return Err(Invalid::new(field, format!("is {percent} but may be at most 100")));
    }
    Ok(())
}

/// Rule by which the members after the canary are cut. `G` is a kind of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchCut<G> {
    /// A single batch.
    Whole,
    /// Batches of that size.
    Share(BatchShare),
    /// A batch for each group of that kind.
    Group(G),
}

/// Consequence of a batch that misses its threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissAction {
    /// The rollout waits until a person decides.
    #[default]
    Pause,
    /// The rollout ends, and the members of closed batches are let go.
    Stop,
}

/// Policy of a rollout. `G` is a kind of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutPolicy<G> {
    /// Size of the first batch; `None`: it is like the others.
    pub canary: Option<BatchShare>,
    /// Cut of the other members.
    pub cut: BatchCut<G>,
    /// Most members of open batches that may be under way at a time; `None`: any number.
    pub most_in_flight: Option<NonZeroU32>,
    /// Time between the success of a batch and the opening of the next one.
    pub soak: Duration,
    /// Percent of a batch's members that have to succeed before the next one is opened, at most 100.
    pub threshold: u32,
    /// Consequence of a batch in which too few do.
    pub on_miss: MissAction,
}

/// Policy as a client gives it. Members that are `None` are not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRequest<G> {
    /// Number of members of the first batch.
    pub canary_count: Option<u32>,
    /// Percent of the members in the first batch.
    pub canary_percent: Option<u32>,
    /// Number of members of the other batches.
    pub batch_count: Option<u32>,
    /// Percent of the members in each of the other batches.
    pub batch_percent: Option<u32>,
    /// Kind of the groups that are the other batches.
    pub by: Option<G>,
    /// Most members of open batches that may be under way at a time.
    pub max_in_flight: Option<u32>,
    /// Time between the success of a batch and the opening of the next one, in milliseconds.
    pub soak_millis: Option<i64>,
    /// Percent of a batch's members that have to succeed.
    pub threshold_percent: Option<u32>,
    /// Consequence of a batch in which too few do.
    pub on_miss: MissAction,
}

impl<G> Default for PolicyRequest<G> {
    fn default() -> Self {
        Self {
            canary_count: None,
            canary_percent: None,
            batch_count: None,
            batch_percent: None,
            by: None,
            max_in_flight: None,
            soak_millis: None,
            threshold_percent: None,
            on_miss: MissAction::default(),
        }
    }
}

impl<G> RolloutPolicy<G> {
    /// Reads the policy of a client.
    ///
    /// # Errors
    /// Names the first field that is out of its bounds, or excludes another one.
    pub fn parse(request: PolicyRequest<G>) -> Result<Self, Invalid> {
        let canary = BatchShare::parse("canary", request.canary_count, request.canary_percent)?;
        let share = BatchShare::parse("batch", request.batch_count, request.batch_percent)?;
        let cut = match (share, request.by) {
            (None, None) => BatchCut::Whole,
            (Some(share), None) => BatchCut::Share(share),
            (None, Some(kind)) => BatchCut::Group(kind),
            (Some(_), Some(_)) => {
                let reason = "cannot stand beside a size of the batches: give one of the two";
                return Err(Invalid::new("by", reason));
            }
        };
        let most_in_flight = request.max_in_flight.map(|most| positive("max_in_flight", most)).transpose()?;
        if canary.is_none() && matches!(cut, BatchCut::Whole) && most_in_flight.is_none() {
            let reason = "gives no batches: give a canary, a size or a kind of batches, or a limit of members in flight";
            return Err(Invalid::new("", reason));
        }
        let threshold = request.threshold_percent.unwrap_or(USUAL_THRESHOLD);
        check_percent("threshold_percent", threshold)?;
        let soak = soak(request.soak_millis.unwrap_or_default())?;
        Ok(Self { canary, cut, most_in_flight, soak, threshold, on_miss: request.on_miss })
    }

    /// Cuts members into batches, which keep the order of the members. `group` names the group of a member.
    ///
    /// No batch is larger than the limit of members that may be under way, so that each can be opened.
    pub fn batches<T>(&self, mut members: Vec<T>, group: impl Fn(&T, &G) -> String) -> Vec<Vec<T>> {
        let all = members.len();
        let first = self.canary.map_or(0, |canary| canary.of(all)).min(all);
        let rest = members.split_off(first);
        let most = self.most_in_flight.map_or(usize::MAX, |most| most.get() as usize);
        let mut batches = chunks(members, most);
        match &self.cut {
            BatchCut::Whole => batches.extend(chunks(rest, most)),
            BatchCut::Share(share) => batches.extend(chunks(rest, share.of(all).min(most))),
            BatchCut::Group(kind) => {
                let groups = groups(rest, |member| group(member, kind));
                batches.extend(groups.into_iter().flat_map(|members| chunks(members, most)));
            }
        }
        batches
    }
}

fn soak(millis: i64) -> Result<Duration, Invalid> {
    let millis = u64::try_from(millis).map_err(|_| Invalid::new("soak", "is negative"))?;
    let soak = Duration::from_millis(millis);
    if soak > LONGEST_SOAK {
        let days = LONGEST_SOAK.as_secs() / (24 * 60 * 60);
        return Err(Invalid::new("soak", format!("is longer than {days} days")));
    }
    Ok(soak)
}

fn chunks<T>(members: Vec<T>, size: usize) -> Vec<Vec<T>> {
    let mut chunks = Vec::new();
    for member in members {
        match chunks.last_mut() {
            Some(chunk) if Vec::len(chunk) < size => chunk.push(member),
            Some(_) | None => chunks.push(vec![member]),
        }
    }
    chunks
}

/// Returns the members by group, in the order of the first member of each group.
fn groups<T>(members: Vec<T>, name: impl Fn(&T) -> String) -> Vec<Vec<T>> {
    let mut numbers = std::collections::HashMap::new();
    let mut groups: Vec<Vec<T>> = Vec::new();
    for member in members {
        let number = *numbers.entry(name(&member)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
    }
    groups
}
