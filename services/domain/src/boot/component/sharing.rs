//! Sharing of equal groups among components.

use crate::{
    boot::component::{
        BegunBoot, Component, ComponentEvaluation, ComponentInventory, ComponentPower, ComponentPreparation,
        ComponentWish,
    },
    core::shared_part::PartPool,
};

/// Groups of the components of one holder, such as a store or a copy of it.
#[derive(Debug, Default)]
pub struct ComponentPools {
    wishes: PartPool<ComponentWish>,
    evaluations: PartPool<ComponentEvaluation>,
    powers: PartPool<ComponentPower>,
    preparations: PartPool<ComponentPreparation>,
    boots: PartPool<BegunBoot>,
    inventories: PartPool<ComponentInventory>,
}

impl ComponentPools {
    /// Makes the groups of `component` one with the equal ones of other components.
    pub fn share(&mut self, component: &mut Component) {
        self.wishes.share(&mut component.wish);
        self.evaluations.share(&mut component.evaluation);
        self.powers.share(&mut component.power);
        self.preparations.share(&mut component.preparation);
        self.inventories.share(&mut component.inventory);
        if let Some(boot) = &mut component.reported.boot {
            self.boots.share(boot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::component::{NumberedToken, ReportedBoots, view::bare},
        core::{id::ComponentId, shared_part::SharedPart},
    };

    fn component(id: &str, enabled: bool) -> Component {
        let token = NumberedToken { token: "t".into(), number: 1 };
        let boot = BegunBoot { generation: 1, attempt: 1, token, reported: false };
        Component {
            id: ComponentId::parse(id).expect("valid"),
            wish: ComponentWish { enabled: Some(enabled), ..ComponentWish::default() }.into(),
            reported: ReportedBoots { boot: Some(boot.into()), ..ReportedBoots::default() },
            ..bare()
        }
    }

    #[test]
    fn equal_groups_are_shared_and_records_stay_equal() {
        let mut pools = ComponentPools::default();
        let made = || [component("x1", true), component("x2", true), component("x3", false)];
        let mut shared = made();
        shared.iter_mut().for_each(|one| pools.share(one));
        assert_eq!(shared, made());
        let [first, second, third] = &shared;
        assert!(SharedPart::is_same(&first.wish, &second.wish));
        assert!(!SharedPart::is_same(&first.wish, &third.wish));
        let boot = |one: &Component| one.reported.boot.clone().expect("begun");
        assert!(SharedPart::is_same(&boot(first), &boot(third)));
    }

    /// A component is held for each node of a machine, by the registry and in each process that copies it.
    #[test]
    fn a_component_is_small_beside_its_shared_groups() {
        assert_eq!(size_of::<Component>(), 152);
        assert!(size_of::<ComponentWish>() <= 192);
        assert!(size_of::<ComponentEvaluation>() <= 80);
        assert!(size_of::<ComponentPower>() <= 88);
        assert!(size_of::<ComponentPreparation>() <= 56);
    }
}
