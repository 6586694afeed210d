//! Location names.

/// Returns whether `text` is built like a location name: `x`, a number, and then letters and numbers in turn.
pub(crate) fn is_well_formed(text: &str) -> bool {
    let mut rest = text.to_ascii_lowercase();
    if !rest.starts_with('x') {
        return false;
    }
    while !rest.is_empty() {
        let behind = rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let number = behind.trim_start_matches(|digit: char| digit.is_ascii_digit());
        if behind.len() == rest.len() || number.len() == behind.len() {
            return false;
        }
        rest = number.to_owned();
    }
    true
}

/// The name in lower case and without leading zeros, under which things are known.
pub(crate) fn canonical(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for letter in text.chars() {
        let after_lone_zero =
            name.ends_with('0') && !name[..name.len() - 1].ends_with(|c: char| c.is_ascii_digit());
        if letter.is_ascii_digit() && after_lone_zero {
            name.pop();
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_how_they_are_built() {
        for good in ["x1000c0s0b0n0", "x3000", "X3000C0S17B4N12", "x1000c7r1b0", "x0m1p0v3"] {
            assert!(is_well_formed(good), "{good}");
        }
        for bad in
            ["", "x", "nid000001", "x1000c", "x1000 c0", "x1000c0s0b0n0-hsn0", "1000", "x1000c0s0b0n0,x1"]
        {
            assert!(!is_well_formed(bad), "{bad}");
        }
    }

    #[test]
    fn one_place_has_one_name() {
        let names = ["x1000c0s0b0n0", "X1000C0S0B0N0", "x01000c00s000b0n0"];
        assert!(names.iter().all(|name| canonical(name) == "x1000c0s0b0n0"));
        assert_eq!(canonical("x3000c0s10b0n0"), "x3000c0s10b0n0");
    }
}
