//! Settings for a mesh whose external systems are fakes of the crate `upstreams`.

use chassis::settings::{
    BootParametersDriver, CatalogueDriver, ConfigurationDriver, ImagesDriver, InventoryDriver, Peer,
    PowerDriver, Settings, TenantsDriver,
};
use upstreams::{Service, Upstreams};

/// Points every peer of `settings` at `upstreams`.
pub fn play(settings: &mut Settings, upstreams: &Upstreams) {
    let at = |peer: &mut Peer, service: Service| {
        peer.url = upstreams.url_of(service);
        peer.plain_http = true;
    };
    let Settings { inventory, power, boot_parameters, configuration, images, tenants, .. } = settings;
    at(&mut inventory.hsm, Service::Hsm);
    at(&mut power.pcs, Service::Pcs);
    power.confirm_seconds = upstreams.confirm_seconds();
    at(&mut boot_parameters.bss, Service::Bss);
    at(&mut configuration.cfs, Service::Cfs);
    at(&mut images.s3, Service::S3);
    at(&mut images.ims, Service::Ims);
    at(&mut tenants.tapms, Service::Tapms);
}

/// Sets the drivers of a CSM machine: an external service for every concern.
pub fn csm(settings: &mut Settings) {
    settings.inventory.driver = InventoryDriver::Hsm;
    settings.power.driver = PowerDriver::Pcs;
    settings.boot_parameters.driver = BootParametersDriver::Bss;
    settings.configuration.driver = ConfigurationDriver::Cfs;
    settings.images.driver = ImagesDriver::S3;
    settings.images.catalogue = CatalogueDriver::Ims;
    settings.tenants.driver = TenantsDriver::Tapms;
}
