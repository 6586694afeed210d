//! Nodes as an Ironic shows them.

use serde_json::{Value, json};

/// Member of a node's `extra` that holds the mark.
const MARK: &str = "reveille";

/// Node of an Ironic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IronicNode {
    /// Id at the Ironic.
    pub uuid: String,
    /// Name at the Ironic; empty: none.
    pub name: String,
    /// Hardware type.
    pub driver: String,
    /// Provision state.
    pub state: ProvisionState,
    /// Whether a cleaning was asked for, and is not part of a deployment's end.
    pub is_cleaned_by_hand: bool,
    /// Time of the last change of the provision state, by Ironic's clock; empty: none.
    pub state_changed_at: String,
    /// Power as Ironic knows it.
    pub power: NodePower,
    /// Power that Ironic is about to establish.
    pub target_power: Option<String>,
    /// Whether Ironic works on the node, so that it refuses changes.
    pub is_locked: bool,
    /// Whether Ironic leaves the node alone.
    pub is_maintained: bool,
    /// Whether Ironic has lost control of the power.
    pub has_power_fault: bool,
    /// Last failure in the words of Ironic; empty: none, or Ironic has dropped it.
    pub last_error: String,
    /// Health of the hardware in Ironic's word.
    pub health: Option<String>,
    /// Whether the node is reserved for a host.
    pub has_instance: bool,
    /// Mark of the operation that was begun last.
    pub mark: Option<OperationMark>,
    /// Properties of the hardware.
    pub properties: Value,
}

/// Power of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodePower {
    /// Power is on.
    On,
    /// Power is off.
    Off,
    /// Ironic does not know the power.
    #[default]
    Unknown,
}

/// Provision state of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of Ironic's API")]
pub enum ProvisionState {
    Enroll,
    Verifying,
    Manageable,
    Available,
    Active,
    Inspecting,
    InspectWait,
    InspectFailed,
    Cleaning,
    CleanWait,
    CleanFailed,
    Deploying,
    DeployWait,
    DeployFailed,
    Deleting,
    Error,
    Adopting,
    AdoptFailed,
    Servicing,
    ServiceWait,
    ServiceFailed,
    /// A state that this driver never causes, such as those of a rescue.
    #[default]
    Foreign,
}

impl ProvisionState {
    /// Every state with a word.
    pub const ALL: [Self; 21] = [
        Self::Enroll,
        Self::Verifying,
        Self::Manageable,
        Self::Available,
        Self::Active,
        Self::Inspecting,
        Self::InspectWait,
        Self::InspectFailed,
        Self::Cleaning,
        Self::CleanWait,
        Self::CleanFailed,
        Self::Deploying,
        Self::DeployWait,
        Self::DeployFailed,
        Self::Deleting,
        Self::Error,
        Self::Adopting,
        Self::AdoptFailed,
        Self::Servicing,
        Self::ServiceWait,
        Self::ServiceFailed,
    ];

    /// Word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Enroll => "enroll",
            Self::Verifying => "verifying",
            Self::Manageable => "manageable",
            Self::Available => "available",
            Self::Active => "active",
            Self::Inspecting => "inspecting",
            Self::InspectWait => "inspect wait",
            Self::InspectFailed => "inspect failed",
            Self::Cleaning => "cleaning",
            Self::CleanWait => "clean wait",
            Self::CleanFailed => "clean failed",
            Self::Deploying => "deploying",
            Self::DeployWait => "wait call-back",
            Self::DeployFailed => "deploy failed",
            Self::Deleting => "deleting",
            Self::Error => "error",
            Self::Adopting => "adopting",
            Self::AdoptFailed => "adopt failed",
            Self::Servicing => "servicing",
            Self::ServiceWait => "service wait",
            Self::ServiceFailed => "service failed",
            Self::Foreign => "unknown",
        }
    }

    fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.word() == word).unwrap_or_default()
    }

    /// Returns whether Ironic itself leaves the state, sooner or later.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Verifying
            | Self::Inspecting
            | Self::InspectWait
            | Self::Cleaning
            | Self::CleanWait
            | Self::Deploying
            | Self::DeployWait
            | Self::Deleting
            | Self::Adopting
            | Self::Servicing
            | Self::ServiceWait => true,
            Self::Enroll
            | Self::Manageable
            | Self::Available
            | Self::Active
            | Self::InspectFailed
            | Self::CleanFailed
            | Self::DeployFailed
            | Self::Error
            | Self::AdoptFailed
            | Self::ServiceFailed
            | Self::Foreign => false,
        }
    }
}

/// Requested change of a provision state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of Ironic's API")]
pub enum ProvisionVerb {
    Manage,
    Inspect,
    Clean,
    Provide,
    Active,
    Deleted,
    Adopt,
    Service,
    Abort,
}

