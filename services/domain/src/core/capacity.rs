//! Shares of memory and of file descriptors that a part of the mesh gives to its clients.

/// File descriptors that a process keeps for itself, whatever its limit: databases, connections to other parts and to
/// upstreams, logs, and connections that only receive the answer that there are too many.
const FEWEST_KEPT: u64 = 64;

/// File descriptors that are kept when there are plenty.
const MOST_KEPT: u64 = 512;

/// Bytes that one budget may have: `wanted`, but a quarter of the memory limit at most. A part has three budgets (bodies
/// on their way in, streams on their way out, lists), so that a quarter is left for records when all are used up.
pub fn budget(wanted: u64, memory_limit: Option<u64>) -> u64 {
    memory_limit.map_or(wanted, |limit| wanted.min(limit / 4))
}

/// Connections that a part may accept: `wanted`, but fewer where the process may have few file descriptors.
pub fn connections(wanted: u32, descriptor_limit: Option<u64>) -> u32 {
    let Some(limit) = descriptor_limit else { return wanted };
    let kept = (limit / 4).clamp(FEWEST_KEPT, MOST_KEPT);
    let room = u32::try_from(limit.saturating_sub(kept)).unwrap_or(u32::MAX);
    wanted.min(room).max(1)
}

/// The smallest of the memory limits of a control group and its ancestors. `limits` are the contents of their files:
/// bytes, or a word or a number beyond any memory where there is no limit.
pub fn memory_limit<'a>(limits: impl IntoIterator<Item = &'a str>) -> Option<u64> {
    /// The first version of control groups has the largest page-aligned number in place of a word.
    const UNLIMITED: u64 = 1 << 60;
    let bytes = limits.into_iter().filter_map(|limit| limit.trim().parse().ok());
    bytes.filter(|bytes| *bytes < UNLIMITED).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn budgets_shrink_with_the_memory_limit() {
        for (wanted, limit, given) in [
            (128 * MIB, None, 128 * MIB),
            (128 * MIB, Some(4096 * MIB), 128 * MIB),
            (128 * MIB, Some(512 * MIB), 128 * MIB),
            (128 * MIB, Some(64 * MIB), 16 * MIB),
            (MIB, Some(64 * MIB), MIB),
        ] {
            assert_eq!(budget(wanted, limit), given, "{wanted} of {limit:?}");
        }
    }

    #[test]
    fn connections_leave_descriptors_for_the_process() {
        for (wanted, limit, given) in [
            (4096, None, 4096),
            (4096, Some(1_048_576), 4096),
            (4096, Some(4096), 3584),
            (4096, Some(1024), 768),
            (4096, Some(256), 192),
            (100, Some(256), 100),
            (4096, Some(64), 1),
        ] {
            assert_eq!(connections(wanted, limit), given, "{wanted} of {limit:?}");
        }
    }

    #[test]
    fn smallest_memory_limit_of_the_hierarchy_counts() {
        for (limits, smallest) in [
            (vec![], None),
            (vec!["max\n"], None),
            (vec!["9223372036854771712\n"], None),
            (vec!["max\n", "67108864\n"], Some(67_108_864)),
            (vec!["134217728\n", "67108864\n", "max\n"], Some(67_108_864)),
            (vec!["nonsense"], None),
        ] {
            assert_eq!(memory_limit(limits.iter().copied()), smallest, "{limits:?}");
        }
    }
}
