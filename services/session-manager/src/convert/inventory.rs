//! What the machine is made of.

use chassis::convert::Interner;
use domain::{
    id::ComponentId,
    inventory::{Group, Hardware, Inventory},
};
use proto::inventory as wire;

/// Puts an inventory together from the messages of a list. What has no possible id is left out, so that it
/// does not keep sessions from everybody else.
#[derive(Default)]
pub(crate) struct Reader {
    hardware: Vec<Hardware>,
    groups: Vec<Group>,
    partitions: Vec<Group>,
    texts: Interner,
}

impl Reader {
    /// Takes in one message.
    pub(crate) fn read(&mut self, message: wire::ListInventoryResponse) {
        let texts = &mut self.texts;
        self.hardware.extend(message.hardware.into_iter().filter_map(|item| hardware(item, texts)));
        self.groups.extend(message.groups.into_iter().map(group));
        self.partitions.extend(message.partitions.into_iter().map(group));
    }

    /// The whole, once every message was read.
    pub(crate) fn finish(self) -> Inventory {
        Inventory::new(self.hardware, self.groups, self.partitions)
    }
}

fn hardware(item: wire::Hardware, texts: &mut Interner) -> Option<Hardware> {
    let id = id(&item.id)?;
    let mut said = |text: &str| (!text.is_empty()).then(|| texts.share(text));
    Some(Hardware {
        role: said(&item.role),
        sub_role: said(&item.sub_role),
        arch: said(&item.arch),
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
        .inspect_err(|error| tracing::warn!(%error, "the inventory lists something that has no possible id"))
        .ok()
}
