//! Chain of the lines of an audit log, in which a line that was changed, removed or added shows.
//!
//! A line is a JSON object whose first member is its number, counted from 1, and whose last member is its seal: the digest of
//! the seal of the line before and of the line itself without its seal. The first line follows a seal of zeros. Whoever can
//! write the file can also seal it anew from any line on, so number and seal of its end belong on another machine.

use sha2::{Digest, Sha256};

/// Begin of a line, before its number.
const NUMBER: &str = "{\"number\":";

/// Begin of the last member of a line.
const SEAL: &str = ",\"seal\":\"";

/// End of a line, after its seal.
const END: &str = "\"}";

/// End of a chain: number and seal of its last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEnd {
    /// Number of the line; 0: there is none yet.
    pub number: u64,
    /// Seal of the line, in hexadecimal digits.
    pub seal: String,
}

/// Fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// The line is no line of an audit log.
    #[error("is no line of an audit log")]
    Unreadable,
    /// The line does not follow the one before.
    #[error("has the number {found}, where {expected} is next: lines were removed, added or moved")]
    OutOfOrder {
        /// Number that follows.
        expected: u64,
        /// Number of the line.
        found: u64,
    },
    /// The seal belongs to other content.
    #[error("was changed, or the line before it was: its seal does not fit")]
    Changed,
}

impl Default for AuditEnd {
    fn default() -> Self {
        Self { number: 0, seal: "0".repeat(2 * Sha256::output_size()) }
    }
}

impl AuditEnd {
    /// Returns the line with these `members`, the text of at least one member of a JSON object, and adds it to the chain.
    pub fn seal(&mut self, members: &str) -> String {
        let number = self.number + 1;
        let body = format!("{NUMBER}{number},{members}");
        let seal = seal_after(&self.seal, &body);
        let line = format!("{body}{SEAL}{seal}{END}");
        *self = Self { number, seal };
        line
    }

    /// Reads the end of the chain from its last line, without a check of its content.
    ///
    /// # Errors
    /// When the line is no line of an audit log.
    pub fn of_line(line: &str) -> Result<Self, AuditFault> {
        SealedLine::parse(line).map(|line| Self { number: line.number, seal: line.seal.to_owned() })
    }

    /// Returns the end of the chain after the next line. `before`: end of the chain so far; `None`: the line before is not known,
    /// so that only the first line of all can be checked.
    ///
    /// # Errors
    /// The fault of the line.
    pub fn check(before: Option<&Self>, line: &str) -> Result<Self, AuditFault> {
        let SealedLine { number, body, seal } = SealedLine::parse(line)?;
        let first = Self::default();
        let before = before.or((number == 1).then_some(&first));
        if let Some(before) = before {
            let expected = before.number + 1;
            if number != expected {
                return Err(AuditFault::OutOfOrder { expected, found: number });
            }
            if seal != seal_after(&before.seal, body) {
                return Err(AuditFault::Changed);
            }
        }
        Ok(Self { number, seal: seal.to_owned() })
    }
}

/// Parts of a line.
struct SealedLine<'a> {
    number: u64,
    /// Line without its seal.
    body: &'a str,
    seal: &'a str,
}

impl<'a> SealedLine<'a> {
    fn parse(line: &'a str) -> Result<Self, AuditFault> {
        let parts = || {
            let (body, seal) = line.strip_suffix(END)?.rsplit_once(SEAL)?;
            let (number, _) = body.strip_prefix(NUMBER)?.split_once(',')?;
            Some(Self { number: number.parse().ok()?, body, seal })
        };
        parts().ok_or(AuditFault::Unreadable)
    }
}

fn seal_after(seal: &str, body: &str) -> String {
    let digest = Sha256::new().chain_update(seal).chain_update(body).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(lines: usize) -> Vec<String> {
        let mut end = AuditEnd::default();
        (0..lines).map(|line| end.seal(&format!("\"path\":\"/{line}\""))).collect()
    }

    /// Checks lines one after the other, and returns the number of the last one or the first fault.
    fn checked<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<u64, AuditFault> {
        let mut end = None;
        for line in lines {
            end = Some(AuditEnd::check(end.as_ref(), line)?);
        }
        Ok(end.map_or(0, |end| end.number))
    }

    #[test]
    fn lines_are_objects_with_number_and_seal() {
        let line = AuditEnd::default().seal("\"path\":\"/a\"");
        let digest = Sha256::digest(format!("{}{{\"number\":1,\"path\":\"/a\"", "0".repeat(64)));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(line, format!("{{\"number\":1,\"path\":\"/a\",\"seal\":\"{digest}\"}}"));
    }

    #[test]
    fn whole_chains_and_their_ends_hold() {
        let lines = chain(5);
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(checked(lines.clone()), Ok(5));
        assert_eq!(checked(lines[3..].to_vec()), Ok(5), "earlier lines may be in another file");
        assert_eq!(AuditEnd::of_line(lines[4]).map(|end| end.number), Ok(5));
    }

    #[test]
    fn chain_goes_on_from_its_last_line() {
        let lines = chain(2);
        let mut end = AuditEnd::of_line(&lines[1]).unwrap();
        let third = end.seal("\"path\":\"/2\"");
        assert_eq!(third, chain(3)[2]);
    }

    #[test]
    fn every_meddling_shows() {
        let lines = chain(4);
        let of = |order: &[usize]| checked(order.iter().map(|line| lines[*line].as_str()));
        assert_eq!(of(&[0, 2, 3]), Err(AuditFault::OutOfOrder { expected: 2, found: 3 }), "removed");
        assert_eq!(of(&[0, 1, 1]), Err(AuditFault::OutOfOrder { expected: 3, found: 2 }), "repeated");
        assert_eq!(of(&[0, 2, 1]), Err(AuditFault::OutOfOrder { expected: 2, found: 3 }), "moved");
        let changed = lines[1].replace("/1", "/x");
        assert_eq!(checked([&*lines[0], &*changed]), Err(AuditFault::Changed));
        let first = lines[0].replace("/0", "/x");
        assert_eq!(checked([&*first]), Err(AuditFault::Changed), "the first line has a known line before it");
        let mut elsewhere = AuditEnd::of_line(&lines[0]).unwrap();
        elsewhere.seal.replace_range(..1, "z");
        let forged = elsewhere.seal("\"path\":\"/1\"");
        assert_eq!(checked([&*lines[0], &*forged]), Err(AuditFault::Changed), "sealed after another line");
        for text in ["", "{}", "{\"number\":x,\"a\":1,\"seal\":\"\"}", "{\"number\":1,\"seal\":\"0\""] {
            assert_eq!(checked([text]), Err(AuditFault::Unreadable), "{text}");
        }
    }
}
