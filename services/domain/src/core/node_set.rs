//! Sets of nodes as operators type them: `x1000c[0-3]s[0-7]b0n[0-1],!x1000c0s3b0n0`.
//!
//! A set is a list of terms, separated by commas. A term is a name; a name with brackets stands for several names, one for
//! each number in the brackets, with leading zeros if the lower bound has some (`nid[001-128]`). `!` in front of a
//! term removes its names from the terms before it, and `&` keeps only these, as in the limit of a session. A name of a
//! group or role is a term too.

use std::{collections::BTreeSet, fmt};

use super::{limits::LONGEST_NAME, xname::node_xname};

/// Most names of a set: ten times the largest machine that Reveille is measured with.
pub const MOST_NODES: usize = 1_000_000;

/// Most digits of a number in brackets, so that it fits a machine word.
const MOST_DIGITS: usize = 9;

/// Set of nodes, as a list of names with the effects that they have on the names before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSet {
    terms: Vec<NodeTerm>,
}

/// Names with the same effect.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeTerm {
    effect: TermEffect,
    names: Vec<String>,
}

/// Effect of a term on the names before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TermEffect {
    Add,
    /// `&`: keeps only the names of the term.
    Keep,
    /// `!`: removes the names of the term.
    Remove,
}

/// Refusal of a text as a set of nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{defect} (character {position})")]
pub struct NodeSetError {
    /// Position of the first character that is wrong; the first character of the text has position 1.
    pub position: usize,
    /// Violated rule.
    pub defect: NodeSetDefect,
}

/// Rule that a text violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeSetDefect {
    /// Nothing stands between two commas, or the text is empty.
    EmptyTerm,
    /// A bracket is opened and not closed.
    OpenBracket,
    /// A bracket is closed and not opened.
    ClosingBracket,
    /// Nothing stands in brackets, or between their commas.
    EmptyRange,
    /// A character in brackets is neither a digit nor `-` nor a comma.
    NoNumber,
    /// A number has more digits than are read.
    LongNumber,
    /// The upper bound is below the lower bound.
    DescendingRange,
    /// A name has a character that separates or selects.
    StrayCharacter,
    /// `&` stands in front of several names, each of which would remove the others.
    KeptSeveral,
    /// The first term only removes or keeps, so the set is empty.
    NothingBefore,
    /// A name is longer than names of components may be.
    LongName,
    /// The set has more names than are allowed.
    TooMany,
}

impl fmt::Display for NodeSetDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyTerm => f.write_str("a name is missing"),
            Self::OpenBracket => f.write_str("the bracket is not closed"),
            Self::ClosingBracket => f.write_str("the bracket was not opened"),
            Self::EmptyRange => f.write_str("a number is missing"),
            Self::NoNumber => f.write_str("brackets hold numbers such as 0-3,7"),
            Self::LongNumber => write!(f, "the number has more than {MOST_DIGITS} digits"),
            Self::DescendingRange => f.write_str("the range ends below its beginning"),
            Self::StrayCharacter => f.write_str("no name has this character"),
            Self::KeptSeveral => f.write_str("& takes one name"),
            Self::NothingBefore => f.write_str("there is nothing before this to select from"),
            Self::LongName => write!(f, "the name has more than {LONGEST_NAME} characters"),
            Self::TooMany => write!(f, "these are more than {MOST_NODES} nodes"),
        }
    }
}

impl NodeSet {
    /// Parses a set. Blanks around terms do not count. Location names of nodes get the spelling that components have:
    /// `X1000c00s0b0n0` is `x1000c0s0b0n0`.
    ///
    /// # Errors
    /// The first rule that the text violates, and where.
    pub fn parse(text: &str) -> Result<Self, NodeSetError> {
        let letters: Vec<char> = text.chars().collect();
        let mut terms = Vec::new();
        let mut count = 0;
        for (start, end) in separated(&letters)? {
            let term = NodeTerm::parse(&letters, start, end, MOST_NODES - count)?;
            if terms.is_empty() && term.effect != TermEffect::Add {
                return Err(NodeSetDefect::NothingBefore.at(start));
            }
            count += term.names.len();
            terms.push(term);
        }
        Ok(Self { terms })
    }

