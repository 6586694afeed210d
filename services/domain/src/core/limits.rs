//! Limits on the length and size of input (BOS reference 2.3, 4): the numbers, once. Rules check them, and the
//! description of the REST contract names them. Lengths are in characters.

use std::ops::RangeInclusive;

/// Names of any kind: components, sessions, templates, boot sets, tenants, configurations, groups, hardware.
pub const LONGEST_NAME: usize = 127;
/// Paths of kernels, initial RAM disks and manifests.
pub const LONGEST_PATH: usize = 4_095;
/// Kernel command lines, as given in a template and as put together.
pub const LONGEST_KERNEL_PARAMETERS: usize = 4_096;
/// Tokens of the boot script server.
pub const LONGEST_TOKEN: usize = 65_535;
/// Errors and status overrides of components, errors of sessions.
pub const LONGEST_ERROR: usize = 65_536;
/// Attempt counters and retry policies.
pub const MOST_ATTEMPTS: u32 = 1_048_576;

/// Descriptions of templates.
pub const LONGEST_DESCRIPTION: usize = 1_023;
/// Fingerprints of manifests.
pub const LONGEST_ETAG: usize = 65_536;
/// Names of root file system providers.
pub const LONGEST_PROVIDER: usize = 511;
/// Parameters for root file system providers.
pub const LONGEST_PASSTHROUGH: usize = 4_096;
/// Boot sets of a template.
pub const MOST_BOOT_SETS: usize = 127;
/// Entries of a list of nodes.
pub const MOST_NODES: usize = 65_535;
/// Entries of a list of roles.
pub const MOST_ROLES: usize = 1_023;
/// Entries of a list of groups.
pub const MOST_GROUPS: usize = 4_095;

/// Limits of sessions, and lists of their members in one text.
pub const LONGEST_LIMIT: usize = 524_288;
/// Start and end times of sessions.
pub const LONGEST_TIME: usize = 127;
/// Components whose staged states are applied at once.
pub const MOST_APPLIED: usize = 32_768;
/// Ages, such as `9999999w`.
pub const LONGEST_AGE: usize = 8;

/// Read timeouts, seconds.
pub const READ_TIMEOUTS: RangeInclusive<u32> = 10..=86_400;
/// Waits and frequencies, seconds; retry policies.
pub const COUNTS: RangeInclusive<u32> = 0..=1_048_576;
/// Seconds between polls for new nodes.
pub const DISCOVERY: RangeInclusive<u32> = 0..=33_554_432;
/// Components in one upstream call.
pub const BATCHES: RangeInclusive<u32> = 0..=131_071;
/// Words for the logging level, in any letter case.
pub const LOGGING_LEVELS: [&str; 5] = ["debug", "info", "warning", "error", "critical"];

/// Pattern of the names of sessions, templates and boot sets, as a regular expression.
pub const NAME_PATTERN: &str = "^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$";
/// Pattern of an age: `0`, or a number of minutes, hours, days or weeks.
pub const AGE_PATTERN: &str = "^(0|0[mMhHdDwW]|[1-9][0-9]*[mMhHdDwW])$";
/// Pattern of an age of at least one hour.
pub const TTL_PATTERN: &str = "^[1-9][0-9]*[hHdDwW]$";
/// Words for the architecture of nodes.
pub const ARCHITECTURES: [&str; 4] = ["X86", "ARM", "Other", "Unknown"];
