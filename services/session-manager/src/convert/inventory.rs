//! Messages of the hardware inventory.

use chassis::kinds::Interner;
use domain::{
    boot::session::inventory::{Group, Hardware, Inventory},
    core::id::ComponentId,
};
use proto::inventory as wire;

/// Builds an inventory from the messages of a list. Items without a valid id are skipped, so that they block no
/// session.
#[derive(Default)]
pub(crate) struct InventoryReader {
    hardware: Vec<Hardware>,
    groups: Vec<Group>,
    partitions: Vec<Group>,
    texts: Interner,
}

impl InventoryReader {
    /// Adds one message.
    pub(crate) fn read(&mut self, message: wire::ListInventoryResponse) {
        let texts = &mut self.texts;
        self.hardware.extend(message.hardware.into_iter().filter_map(|item| hardware(item, texts)));
        self.groups.extend(message.groups.into_iter().map(group));
        self.partitions.extend(message.partitions.into_iter().map(group));
    }

    /// Returns the inventory, after the last message was added.
    pub(crate) fn finish(self) -> Inventory {
        Inventory::new(self.hardware, self.groups, self.partitions)
    }
}

fn hardware(item: wire::Hardware, texts: &mut Interner) -> Option<Hardware> {
    let id = id(&item.id)?;
    let mut shared = |text: &str| (!text.is_empty()).then(|| texts.share(text));
    Some(Hardware {
        role: shared(&item.role),
        sub_role: shared(&item.sub_role),
        arch: shared(&item.arch),
        kind: texts.share(&item.r#type),
        enabled: item.enabled,
        locked: item.locked,
        nid: (item.nid != 0).then_some(item.nid),
        id,
    })
}

fn group(group: wire::Group) -> Group {
    Group { ids: group.ids.iter().filter_map(|text| id(text)).collect(), label: group.label }
}

fn id(text: &str) -> Option<ComponentId> {
    ComponentId::parse(text)
        .inspect_err(|error| tracing::warn!(%error, "inventory lists an invalid component id"))
        .ok()
}
