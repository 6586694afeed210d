//! Data images at the BMC of a running host.

use domain::host::record::call::DriverAnswer;

use ironic::answers::{Step, after_change, after_read, done};

use super::operation::HostOperation;

impl HostOperation<'_> {
    /// Inserts an image. Ironic shows only whether one is inserted, so the intent on record tells whose it is.
    pub(super) async fn insert_media(&self, url: &str) -> Step<DriverAnswer> {
        let Some(node) = self.access.node().await? else { return Ok(DriverAnswer::NotRegistered) };
        let may_be_inserted = self.order.asked_before().is_some();
        if may_be_inserted && self.access.backend.has_media(&node).await.map_err(after_read)? {
            return Ok(done());
        }
        self.access.backend.insert_media(&node, url).await.map(|()| done()).map_err(after_change)
    }

    /// Ejects the image.
    pub(super) async fn eject_media(&self) -> Step<DriverAnswer> {
        let Some(node) = self.access.node().await? else { return Ok(DriverAnswer::NotRegistered) };
        self.access.backend.eject_media(&node).await.map(|()| done()).map_err(after_change)
    }
}
