//! Choice of the Ironic of a host.

/// Returns the place of the one of `names` that `key` belongs to; `None`: there is none.
///
/// The choice depends on nothing but the names, so every replica and every start makes the same. Another name moves
/// only the hosts that it wins (rendezvous hashing).
pub fn choose<'a>(names: impl Iterator<Item = &'a str>, key: &str) -> Option<usize> {
    names.enumerate().max_by_key(|(_, name)| score(name, key)).map(|(place, _)| place)
}

/// Returns a hash that stays the same across versions: FNV-1a, whose last bytes are then spread over all bits.
fn score(name: &str, key: &str) -> u64 {
    let bytes = name.bytes().chain([b'/']).chain(key.bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53]
        .into_iter()
        .fold(hash, |hash: u64, factor: u64| (hash ^ (hash >> 33)).wrapping_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_spread_and_another_ironic_moves_few() {
        let two = ["east", "west"];
        let three = ["east", "north", "west"];
        let hosts = || (0..3000).map(|number| format!("metal/host-{number}"));
        let choice = |names: &[&'static str], key: &str| names[choose(names.iter().copied(), key).unwrap()];
        let in_north = hosts().filter(|key| choice(&three, key) == "north").count();
        assert!((900..1100).contains(&in_north), "{in_north}");
        for key in hosts() {
            let now = choice(&three, &key);
            assert!(now == "north" || now == choice(&two, &key), "{key}");
        }
        assert_eq!(choice(&three, "metal/host-1"), "east");
        assert_eq!(choose([].into_iter(), "metal/host-1"), None);
    }
}