impl ProvisionVerb {
    /// Every verb.
    const ALL: [Self; 9] = [
        Self::Manage,
        Self::Inspect,
        Self::Clean,
        Self::Provide,
        Self::Active,
        Self::Deleted,
        Self::Adopt,
        Self::Service,
        Self::Abort,
    ];

    /// Word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Inspect => "inspect",
            Self::Clean => "clean",
            Self::Provide => "provide",
            Self::Active => "active",
            Self::Deleted => "deleted",
            Self::Adopt => "adopt",
            Self::Service => "service",
            Self::Abort => "abort",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.word() == word)
    }
}

/// Mark of the operation that was begun last at a node. The mark is written before the request, with the time of the
/// provision state that the request will leave. As long as the node shows that time, the request had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationMark {
    /// Operation, by kind and time of its first call.
    pub operation: String,
    /// Request that was made.
    pub verb: ProvisionVerb,
    /// Time of the provision state that the request leaves.
    pub left: String,
    /// Whether the operation has given up a waiting ramdisk before.
    pub is_forced: bool,
}

impl OperationMark {
    fn read(mark: &Value) -> Option<Self> {
        Some(Self {
            operation: mark["operation"].as_str()?.to_owned(),
            verb: ProvisionVerb::from_word(mark["verb"].as_str()?)?,
            left: mark["left"].as_str()?.to_owned(),
            is_forced: mark["forced"] == true,
        })
    }

    /// Returns the whole `extra` of a new node with the mark.
    pub fn extra(&self) -> Value {
        json!({ MARK: self.document() })
    }

    /// Returns the change of a node that writes the mark.
    pub fn patch(&self) -> Value {
        json!({"op": "add", "path": format!("/extra/{MARK}"), "value": self.document()})
    }

    /// Returns the change of a node that removes the mark.
    pub fn removal() -> Value {
        json!({"op": "remove", "path": format!("/extra/{MARK}")})
    }

    fn document(&self) -> Value {
        json!({"operation": self.operation, "verb": self.verb.word(), "left": self.left, "forced": self.is_forced})
    }
}

impl IronicNode {
    /// Names of the members that [`Self::read`] needs, for listings.
    pub const FIELDS: &'static str = "uuid,name,driver,provision_state,target_provision_state,provision_updated_at,\
         power_state,target_power_state,reservation,maintenance,fault,extra";

    /// Reads a node.
    pub fn read(document: &Value) -> Self {
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        Self {
            uuid: text("uuid"),
            name: text("name"),
            driver: text("driver"),
            state: ProvisionState::from_word(&text("provision_state")),
            is_cleaned_by_hand: document["target_provision_state"] == "manageable",
            state_changed_at: text("provision_updated_at"),
            power: match document["power_state"].as_str() {
                Some("power on") => NodePower::On,
                Some("power off") => NodePower::Off,
                Some(_) | None => NodePower::Unknown,
            },
            target_power: document["target_power_state"].as_str().map(str::to_owned),
            is_locked: !document["reservation"].is_null(),
            is_maintained: document["maintenance"] == true,
            has_power_fault: document["fault"] == "power failure",
            last_error: text("last_error"),
            health: document["health"].as_str().map(str::to_owned),
            has_instance: !document["instance_uuid"].is_null(),
            mark: OperationMark::read(&document["extra"][MARK]),
            properties: document["properties"].clone(),
        }
    }

    /// Returns the mark if the operation wrote it.
    pub fn mark_of(&self, operation: &str) -> Option<&OperationMark> {
        self.mark.as_ref().filter(|mark| mark.operation == operation)
    }

    /// Returns the last request of the operation that had an effect.
    pub fn begun_by(&self, operation: &str) -> Option<&OperationMark> {
        self.mark_of(operation).filter(|mark| mark.left != self.state_changed_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_had_an_effect_once_the_provision_state_has_changed() {
        let mark = OperationMark {
            operation: "inspect-7".to_owned(),
            verb: ProvisionVerb::Inspect,
            left: "T1".to_owned(),
            is_forced: true,
        };
        let node = |changed: Value| {
            IronicNode::read(&json!({"provision_updated_at": changed, "extra": mark.extra()}))
        };
        assert_eq!(node(json!("T1")).mark_of("inspect-7"), Some(&mark));
        assert_eq!(node(json!("T1")).begun_by("inspect-7"), None);
        assert_eq!(node(json!("T2")).begun_by("inspect-7"), Some(&mark));
        assert_eq!(node(json!("T2")).begun_by("inspect-8"), None);
    }

    #[test]
    fn words_of_states_are_read_back() {
        for state in ProvisionState::ALL {
            assert_eq!(ProvisionState::from_word(state.word()), state);
        }
        for word in ["rescue", "deploy hold", ""] {
            assert_eq!(ProvisionState::from_word(word), ProvisionState::Foreign);
        }
    }
}
