//! Troubles of components.
//!
//! Rules decide by the kind alone. The text is for people: it carries the words of peers, which may begin like any text
//! of Reveille.

use std::{fmt::Display, sync::Arc};

use crate::core::text::text;

pub mod recorded;

/// Beginning of a text that names an awaited peer.
pub const WAITING_FOR: &str = "waiting for ";

/// Beginning of a text about an upstream that took an action and does not report its results.
pub const NO_RESULTS_FROM: &str = "no results from ";

/// Kind of a trouble, by which rules decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TroubleKind {
    /// A peer refused or failed, or a person wrote the text. It stays until an action begins.
    #[default]
    Failed,
    /// No attempt is left, and no peer gave a reason. It stays as well.
    Exhausted,
    /// The configuration upstream does not take the wanted configuration. The trouble passes once the upstream does.
    ConfigurationRefused,
    /// The latest observation of the node forbids an action, for example a lock. The trouble passes with the
    /// observation.
    Held,
    /// The inventory does not list the node. The trouble passes once the inventory does, or once no service acts on the
    /// component any more.
    NotListed,
    /// The component waits for a peer. The time of its action does not run meanwhile, and the attempt is not lost.
    Waiting,
    /// An action has begun and its results are not reported. The time of the action runs.
    NoResults,
    /// The session of the component is paused. The trouble passes once the session is resumed, or once no service acts on
    /// the component any more.
    Paused,
}

impl TroubleKind {
    /// The word in events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::ConfigurationRefused => "configuration_refused",
            Self::Held => "held",
            Self::NotListed => "not_listed",
            Self::Waiting => "waiting",
            Self::NoResults => "no_results",
            Self::Paused => "paused",
        }
    }

    /// Returns whether the trouble is over as soon as no obstacle is left.
    pub fn passes(self) -> bool {
        match self {
            Self::Failed | Self::Exhausted => false,
            Self::ConfigurationRefused
            | Self::Held
            | Self::NotListed
            | Self::Waiting
            | Self::NoResults
            | Self::Paused => true,
        }
    }

    /// Returns whether the trouble is over when no service acts on the component any more.
    pub(crate) fn passes_when_left_alone(self) -> bool {
        match self {
            Self::Failed | Self::Exhausted | Self::ConfigurationRefused | Self::Held => false,
            Self::NotListed | Self::Waiting | Self::NoResults | Self::Paused => true,
        }
    }
}

/// Trouble of a component, with a text for people that is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Trouble {
    kind: TroubleKind,
    text: Arc<str>,
}

impl Trouble {
    /// Makes the trouble that `text` describes; `None`: the text is empty, so nothing is wrong.
    pub fn new(kind: TroubleKind, text: Arc<str>) -> Option<Self> {
        (!text.is_empty()).then_some(Self { kind, text })
    }

    /// Makes a refusal or failure in the `words` of a peer; `None`: the words are empty, so nothing is wrong.
    pub fn failed(words: &str) -> Option<Self> {
        Self::new(TroubleKind::Failed, text(words))
    }

    /// Makes a trouble in words of Reveille, which are never empty.
    pub fn own(kind: TroubleKind, own: &str) -> Self {
        Self { kind, text: text(own) }
    }

    /// Makes the trouble of waiting for a peer, described by its name and its last error.
    pub fn waiting_for(peer: impl Display) -> Self {
        Self { kind: TroubleKind::Waiting, text: format!("{WAITING_FOR}{peer}").into() }
    }

    /// Makes the trouble of an action without results. The upstream is described by its name and its last error.
    pub fn no_results_from(peer: impl Display) -> Self {
        Self { kind: TroubleKind::NoResults, text: format!("{NO_RESULTS_FROM}{peer}").into() }
    }

    /// Kind, by which rules decide.
    pub fn kind(&self) -> TroubleKind {
        self.kind
    }

    /// Text for people.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns whether `later` is the same trouble. The text of a passing trouble names its latest error, which may
    /// change with every try.
    pub fn goes_on_as(&self, later: &Self) -> bool {
        self.kind == later.kind && (self.kind.passes() || self.text == later.text)
    }
}

/// Change of the error that a component shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ErrorChange {
    /// The error stays.
    #[default]
    Keep,
    /// The error is cleared.
    Clear,
    /// Another trouble is shown.
    Show(Trouble),
}

impl ErrorChange {
    /// Returns the text that the component shows from now on; `None`: the text stays.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(""),
            Self::Show(trouble) => Some(&trouble.text),
        }
    }

    /// Returns the text as [`Self::text`] does, to be shared.
    pub(crate) fn shared_text(&self) -> Option<Arc<str>> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(Arc::default()),
            Self::Show(trouble) => Some(Arc::clone(&trouble.text)),
        }
    }

    /// Returns the trouble that the component shows from now on, if it is a new one.
    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Keep | Self::Clear => None,
            Self::Show(trouble) => Some(trouble),
        }
    }
}

impl From<Option<Trouble>> for ErrorChange {
    fn from(trouble: Option<Trouble>) -> Self {
        trouble.map_or(Self::Keep, Self::Show)
    }
}
