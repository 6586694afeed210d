//! What stands in the way of a component.
//!
//! Rules decide by the kind alone. The text is for people: it carries the words of peers, which may begin like any text
//! of our own.

use std::{fmt::Display, sync::Arc};

use crate::text::text;

/// How a text begins that names the peer that is waited for.
pub const WAITING_FOR: &str = "waiting for ";

/// How a text begins about an upstream that took an action and does not report its results.
pub const NO_RESULTS_FROM: &str = "no results from ";

/// Kind of a trouble, as far as decisions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TroubleKind {
    /// A peer refused or failed, or a person wrote the text. Only an action that begins takes it away.
    #[default]
    Failed,
    /// Every attempt was used up and no peer gave a reason. It stays as well.
    Exhausted,
    /// The configuration upstream does not take what is wanted. It passes once the upstream does.
    ConfigurationRefused,
    /// The node cannot be acted on as it is observed now, for example because it is locked. It passes with the
    /// observation.
    Held,
    /// The inventory does not list the node. It passes once the inventory does, or the component is left alone.
    NotListed,
    /// A peer is waited for. The time of an action does not run meanwhile, and its attempt is not lost.
    Waiting,
    /// The upstream took an action and does not report its results. The time of the action runs.
    NoResults,
}

impl TroubleKind {
    /// Whether the trouble is over as soon as nothing stands in the way any more.
    pub fn passes(self) -> bool {
        match self {
            Self::Failed | Self::Exhausted => false,
            Self::ConfigurationRefused | Self::Held | Self::NotListed | Self::Waiting | Self::NoResults => {
                true
            }
        }
    }

    /// Whether the trouble is over when nobody acts on the component any more.
    pub(crate) fn passes_when_left_alone(self) -> bool {
        match self {
            Self::Failed | Self::Exhausted | Self::ConfigurationRefused | Self::Held => false,
            Self::NotListed | Self::Waiting | Self::NoResults => true,
        }
    }
}

/// A trouble of a component, with a text for people that is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Trouble {
    kind: TroubleKind,
    text: Arc<str>,
}

impl Trouble {
    /// The trouble that `text` describes; `None`: the text is empty, so there is none.
    pub fn new(kind: TroubleKind, text: Arc<str>) -> Option<Self> {
        (!text.is_empty()).then_some(Self { kind, text })
    }

    /// A refusal or failure in the `words` of a peer; `None`: it has none, so nothing is wrong.
    pub fn failed(words: &str) -> Option<Self> {
        Self::new(TroubleKind::Failed, text(words))
    }

    /// A trouble in words of our own, of which there are some.
    pub fn own(kind: TroubleKind, own: &str) -> Self {
        Self { kind, text: text(own) }
    }

    /// A peer that is waited for, described by its name and its last error.
    pub fn waiting_for(peer: impl Display) -> Self {
        Self { kind: TroubleKind::Waiting, text: format!("{WAITING_FOR}{peer}").into() }
    }

    /// An upstream that took an action and does not report its results, described by its name and its last error.
    pub fn no_results_from(peer: impl Display) -> Self {
        Self { kind: TroubleKind::NoResults, text: format!("{NO_RESULTS_FROM}{peer}").into() }
    }

    /// The kind, by which rules decide.
    pub fn kind(&self) -> TroubleKind {
        self.kind
    }

    /// The text for people.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}

/// A change of the error that a component shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ErrorChange {
    /// The error stays.
    #[default]
    Keep,
    /// Nothing is wrong any more.
    Clear,
    /// This is wrong now.
    Show(Trouble),
}

impl ErrorChange {
    /// The text that the component shows from now on; `None`: the text stays.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(""),
            Self::Show(trouble) => Some(&trouble.text),
        }
    }

    /// The same text, to be shared.
    pub(crate) fn shared_text(&self) -> Option<Arc<str>> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(Arc::default()),
            Self::Show(trouble) => Some(Arc::clone(&trouble.text)),
        }
    }

    /// The trouble that is shown from now on, if there is a new one.
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
