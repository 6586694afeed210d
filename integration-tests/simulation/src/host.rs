//! The host that acts at present. A host is a span: a part acts within the span in which it was started, and the clock
//! of the host is ahead of or behind all others.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use chassis::process::clock::SlewedClock;

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::Interest,
};
use tracing_core::span::Current;

/// Number of no host: the network, the machine, people.
const NOBODY: usize = 0;

thread_local! {
    /// Host and metadata of each span, by its id.
    static SPANS: RefCell<Vec<(usize, &'static Metadata<'static>)>> = const { RefCell::new(Vec::new()) };
    /// Spans that are entered now, with their hosts.
    static ENTERED: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
    static AHEAD: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    /// Clock of the process of each host that has read it.
    static CLOCKS: RefCell<HashMap<usize, Arc<SlewedClock>>> = RefCell::default();
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Returns the span of the host with that number, from 1.
pub fn span(number: usize) -> tracing::Span {
    tracing::info_span!("host", number)
}

/// Sets the number of seconds by which the wall clock of a host is ahead of the true time.
pub fn set_ahead(number: usize, seconds: i64) {
    AHEAD.with_borrow_mut(|ahead| {
        if ahead.len() <= number {
            ahead.resize(number + 1, 0);
        }
        ahead[number] = seconds;
    });
}

/// Returns the number of seconds by which the wall clock of the acting host is ahead of the true time.
pub(crate) fn ahead() -> i64 {
    let number = acting();
    let ahead = AHEAD.try_with(|ahead| ahead.try_borrow().ok().and_then(|ahead| ahead.get(number).copied()));
    ahead.ok().flatten().unwrap_or(0)
}

/// Returns the number of the acting host.
fn acting() -> usize {
    let now =
        ENTERED.try_with(|entered| entered.try_borrow().ok().and_then(|entered| entered.last().copied()));
    now.ok().flatten().map_or(NOBODY, |(host, _)| host)
}

/// Returns the clock of the acting process.
pub(crate) fn clock() -> Arc<SlewedClock> {
    let number = acting();
    let known = CLOCKS.with_borrow(|clocks| clocks.get(&number).cloned());
    known.unwrap_or_else(|| {
        let clock = Arc::new(SlewedClock::start());
        CLOCKS.with_borrow_mut(|clocks| clocks.insert(number, Arc::clone(&clock)));
        clock
    })
}

/// Lets the next process of a host start a clock of its own.
pub(crate) fn forget_clock(number: usize) {
    CLOCKS.with_borrow_mut(|clocks| clocks.remove(&number));
}

/// Tracks the acting host; `told` also prints its logs.
pub fn watch(told: bool) {
    TOLD.set(told);
    // A second simulation in the same process finds the subscriber set.
    let _set = tracing::subscriber::set_global_default(Hosts);
}

struct Hosts;

impl Subscriber for Hosts {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let told = metadata.is_event() && TOLD.get() && *metadata.level() <= tracing::Level::INFO;
        metadata.is_span() && *metadata.level() <= tracing::Level::DEBUG || told
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.is_span() { Interest::always() } else { Interest::sometimes() }
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut number = Number(None);
        if attributes.metadata().name() == "host" {
            attributes.record(&mut number);
        }
        let inherited = || match attributes.parent() {
            Some(parent) => SPANS.with_borrow(|spans| spans.get(index(parent)).map(|(host, _)| *host)),
            None if attributes.is_root() => None,
            None => ENTERED.with_borrow(|entered| entered.last().map(|(host, _)| *host)),
        };
        let host = number.0.or_else(inherited).unwrap_or(NOBODY);
        SPANS.with_borrow_mut(|spans| {
            spans.push((host, attributes.metadata()));
            Id::from_u64(spans.len() as u64)
        })
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        let host = ENTERED.with_borrow(|entered| entered.last().map_or(NOBODY, |(host, _)| *host));
        crate::trace::say(|| {
            let name =
                crate::replica::Replica::of_host(host).map_or("-".to_owned(), |replica| replica.name());
            format!("  {name}: {} {}{}", event.metadata().level(), event.metadata().target(), words.0)
        });
    }

    fn enter(&self, span: &Id) {
        let host = SPANS.with_borrow(|spans| spans.get(index(span)).map_or(NOBODY, |(host, _)| *host));
        ENTERED.with_borrow_mut(|entered| entered.push((host, span.into_u64())));
    }

    fn exit(&self, _: &Id) {
        ENTERED.with_borrow_mut(Vec::pop);
    }

    fn current_span(&self) -> Current {
        let Some((_, id)) = ENTERED.with_borrow(|entered| entered.last().copied()) else {
            return Current::none();
        };
        let id = Id::from_u64(id);
        match SPANS.with_borrow(|spans| spans.get(index(&id)).copied()) {
            Some((_, metadata)) => Current::new(id, metadata),
            None => Current::none(),
        }
    }
}

fn index(span: &Id) -> usize {
    usize::try_from(span.into_u64()).unwrap_or(usize::MAX).wrapping_sub(1)
}

struct Number(Option<usize>);

impl Visit for Number {
    fn record_u64(&mut self, _: &Field, value: u64) {
        self.0 = usize::try_from(value).ok();
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        // Writing to a string cannot fail.
        let _written = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