    /// Returns the names, each once, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut chosen = BTreeSet::new();
        for NodeTerm { effect, names } in &self.terms {
            let names = names.iter().map(String::as_str);
            match effect {
                TermEffect::Add => chosen.extend(names),
                TermEffect::Keep => {
                    let kept: BTreeSet<_> = names.collect();
                    chosen.retain(|name| kept.contains(name));
                }
                TermEffect::Remove => {
                    for name in names {
                        chosen.remove(name);
                    }
                }
            }
        }
        let adding = self.terms.iter().filter(|term| term.effect == TermEffect::Add);
        let ordered = adding.flat_map(|term| term.names.iter().map(String::as_str));
        ordered.filter(|name| chosen.remove(name)).collect()
    }

    /// Returns the set as the limit of a session (BOS reference 5.4.2), in which the inventory resolves groups and roles.
    pub fn limit(&self) -> String {
        let items = self.terms.iter().flat_map(|term| {
            let sign = match term.effect {
                TermEffect::Add => "",
                TermEffect::Keep => "&",
                TermEffect::Remove => "!",
            };
            term.names.iter().map(move |name| format!("{sign}{name}"))
        });
        items.collect::<Vec<_>>().join(",")
    }
}

impl NodeSetDefect {
    /// Adds the position of the character with that index.
    fn at(self, index: usize) -> NodeSetError {
        NodeSetError { position: index + 1, defect: self }
    }
}

impl NodeTerm {
    /// Parses the term between two indices.
    fn parse(letters: &[char], start: usize, end: usize, most: usize) -> Result<Self, NodeSetError> {
        let (effect, first) = match letters[start] {
            '!' => (TermEffect::Remove, start + 1),
            '&' => (TermEffect::Keep, start + 1),
            _ => (TermEffect::Add, start),
        };
        if first == end {
            return Err(NodeSetDefect::EmptyTerm.at(first));
        }
        let pieces = pieces(letters, first, end)?;
        // Before the names are made, so that a long text times many numbers takes no memory.
        if pieces.iter().map(NamePiece::letters).sum::<usize>() > LONGEST_NAME {
            return Err(NodeSetDefect::LongName.at(first));
        }
        let count = pieces.iter().map(NamePiece::count).try_fold(1_usize, usize::checked_mul);
        match count {
            Some(count) if count <= most => {}
            Some(_) | None => return Err(NodeSetDefect::TooMany.at(start)),
        }
        if effect == TermEffect::Keep && count != Some(1) {
            return Err(NodeSetDefect::KeptSeveral.at(start));
        }
        let names = expanded(&pieces).into_iter().map(|name| node_xname(&name).unwrap_or(name));
        let names: Vec<_> = names.collect();
        match names.iter().any(|name| name.chars().count() > LONGEST_NAME) {
            true => Err(NodeSetDefect::LongName.at(first)),
            false => Ok(Self { effect, names }),
        }
    }
}

/// Part of a name.
enum NamePiece {
    /// Letters that every name has.
    Fixed(String),
    /// Numbers in brackets, of which each name has one.
    Numbers(Vec<NumberRange>),
}

/// Numbers in a row.
struct NumberRange {
    first: usize,
    last: usize,
    /// Digits of each number at least.
    width: usize,
}

impl NamePiece {
    /// Returns the number of alternatives.
    fn count(&self) -> usize {
        match self {
            Self::Fixed(_) => 1,
            Self::Numbers(ranges) => ranges.iter().map(|range| range.last - range.first + 1).sum(),
        }
    }

    /// Returns the number of letters that every alternative has.
    fn letters(&self) -> usize {
        match self {
            Self::Fixed(text) => text.chars().count(),
            Self::Numbers(_) => 1,
        }
    }
}

/// Splits a text at the commas outside brackets, and returns the indices of each term without blanks around it.
fn separated(letters: &[char]) -> Result<Vec<(usize, usize)>, NodeSetError> {
    let mut terms = Vec::new();
    let (mut start, mut opened) = (0, None);
    for index in 0..=letters.len() {
        match (letters.get(index), opened) {
            (Some('['), None) => opened = Some(index),
            (Some(']'), Some(_)) => opened = None,
            (Some(']'), None) => return Err(NodeSetDefect::ClosingBracket.at(index)),
            (Some(','), None) | (None, None) => {
                terms.push(trimmed(letters, start, index)?);
                start = index + 1;
            }
            (None, Some(bracket)) => return Err(NodeSetDefect::OpenBracket.at(bracket)),
            (Some(_), _) => {}
        }
    }
    Ok(terms)
}

