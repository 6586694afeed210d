//! Patterns of paths and of subjects.

/// Placeholder for the id of the node that the caller is.
const OWN_NODE: &str = "{own_node}";

/// Pattern of paths. `*` stands for one segment, `**` at the end for any number of segments, and `{own_node}` for the node
/// that the caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<PathSegment>,
    /// Allows further segments at the end.
    is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    Exact(String),
    Any,
    OwnNode,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The reason why the text is no pattern.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix('/').ok_or("has to begin with /")?;
        let (rest, is_open) = match rest.strip_suffix("**") {
            Some("") => ("", true),
            Some(before) => (before.strip_suffix('/').ok_or("** has to be a segment of its own")?, true),
            None => (rest, false),
        };
        let segments = match rest {
            "" => Vec::new(),
            segments => segments.split('/').map(PathSegment::parse).collect::<Result<_, _>>()?,
        };
        Ok(Self { segments, is_open })
    }

    /// Returns whether the pattern binds a segment to the node that the caller is.
    pub fn names_own_node(&self) -> bool {
        self.segments.contains(&PathSegment::OwnNode)
    }

    /// Returns whether a path has the shape of the pattern, whichever node it names.
    pub(super) fn has_shape_of(&self, path: &[String]) -> bool {
        let is_long_enough =
            if self.is_open { path.len() >= self.segments.len() } else { path.len() == self.segments.len() };
        is_long_enough && self.segments.iter().zip(path).all(|(pattern, segment)| pattern.fits(segment))
    }

    /// Returns whether every segment that the pattern binds to the caller is `node`.
    pub(super) fn is_about(&self, path: &[String], node: Option<&str>) -> bool {
        let mut bound = self.segments.iter().zip(path).filter(|(one, _)| **one == PathSegment::OwnNode);
        bound.all(|(_, segment)| Some(segment.as_str()) == node)
    }
}

impl PathSegment {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "" => Err("has an empty segment"),
            "*" => Ok(Self::Any),
            OWN_NODE => Ok(Self::OwnNode),
            other if other.contains(['*', '{', '}']) => {
                Err("a segment is *, {own_node}, or a text without these characters")
            }
            exact => Ok(Self::Exact(exact.to_owned())),
        }
    }

    fn fits(&self, segment: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == segment,
            Self::Any | Self::OwnNode => true,
        }
    }
}

/// Pattern of subjects: exact, or with `*` at the end for any rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectPattern {
    /// Exactly this subject.
    Exact(String),
    /// Every subject that begins so.
    Beginning(String),
}

impl SubjectPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(beginning) => Self::Beginning(beginning.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    pub(super) fn fits(&self, subject: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == subject,
            Self::Beginning(beginning) => subject.starts_with(beginning),
        }
    }
}
