//! Tables of rules as text.
//!
//! ```text
//! # A comment.
//! == What the rule says
//! Header: of the next request
//! METHOD /path body, as it is sent
//!   and its next line
//! 200 {"what": "comes back", "when": "<time>"}
//! ```
//!
//! An expectation is a status and what comes with it:
//!
//! | text | meaning |
//! |---|---|
//! | `200 JSON` | a body of this shape; see `pattern` |
//! | `204` | no body |
//! | `404 Title` | a problem document with this title, and some detail |
//! | `404 Title: detail` | with this detail |
//! | `400 Title at member` | with a detail that names this member of the body |
//!
//! `eventually` before it: not at once, because it happens in the background.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

use crate::pattern;

/// How often an answer that comes in the background is looked for, and the pause in between: two minutes, which only
/// a hang takes.
pub const LOOKS: usize = 2_400;
pub const PAUSE: Duration = Duration::from_millis(50);

/// Media type of errors.
const PROBLEM: &str = "application/problem+json";

/// A statement and the exchanges that show it.
pub struct Rule {
    pub title: String,
    pub steps: Vec<Step>,
}

/// A request and its answer.
pub struct Step {
    pub request: Request,
    pub expected: Expected,
    /// Whether the answer may be another one for a while.
    pub eventually: bool,
}

/// What is sent.
#[derive(Clone, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Empty: none.
    pub body: String,
}

/// What comes back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub media_type: String,
    pub body: String,
}

/// What is to come back.
pub struct Expected {
    text: String,
    status: u16,
    content: Content,
}

enum Content {
    Nothing,
    Json(Value),
    Problem { title: String, detail: Option<String>, member: Option<String> },
}

/// Reads a table.
pub fn parse(text: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut request = Request::default();
    for line in joined(text) {
        if let Some(title) = line.strip_prefix("== ") {
            rules.push(Rule { title: title.to_owned(), steps: Vec::new() });
        } else if line.starts_with("eventually ") || line.starts_with(|c: char| c.is_ascii_digit()) {
            let (eventually, text) = match line.strip_prefix("eventually ") {
                Some(text) => (true, text),
                None => (false, &*line),
            };
            assert!(!request.method.is_empty(), "an answer without a request: {line}");
            let step = Step { request: std::mem::take(&mut request), expected: expected(text), eventually };
            rules.last_mut().expect("a rule before its answer").steps.push(step);
        } else if let Some((name, value)) = header(&line) {
            request.headers.push((name.to_owned(), value.to_owned()));
        } else {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            assert!(request.method.is_empty(), "a request without an answer before: {line}");
            request.method = words.next().expect("a method");
            request.path = words.next().unwrap_or_else(|| panic!("no path: {line}"));
            request.body = words.next().unwrap_or_default();
        }
    }
    assert!(request.method.is_empty(), "a request without an answer: {request}");
    assert!(rules.iter().all(|rule| !rule.steps.is_empty()), "a rule that shows nothing");
    rules
}

/// Lines with what continues them, without comments and empty ones.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => *last += &format!(" {}", line.trim()),
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let named = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    named.then_some((name, value.trim()))
}

fn expected(text: &str) -> Expected {
    let (status, rest) = text.split_at(3);
    let (status, rest) = (status.parse().unwrap_or_else(|_| panic!("no status: {text}")), rest.trim());
    let content = if rest.is_empty() {
        Content::Nothing
    } else if status < 400 {
        Content::Json(serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {text}")))
    } else {
        problem(rest)
    };
    Expected { text: text.to_owned(), status, content }
}

fn problem(text: &str) -> Content {
    let owned = |title: &str| title.to_owned();
    match (text.split_once(": "), text.split_once(" at ")) {
        (Some((title, detail)), _) => {
            Content::Problem { title: owned(title), detail: Some(owned(detail)), member: None }
        }
        (None, Some((title, member))) => {
            Content::Problem { title: owned(title), detail: None, member: Some(owned(member)) }
        }
        (None, None) => Content::Problem { title: owned(text), detail: None, member: None },
    }
}

impl Expected {
    /// Why `answer` is not it; none: it is.
    pub fn mismatch(&self, answer: &Answer) -> Option<String> {
        if answer.status != self.status {
            return Some(format!("the status is {}", answer.status));
        }
        let media_type = match self.content {
            Content::Nothing => return (!answer.body.is_empty()).then(|| "there is a body".to_owned()),
            Content::Json(_) => "application/json",
            Content::Problem { .. } => PROBLEM,
        };
        if answer.media_type != media_type {
            return Some(format!("the media type is '{}'", answer.media_type));
        }
        let body = match serde_json::from_str(&answer.body) {
            Ok(body) => body,
            Err(error) => return Some(format!("the body is no JSON: {error}")),
        };
        match &self.content {
            Content::Nothing => None,
            Content::Json(shape) => pattern::mismatch(shape, &body),
            Content::Problem { title, detail, member } => {
                let detail = detail.as_deref().unwrap_or("<text>");
                let status = self.status;
                let shape =
                    json!({"title": title, "status": status, "type": "about:blank", "detail": detail});
                pattern::mismatch(&shape, &body)
                    .or_else(|| member.as_ref().and_then(|member| not_named(member, &body)))
            }
        }
    }
}

fn not_named(member: &str, problem: &Value) -> Option<String> {
    let named = problem["detail"].as_str().is_some_and(|detail| detail.ends_with(&format!(" - '{member}'")));
    (!named).then(|| format!("the detail does not name '{member}'"))
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.body)?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, " [{name}: {value}]"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.status, self.media_type, self.body.trim_end())
    }
}
