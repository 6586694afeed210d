//! Cheap questions by which the upstreams show that they are there and take our credentials.

use ::upstream::Request;

/// Question to the boot script service.
pub fn of_boot_parameters() -> Request {
    Request::get("service_status", "/service/status")
}

/// Question to the configuration framework service.
pub fn of_configuration() -> Request {
    Request::get("components_list", "/components").query("limit", "1")
}
