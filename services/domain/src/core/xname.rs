//! Location names of nodes: one spelling (BOS reference 2.8.6), their order, and the place that they name.

/// Kind of places that hold nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodePlace {
    /// Cabinet, such as `x1000`.
    Cabinet,
    /// Chassis of a cabinet, such as `x1000c0`.
    Chassis,
}

/// Returns the place of the node of that name, such as `x1000` for `x1000c0s7b0n1`; `None`: the name is no location name.
pub fn place_of(name: &str, place: NodePlace) -> Option<String> {
    let name = node_xname(name)?;
    let end = match place {
        NodePlace::Cabinet => 'c',
        NodePlace::Chassis => 's',
    };
    name.split(end).next().map(str::to_owned)
}

/// Returns a key by which names sort as people count: `x2` before `x10`.
pub fn counting_order(name: &str) -> Vec<(String, usize, String)> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (digits, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        let number = digits.trim_start_matches('0');
        pieces.push((word.to_owned(), number.len(), number.to_owned()));
        rest = after;
    }
    pieces
}

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
    fn nodes_have_a_place_and_an_order() {
        for (name, cabinet, chassis) in [
            ("x1000c0s7b0n1", Some("x1000"), Some("x1000c0")),
            ("X09c12s0b0n0", Some("x9"), Some("x9c12")),
            ("x1000c0s7b0", None, None),
            ("nid000001", None, None),
        ] {
            assert_eq!(place_of(name, NodePlace::Cabinet).as_deref(), cabinet, "{name}");
            assert_eq!(place_of(name, NodePlace::Chassis).as_deref(), chassis, "{name}");
        }
        let mut names = ["x10c0s0b0n0", "x9c0s10b0n0", "x9c0s2b0n0", "nid10", "nid9", "x9c0s2b0n00", "", "x"];
        names.sort_by_cached_key(|name| counting_order(name));
        assert_eq!(
            names,
            ["", "nid9", "nid10", "x", "x9c0s2b0n0", "x9c0s2b0n00", "x9c0s10b0n0", "x10c0s0b0n0"]
        );
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
