//! One spelling for the location name of a node (BOS reference 2.8.6).

/// Returns the text in small letters, and without leading zeros in the numbers of `x1c2s3b4n5`, wherever in the text
/// that shape stands. Everything else stays.
pub fn canonical_xname(text: &str) -> String {
    let mut rest = &*text.to_lowercase();
    let mut canonical = String::with_capacity(rest.len());
    while let Some(start) = rest.find('x') {
        canonical.push_str(&rest[..start]);
        rest = &rest[start..];
        let (name, after) = node_name(rest).unwrap_or_else(|| ("x".to_owned(), &rest[1..]));
        canonical.push_str(&name);
        rest = after;
    }
    canonical + rest
}

/// Returns the one spelling of a text that is the location name of a node as a whole, such as `X1000c00s0b0n0`; `None`: it
/// is another name, in which capitals and zeros may count.
///
/// For names that people type into a client. The gateway takes ids as they are, as BOS does: a component may be stored in
/// any spelling, and a gateway with a spelling of its own would hide it.
pub fn node_xname(text: &str) -> Option<String> {
    let small = text.to_ascii_lowercase();
    let (name, rest) = node_name(&small)?;
    rest.is_empty().then_some(name)
}

/// Splits a node's name from the start of `text`: the name without leading zeros, and the rest.
fn node_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    for letter in ['x', 'c', 's', 'b', 'n'] {
        rest = rest.strip_prefix(letter)?;
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let number = digits.trim_start_matches('0');
        name.push(letter);
        name.push_str(if number.is_empty() { digits.get(..1)? } else { number });
        rest = after;
    }
    Some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names_lose_capitals_and_leading_zeros() {
        for (text, expected) in [
            ("x1000c0s0b0n0", "x1000c0s0b0n0"),
            ("X1000C0S0B0N0", "x1000c0s0b0n0"),
            ("x0001000c00s00b00n00", "x1000c0s0b0n0"),
            ("x1000c7s010b1n01", "x1000c7s10b1n1"),
            ("x1000c0s0b0n0p0", "x1000c0s0b0n0p0"),
            ("x01c0s0b0n0p00", "x1c0s0b0n0p00"),
            ("x01c0s0b0", "x01c0s0b0"),
            ("axx01c0s0b0n00 x02c0s0b0n0", "axx1c0s0b0n0 x2c0s0b0n0"),
            ("xx", "xx"),
            ("NID000005", "nid000005"),
            ("xc0s0b0n0", "xc0s0b0n0"),
            ("Äx01c0s0b0n0", "äx1c0s0b0n0"),
            ("x00000000000000000000000000000001c0s0b0n0", "x1c0s0b0n0"),
            ("", ""),
        ] {
            assert_eq!(canonical_xname(text), expected, "{text}");
        }
    }

    #[test]
    fn only_whole_node_names_are_respelled() {
        for (text, expected) in [
            ("x1000c0s0b0n0", Some("x1000c0s0b0n0")),
            ("X1000c00s0b0n0", Some("x1000c0s0b0n0")),
            ("x1000c0s0b0", None),
            ("x1000c0s0b0n0p0", None),
            ("ax1c0s0b0n0", None),
            ("Compute", None),
            ("", None),
        ] {
            assert_eq!(node_xname(text).as_deref(), expected, "{text}");
        }
    }
}
