//! Values that the parts of one process share, one of each type.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

use parking_lot::Mutex;

/// Values by type. A value is made at its first use; its clones have to share their content. Clones of this
/// hold the same values.
#[derive(Clone, Default)]
pub struct SharedValues {
    values: Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>>,
}

impl SharedValues {
    /// The value of that type.
    pub(crate) fn of<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        let mut values = self.values.lock();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        value.downcast_ref::<T>().cloned().unwrap_or_default()
    }
}
