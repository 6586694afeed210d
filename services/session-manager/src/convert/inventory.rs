//! What the machine is made of.

use chassis::convert::Interner;
use domain::{
    id::ComponentId,
    invalid::Invalid,
    inventory::{Group, Hardware, Inventory},
};
use proto::inventory as wire;

/// Puts an inventory together from the messages of a list.
#[derive(Default)]
pub(crate) struct Reader {
    hardware: Vec<Hardware>,
    groups: Vec<Group>,
    partitions: Vec<Group>,
    texts: Interner,
}

impl Reader {
    /// Takes in one message.
    ///
    /// # Errors
    /// When an id is none; then the list as a whole is not to be trusted.
    pub(crate) fn read(&mut self, message: wire::ListInventoryResponse) -> Result<(), Invalid> {
        for item in message.hardware {
            let item = hardware(item, &mut self.texts)?;
            self.hardware.push(item);
        }
        for item in message.groups {
            self.groups.push(group(item)?);
        }
        for item in message.partitions {
            self.partitions.push(group(item)?);
        }
        Ok(())
    }

    /// The whole, once every message was read.
    pub(crate) fn finish(self) -> Inventory {
        Inventory::new(self.hardware, self.groups, self.partitions)
    }
}

fn hardware(item: wire::Hardware, texts: &mut Interner) -> Result<Hardware, Invalid> {
    let id = ComponentId::parse(&item.id).map_err(|e| e.within("hardware"))?;
    let mut said = |text: &str| (!text.is_empty()).then(|| texts.share(text));
    Ok(Hardware {
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

fn group(group: wire::Group) -> Result<Group, Invalid> {
    let ids = group.ids.iter().map(|id| ComponentId::parse(id)).collect::<Result<_, _>>();
    Ok(Group { ids: ids.map_err(|e| e.within(&group.label))?, label: group.label })
}
