//! Every path of the face, with its handlers, and the part of its description that does not follow from them. A path is
//! added here and nowhere else.

use http::StatusCode;
use proto::{component::Phase, session::Progress};
use serde_json::json;

use super::{
    boot_scripts,
    components::{
        self,
        selection::{LARGEST_PAGE, LONGEST_STATUSES},
    },
    notifications, options, service, sessions, staging, templates,
};
use crate::{
    bos::{
        face::BosFace,
        paths::{PREFIX, tag},
        wire::{
            bulk_patch::LONGEST_IDS,
            component::Component,
            options::Options,
            primitive::{AgeText, BoundedText, ComponentId, LONGEST_ID, ResourceName, WholeNumber},
            session::{LeftOutMember, Session, SessionStatus},
            staging::AppliedStages,
            template::SessionTemplate,
            words::SpelledEnum,
        },
    },
    http::{
        document::{ApiOperation, ApiParameter, query},
        endpoint::ApiEndpoint,
    },
};

/// Largest body of a bulk write or a template. Full records of 12,000 components come to about a third.
const BULK_BODY: u64 = 64 << 20;

/// The paths of the contract (BOS reference 2.4), and those around it. A path with a slash at the end is another path.
/// `strict`: they are described as they are with `compat.strict_bos`.
pub(crate) fn endpoints(strict: bool) -> Vec<ApiEndpoint<BosFace>> {
    let mut paths = about_the_service();
    paths.extend(components(strict));
    paths.extend(templates());
    paths.extend(sessions());
    paths.extend(dry_runs());
    let contract = paths.into_iter().map(|path| path.also_under(PREFIX));
    contract.chain(around()).collect()
}

fn at(path: &'static str) -> ApiEndpoint<BosFace> {
    ApiEndpoint::at(path, tag(path))
}

/// Writes that are judged and answered as usual, but not done. Their paths are no paths of BOS, so that a dry run that
/// reaches a BOS by mistake changes nothing.
fn dry_runs() -> Vec<ApiEndpoint<BosFace>> {
    vec![
        at("/v2/dryrun/options").patch(
            options::judge,
            ApiOperation::new("What changing these options would come to; nothing is stored")
                .answers::<Options>()
                .needs(json!({ "minProperties": 1, "maxProperties": options::MOST_MEMBERS })),
        ),
        at("/v2/dryrun/components")
            .put(
                components::judge_many,
                ApiOperation::new("What storing these components would come to; nothing is stored")
                    .answers::<Vec<Component>>()
                    .needs(json!({ "items": { "required": ["id"] } })),
            )
            .with_bodies_of(BULK_BODY),
        at("/v2/dryrun/sessiontemplates/{name}")
            .put(
                templates::judge,
                ApiOperation::new("What storing this session template would come to; nothing is stored")
                    .answers::<SessionTemplate>()
                    .needs(json!({ "required": ["boot_sets"] })),
            )
            .with_bodies_of(BULK_BODY),
    ]
}

fn about_the_service() -> Vec<ApiEndpoint<BosFace>> {
    vec![
        at("/").get(
            service::versions,
            ApiOperation::new("Versions of the contract").answers::<Vec<service::ContractVersion>>(),
        ),
        at("/v2").get(
            service::version,
            ApiOperation::new("Version of the contract").answers::<service::ContractVersion>(),
        ),
        at("/v2/version").get(
            service::version,
            ApiOperation::new("Version of the contract").answers::<service::ContractVersion>(),
        ),
        at("/v2/healthz").get(
            service::health,
            ApiOperation::new("Whether the database answers").answers::<service::ServiceHealth>(),
        ),
        at("/v2/options")
            .get(options::show, ApiOperation::new("The options in force").answers::<Options>())
            .patch(
                options::change,
                ApiOperation::new("Change some options; unknown members are answered and forgotten")
                    .answers::<Options>()
                    .needs(json!({ "minProperties": 1, "maxProperties": options::MOST_MEMBERS })),
            ),
    ]
}

