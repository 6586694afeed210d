//! Cheap questions by which the systems that sessions depend on show that they are there and take our credentials.

use http::StatusCode;
use upstream::Request;

/// An image that does not exist: the answer states that, and reads nothing else.
const NO_IMAGE: &str = "/images/00000000-0000-0000-0000-000000000000";

/// Question to the image management service.
pub fn of_catalogue() -> Request {
    Request::get("image_get", NO_IMAGE).also_answer(StatusCode::NOT_FOUND)
}

/// Question to the tenant and partition management service.
pub fn of_tenants() -> Request {
    Request::get("tenant_list", "/tenants")
}
