//! Faults of one node, and wrong records of it in the systems around it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use simulator::faults::HardwareFault;

/// Faults of one node, and wrong records of it in the systems around it. The default is a node without faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeFaults {
    /// Fault of the hardware, in the simulator's words, such as `stuck-off`.
    #[serde(serialize_with = "write_hardware", deserialize_with = "read_hardware")]
    pub hardware: Option<HardwareFault>,
    /// The inventory does not know the node.
    pub hsm_missing: bool,
    /// The power service does not know the node.
    pub pcs_missing: bool,
    /// The power service leaves the node out of its answers.
    pub pcs_omitted: bool,
    /// Power state `undefined` in the power service.
    pub pcs_undefined: bool,
    /// Error text that the power service shows instead of a power state.
    pub pcs_error: Option<String>,
    /// The node's BMC refuses every command with this text.
    pub pcs_task_fails: Option<String>,
    /// A transition that names the node is refused as a whole.
    pub pcs_reject: bool,
    /// Boot data that name the node are refused as a whole.
    pub bss_reject: bool,
    /// The configuration service does not know the node.
    pub cfs_missing: bool,
    /// A change of configuration that names the node is refused as a whole.
    pub cfs_reject: bool,
    /// Fixed status in the configuration service.
    pub cfs_status: Option<String>,
}

impl NodeFaults {
    /// Returns the faults of a node with only faulty hardware.
    pub fn hardware(fault: Option<HardwareFault>) -> Self {
        Self { hardware: fault, ..Self::default() }
    }
}

fn write_hardware<S: Serializer>(fault: &Option<HardwareFault>, serializer: S) -> Result<S::Ok, S::Error> {
    fault.map(HardwareFault::word).serialize(serializer)
}

fn read_hardware<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HardwareFault>, D::Error> {
    let Some(word) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let known = || {
        format!(
            "{word:?} is not a fault; the faults are {}",
            HardwareFault::ALL.map(HardwareFault::word).join(", ")
        )
    };
    HardwareFault::from_word(&word).map(Some).ok_or_else(|| de::Error::custom(known()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn faults_are_written_as_json() {
        let texts = [
            "{}",
            r#"{"hardware":"stuck-off","pcs_error":"no answer from the BMC"}"#,
            r#"{"hardware":"stuck"}"#,
            r#"{"cfs_hangs":true}"#,
        ];
        let seen = texts.map(|text| match serde_json::from_str::<NodeFaults>(text) {
            Ok(faults) => format!("{}\n", serde_json::to_string(&faults).expect("plain")),
            Err(error) => format!("error: {error}\n"),
        });
        expect![[r#"
            {"hardware":null,"hsm_missing":false,"pcs_missing":false,"pcs_omitted":false,"pcs_undefined":false,"pcs_error":null,"pcs_task_fails":null,"pcs_reject":false,"bss_reject":false,"cfs_missing":false,"cfs_reject":false,"cfs_status":null}
            {"hardware":"stuck-off","hsm_missing":false,"pcs_missing":false,"pcs_omitted":false,"pcs_undefined":false,"pcs_error":"no answer from the BMC","pcs_task_fails":null,"pcs_reject":false,"bss_reject":false,"cfs_missing":false,"cfs_reject":false,"cfs_status":null}
            error: "stuck" is not a fault; the faults are stuck-off, ignores-graceful-off, never-reports, configuration-fails at line 1 column 20
            error: unknown field `cfs_hangs`, expected one of `hardware`, `hsm_missing`, `pcs_missing`, `pcs_omitted`, `pcs_undefined`, `pcs_error`, `pcs_task_fails`, `pcs_reject`, `bss_reject`, `cfs_missing`, `cfs_reject`, `cfs_status` at line 1 column 12
        "#]].assert_eq(&seen.concat());
    }
}