fn trimmed(letters: &[char], start: usize, end: usize) -> Result<(usize, usize), NodeSetError> {
    let is_letter = |letter: &char| !letter.is_whitespace();
    let first = letters[start..end].iter().position(is_letter);
    let last = letters[start..end].iter().rposition(is_letter);
    match (first, last) {
        (Some(first), Some(last)) => Ok((start + first, start + last + 1)),
        (Some(_) | None, _) => Err(NodeSetDefect::EmptyTerm.at(start)),
    }
}

/// Splits the name between two indices at its brackets, which are known to be paired.
fn pieces(letters: &[char], start: usize, end: usize) -> Result<Vec<NamePiece>, NodeSetError> {
    let mut pieces = Vec::new();
    let mut fixed = String::new();
    let mut index = start;
    while index < end {
        match letters[index] {
            '[' => {
                let closed = letters[index..end].iter().position(|letter| *letter == ']');
                let closed = index + closed.ok_or(NodeSetDefect::OpenBracket.at(index))?;
                pieces.push(NamePiece::Fixed(std::mem::take(&mut fixed)));
                pieces.push(NamePiece::Numbers(ranges(letters, index + 1, closed)?));
                index = closed;
            }
            letter if letter.is_whitespace() || "&!()=\"'".contains(letter) => {
                return Err(NodeSetDefect::StrayCharacter.at(index));
            }
            letter => fixed.push(letter),
        }
        index += 1;
    }
    pieces.push(NamePiece::Fixed(fixed));
    Ok(pieces)
}

/// Parses the content of brackets between two indices.
fn ranges(letters: &[char], start: usize, end: usize) -> Result<Vec<NumberRange>, NodeSetError> {
    let mut ranges = Vec::new();
    let mut first = start;
    for item in letters[start..end].split(|letter| *letter == ',') {
        ranges.push(range(item, first)?);
        first += item.len() + 1;
    }
    Ok(ranges)
}

/// Parses one number, or two with `-` between them, which begin at that index of the text.
fn range(item: &[char], index: usize) -> Result<NumberRange, NodeSetError> {
    let dash = item.iter().position(|letter| *letter == '-');
    let (first, width) = number(&item[..dash.unwrap_or(item.len())], index)?;
    let Some(dash) = dash else { return Ok(NumberRange { first, last: first, width }) };
    let (last, _) = number(&item[dash + 1..], index + dash + 1)?;
    if last < first {
        return Err(NodeSetDefect::DescendingRange.at(index));
    }
    Ok(NumberRange { first, last, width })
}

/// Parses a number, and returns it with its width: that of its digits if it begins with a zero, otherwise none.
fn number(digits: &[char], index: usize) -> Result<(usize, usize), NodeSetError> {
    if digits.is_empty() {
        return Err(NodeSetDefect::EmptyRange.at(index));
    }
    if digits.len() > MOST_DIGITS {
        return Err(NodeSetDefect::LongNumber.at(index));
    }
    let mut number = 0;
    for (offset, letter) in digits.iter().enumerate() {
        let digit = letter.to_digit(10).ok_or(NodeSetDefect::NoNumber.at(index + offset))?;
        number = number * 10 + digit as usize;
    }
    Ok((number, if digits[0] == '0' { digits.len() } else { 0 }))
}

/// Returns every name of the pieces, the last number changing fastest.
fn expanded(pieces: &[NamePiece]) -> Vec<String> {
    let mut names = vec![String::new()];
    for piece in pieces {
        match piece {
            NamePiece::Fixed(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            NamePiece::Numbers(ranges) => {
                let longer = names.iter().flat_map(|name| {
                    ranges.iter().flat_map(move |range| {
                        (range.first..=range.last)
                            .map(move |number| format!("{name}{number:0width$}", width = range.width))
                    })
                });
                names = longer.collect();
            }
        }
    }
    names
}

#[cfg(test)]
mod tests;