fn components(strict: bool) -> Vec<ApiEndpoint<BosFace>> {
    let at_least_one = || json!({ "minProperties": 1 });
    vec![
        at("/v2/components")
            .get(
                components::list,
                ApiOperation::new("Components in the order of their ids")
                    .answers::<Vec<Component>>()
                    .asks(listing(strict)),
            )
            .put(
                components::put_many,
                ApiOperation::new("Create or replace components")
                    .answers::<Vec<Component>>()
                    .needs(json!({ "items": { "required": ["id"] } })),
            )
            .patch(
                components::patch_many,
                ApiOperation::new("Change components: each by a patch of its own, or many by the same")
                    .answers::<Vec<Component>>()
                    .asks([query::<bool>("skip_bad_ids", "Leave out components that do not exist")])
                    .refuses(StatusCode::NOT_FOUND, "There is no such component; nothing was changed"),
            )
            .with_bodies_of(BULK_BODY),
        at("/v2/components/{id}")
            .get(
                components::show,
                ApiOperation::new("A component")
                    .answers::<Component>()
                    .refuses(StatusCode::NOT_FOUND, "There is no such component"),
            )
            .put(
                components::put,
                ApiOperation::new("Create or replace a component")
                    .answers::<Component>()
                    .needs(at_least_one())
                    .refuses(StatusCode::NOT_FOUND, "The tenant has no such component"),
            )
            .patch(
                components::patch,
                ApiOperation::new("Change a component")
                    .answers::<Component>()
                    .needs(at_least_one())
                    .refuses(StatusCode::NOT_FOUND, "There is no such component")
                    .refuses(
                        StatusCode::CONFLICT,
                        "Its actual state cannot be told while it is being changed",
                    ),
            )
            .delete(
                components::delete,
                ApiOperation::new("Delete a component")
                    .answers_nothing()
                    .refuses(StatusCode::NOT_FOUND, "There is no such component"),
            ),
    ]
}

/// Parameters of a list of components (BOS reference 2.6.1, and 12, BUG-03).
fn listing(strict: bool) -> [ApiParameter; 8] {
    let ids = if strict { query::<BoundedText<1, LONGEST_ID>> } else { query::<BoundedText<1, LONGEST_IDS>> };
    [
        ids("ids", "Only these, separated by commas; one that does not exist is left out"),
        query::<bool>("enabled", "Only those that are acted on, or that are not"),
        query::<ResourceName>("session", "Only those of this session"),
        query::<ResourceName>("staged_session", "Only those that this session staged"),
        query::<SpelledEnum<Phase>>("phase", "Only those in this phase; empty: in any"),
        query::<BoundedText<0, LONGEST_STATUSES>>(
            "status",
            "Only those with one of these, separated by commas; empty: with any",
        ),
        query::<ComponentId>("start_after_id", "Only those with a greater id: the last of the page before"),
        query::<WholeNumber<0, LARGEST_PAGE>>("page_size", "Not more than so many; 0: all"),
    ]
}

