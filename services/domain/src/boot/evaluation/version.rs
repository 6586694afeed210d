use crate::core::decision::DecisionVersion;

/// Version of the rules that judge components. Raise it with every change of the rules after which the same evidence
/// can lead to another decision.
pub const RULES_VERSION: u32 = 7;

/// Returns the version of the rules of this crate with options of that revision.
pub fn current_version(options: u64) -> DecisionVersion {
    DecisionVersion { rules: RULES_VERSION, options }
}
