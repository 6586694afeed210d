use crate::core::decision::DecisionVersion;

/// Version of the rules by which components are judged. It is raised with every change of them after which the same
/// evidence can lead to another decision.
pub const RULES_VERSION: u32 = 2;

/// The rules of this crate with options of that revision.
pub fn current_version(options: u64) -> DecisionVersion {
    DecisionVersion { rules: RULES_VERSION, options }
}