fn templates() -> Vec<ApiEndpoint<BosFace>> {
    const MISSING: &str = "There is no such session template";
    vec![
        at("/v2/sessiontemplates").get(
            templates::list,
            ApiOperation::new("Session templates: of the tenant, or of everybody")
                .answers::<Vec<SessionTemplate>>(),
        ),
        at("/v2/sessiontemplates/{name}")
            .get(
                templates::show,
                ApiOperation::new("A session template")
                    .answers::<SessionTemplate>()
                    .refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .put(
                templates::put,
                ApiOperation::new("Create or replace a session template")
                    .answers::<SessionTemplate>()
                    .needs(json!({ "required": ["boot_sets"] })),
            )
            .patch(
                templates::patch,
                ApiOperation::new("Change a session template; boot sets are merged by name")
                    .answers::<SessionTemplate>()
                    .refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .delete(
                templates::delete,
                ApiOperation::new("Delete a session template")
                    .answers_nothing()
                    .refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .with_bodies_of(BULK_BODY),
        at("/v2/sessiontemplatesvalid/{name}").get(
            templates::validate,
            ApiOperation::new("What would keep a session template from working")
                .answers::<String>()
                .refuses(StatusCode::NOT_FOUND, MISSING),
        ),
        at("/v2/sessiontemplatetemplate").get(
            templates::example,
            ApiOperation::new("A session template to copy and fill in").answers::<serde_json::Value>(),
        ),
    ]
}

fn sessions() -> Vec<ApiEndpoint<BosFace>> {
    const MISSING: &str = "There is no such session";
    vec![
        at("/v2/sessions")
            .get(
                sessions::list,
                ApiOperation::new("Sessions: of the tenant, or of everybody").answers::<Vec<Session>>().asks(filters()),
            )
            .post(
                sessions::create,
                ApiOperation::new("Create a session")
                    .answers_with::<Session>(StatusCode::CREATED)
                    .refuses(StatusCode::CONFLICT, "There is a session of that name"),
            )
            .delete(
                sessions::delete_many,
                ApiOperation::new("Delete the sessions that a list with the same parameters shows; without, the complete ones")
                    .answers_nothing()
                    .asks(filters()),
            ),
        at("/v2/sessions/{name}")
            .get(
                sessions::show,
                ApiOperation::new("A session").answers::<Session>().refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .patch(
                sessions::patch,
                ApiOperation::new("Change a session").answers::<Session>().refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .delete(
                sessions::delete,
                ApiOperation::new("Delete a session").answers_nothing().refuses(StatusCode::NOT_FOUND, MISSING),
            ),
        at("/v2/sessions/{name}/status")
            .get(
                sessions::status,
                ApiOperation::new("How the members of a session are doing, or were doing when that was saved")
                    .answers::<SessionStatus>()
                    .refuses(StatusCode::NOT_FOUND, MISSING),
            )
            .post(
                sessions::save_status,
                ApiOperation::new("Save how the members of a session are doing, and answer it")
                    .answers::<SessionStatus>()
                    .refuses(StatusCode::NOT_FOUND, MISSING),
            ),
        at("/v2/sessions/{name}/left_out").get(
            sessions::left_out,
            ApiOperation::new("Whom a session leaves alone although its template names them, and why")
                .answers::<Vec<LeftOutMember>>()
                .refuses(StatusCode::NOT_FOUND, MISSING),
        ),
        at("/v2/applystaged")
            .post(
                staging::apply,
                ApiOperation::new("Let components run what sessions staged for them").answers::<AppliedStages>(),
            )
            .with_bodies_of(BULK_BODY),
    ]
}

/// Parameters that filter sessions (BOS reference 2.9.2).
fn filters() -> [ApiParameter; 3] {
    [
        query::<AgeText>("min_age", "Only those that were created so long ago, or longer"),
        query::<AgeText>("max_age", "Only those that were created so long ago, or later"),
        query::<SpelledEnum<Progress>>("status", "Only those that are so far"),
    ]
}

/// Paths by which a CSM system around BOS calls it. They stand at the root only, and no BOS has them.
fn around() -> Vec<ApiEndpoint<BosFace>> {
    vec![
        at("/scn").post(
            notifications::notify,
            ApiOperation::new("Hears that nodes have changed, as the hardware state manager tells it"),
        ),
        at("/boot/v1/bootscript").get(
            boot_scripts::show,
            ApiOperation::new("What the boot firmware of a node runs; one of the parameters is needed")
                .answers_text()
                .asks([
                    query::<BoundedText<0, { boot_scripts::LONGEST_MAC }>>("mac", "MAC address of the node"),
                    query::<BoundedText<0, LONGEST_ID>>("name", "Id of the node"),
                    query::<WholeNumber<0, { u32::MAX }>>("nid", "Number of the node"),
                ])
                .refuses(
                    StatusCode::NOT_FOUND,
                    "Nothing was prepared for the node, or another service has its script",
                ),
        ),
    ]
}
