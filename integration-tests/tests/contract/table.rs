//! Tables of rules as text.
//!
//! ```text
//! # A comment.
//! == The behaviour as one sentence
//! Header: of the next request
//! METHOD /path body, as it is sent
//!   and its next line
//! 200 {"member": "value", "when": "<time>"}
//! ```
//!
//! An expectation is a status and the shape of a body:
//!
//! | text | meaning |
//! |---|---|
//! | `200 JSON` | a body of this shape; see `pattern` |
//! | `204` | no body |
//! | `404 Title` | a problem document with this title, and some detail |
//! | `404 Title: detail` | with this detail |
//! | `400 Title at member` | with a detail that names this member of the body |
//!
//! `eventually` before it: the request is repeated, because the effect happens in the background.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

use crate::pattern;

/// Number of attempts to see an answer that changes in the background, and the pause in between: two minutes, which
/// only a hang takes.
pub const LOOKS: usize = 2_400;
pub const PAUSE: Duration = Duration::from_millis(50);

/// Media type of errors.
const PROBLEM: &str = "application/problem+json";

/// A statement and the exchanges that show it.
pub struct ContractRule {
    pub title: String,
    pub steps: Vec<RuleStep>,
}

/// A request and its answer.
pub struct RuleStep {
    pub request: RuleRequest,
    pub expected: ExpectedAnswer,
    /// Whether the answer may be another one for a while.
    pub eventually: bool,
}

/// A request as it is sent.
#[derive(Clone, Default)]
pub struct RuleRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Body of the request; empty: none.
    pub body: String,
}

/// The received answer.
#[derive(Debug)]
pub struct RuleAnswer {
    pub status: u16,
    pub media_type: String,
    pub body: String,
}

/// The expected answer.
pub struct ExpectedAnswer {
    text: String,
    status: u16,
    content: ExpectedBody,
}

enum ExpectedBody {
    Nothing,
    Json(Value),
    Problem { title: String, detail: Option<String>, member: Option<String> },
}

/// Reads a table.
pub fn parse(text: &str) -> Vec<ContractRule> {
    let mut rules: Vec<ContractRule> = Vec::new();
    let mut request = RuleRequest::default();
    for line in joined(text) {
        if let Some(title) = line.strip_prefix("== ") {
            rules.push(ContractRule { title: title.to_owned(), steps: Vec::new() });
        } else if line.starts_with("eventually ") || line.starts_with(|c: char| c.is_ascii_digit()) {
            let (eventually, text) = match line.strip_prefix("eventually ") {
                Some(text) => (true, text),
                None => (false, &*line),
            };
            assert!(!request.method.is_empty(), "an answer without a request: {line}");
            let step =
                RuleStep { request: std::mem::take(&mut request), expected: expected(text), eventually };
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

/// Lines joined with their continuations, without comments and empty lines.
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

fn expected(text: &str) -> ExpectedAnswer {
    let (status, rest) = text.split_at(3);
    let (status, rest) = (status.parse().unwrap_or_else(|_| panic!("no status: {text}")), rest.trim());
    let content = if rest.is_empty() {
        ExpectedBody::Nothing
    } else if status < 400 {
        ExpectedBody::Json(serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {text}")))
    } else {
        problem(rest)
    };
    ExpectedAnswer { text: text.to_owned(), status, content }
}

fn problem(text: &str) -> ExpectedBody {
    let owned = |title: &str| title.to_owned();
    match (text.split_once(": "), text.split_once(" at ")) {
        (Some((title, detail)), _) => {
            ExpectedBody::Problem { title: owned(title), detail: Some(owned(detail)), member: None }
        }
        (None, Some((title, member))) => {
            ExpectedBody::Problem { title: owned(title), detail: None, member: Some(owned(member)) }
        }
        (None, None) => ExpectedBody::Problem { title: owned(text), detail: None, member: None },
    }
}

impl ExpectedAnswer {
    /// Returns why `answer` does not match; `None`: it does.
    pub fn mismatch(&self, answer: &RuleAnswer) -> Option<String> {
        if answer.status != self.status {
            return Some(format!("the status is {}", answer.status));
        }
        let media_type = match self.content {
            ExpectedBody::Nothing => return (!answer.body.is_empty()).then(|| "there is a body".to_owned()),
            ExpectedBody::Json(_) => "application/json",
            ExpectedBody::Problem { .. } => PROBLEM,
        };
        if answer.media_type != media_type {
            return Some(format!("the media type is '{}'", answer.media_type));
        }
        let body = match serde_json::from_str(&answer.body) {
            Ok(body) => body,
            Err(error) => return Some(format!("the body is no JSON: {error}")),
        };
        match &self.content {
            ExpectedBody::Nothing => None,
            ExpectedBody::Json(shape) => pattern::mismatch(shape, &body),
            ExpectedBody::Problem { title, detail, member } => {
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

impl fmt::Display for ExpectedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for RuleRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.body)?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, " [{name}: {value}]"))
    }
}

impl fmt::Display for RuleAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.status, self.media_type, self.body.trim_end())
    }
}
