//! The share of the work that a key belongs to.

use std::fmt;

/// How many shards there are, for ever: replicas of different versions share the work.
pub const SHARDS: u8 = 64;

/// One part of the work of a service: the keys whose hash has it as remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u8);

impl Shard {
    /// The shard of `key`: FNV-1a of 64 bits over its bytes, modulo 64. It never changes.
    pub fn of(key: &str) -> Self {
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let hash = key.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        // Less than 64 by construction.
        Self((hash % u64::from(SHARDS)) as u8)
    }

    /// Every shard.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    /// The number of the shard, from 0 to 63.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The shard of that number, if there is one.
    pub(crate) fn numbered(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number < SHARDS).map(Self)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn keys_stay_where_they_are() {
        let shards = ["", "a", "x1000c0s0b0n0", "x1000c0s0b0n1", "ä"].map(|key| Shard::of(key).number());
        assert_eq!(shards, [37, 12, 50, 37, 2]);
    }

    #[test]
    fn the_nodes_of_a_machine_spread_evenly() {
        let mut shards = BTreeMap::<_, u32>::new();
        for cabinet in 1000..1010 {
            for (chassis, slot, bmc, node) in (0..1024).map(|n| (n / 128, n / 16 % 8, n / 8 % 2, n % 8)) {
                let id = format!("x{cabinet}c{chassis}s{slot}b{bmc}n{node}");
                *shards.entry(Shard::of(&id)).or_default() += 1;
            }
        }
        let (least, most) = (shards.values().min().unwrap(), shards.values().max().unwrap());
        assert!(shards.len() == 64 && *least >= 80 && *most <= 240, "{shards:?}");
    }
}
