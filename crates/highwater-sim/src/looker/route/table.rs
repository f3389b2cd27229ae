//! The operations that are simulated, with the parameters and the sort of activity that Looker's published document
//! gives them.

use crate::{
    answer::Verb,
    looker::kind::LookerType::{self, *},
};

#[derive(Debug)]
pub(in crate::looker) struct Operation {
    pub(in crate::looker) verb: Verb,
    /// With `:names` for what varies.
    pub(in crate::looker) path: &'static str,
    pub(in crate::looker) action: Action,
    /// Names; `:n` marks numbers, `:b` flags.
    pub(in crate::looker) params: &'static str,
    pub(in crate::looker) activity: Activity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::looker) enum Action {
    Login,
    Logout,
    Versions,
    Me,
    /// Everything of a type that is not deleted, abbreviated where Looker does so.
    All(LookerType),
    Search(LookerType),
    One(LookerType),
    /// What of a type is tied to the object of the other type that the path names.
    Of(LookerType, LookerType),
    /// As above, named by a parameter.
    OfParameter(LookerType, LookerType, &'static str),
    Explore,
    DashboardLookml,
    Elements,
    ElementsOf,
}

/// As the document says what an operation counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::looker) enum Activity {
    Query,
    NonQuery,
    None,
}

impl Activity {
    pub(in crate::looker) const fn as_str(self) -> &'static str {
        match self {
            Activity::Query => "query",
            Activity::NonQuery => "non_query",
            Activity::None => "none",
        }
    }
}

impl Action {
    /// The type that it shows.
    pub(in crate::looker) const fn shows(self) -> Option<LookerType> {
        match self {
            Action::Login | Action::Logout | Action::Versions => None,
            Action::Me => Some(Users),
            Action::All(kind)
            | Action::Search(kind)
            | Action::One(kind)
            | Action::Of(kind, _)
            | Action::OfParameter(kind, _, _) => Some(kind),
            Action::Explore => Some(Explores),
            Action::DashboardLookml => Some(LookmlDashboards),
            Action::Elements | Action::ElementsOf => Some(Dashboards),
        }
    }
}

const fn get(path: &'static str, action: Action, params: &'static str) -> Operation {
    Operation { verb: Verb::Get, path, action, params, activity: Activity::NonQuery }
}

const fn query(path: &'static str, action: Action, params: &'static str) -> Operation {
    Operation { activity: Activity::Query, ..get(path, action, params) }
}

const fn free(verb: Verb, path: &'static str, action: Action, params: &'static str) -> Operation {
    Operation { verb, activity: Activity::None, ..get(path, action, params) }
}

/// Paths without names stand before those with names in the same place.
pub(super) static OPERATIONS: [Operation; 68] = [
    free(Verb::Post, "/login", Action::Login, "client_id client_secret"),
    free(Verb::Delete, "/logout", Action::Logout, ""),
    free(Verb::Get, "/versions", Action::Versions, "fields"),
    get("/user", Action::Me, "fields"),
    get("/dashboards", Action::All(Dashboards), "fields"),
    get(
        "/dashboards/search",
        Action::Search(Dashboards),
        "id slug title description content_favorite_id folder_id deleted:b user_id view_count content_metadata_id \
         curate:b last_viewed_at fields page:n per_page:n limit:n offset:n sorts filter_or:b not_owned_by:b",
    ),
    get(
        "/dashboards/lookml/search",
        Action::Search(LookmlDashboards),
        "folder_id title content_favorite_id fields limit:n offset:n sorts",
    ),
    get("/dashboards/lookml/:dashboard_id", Action::DashboardLookml, ""),
    get("/dashboards/:dashboard_id", Action::One(Dashboards), "fields"),
    get("/dashboards/:dashboard_id/dashboard_elements", Action::ElementsOf, "fields"),
    get(
        "/dashboard_elements/search",
        Action::Elements,
        "dashboard_id look_id title deleted:b fields filter_or:b sorts",
    ),
    get("/looks", Action::All(Looks), "fields"),
    get(
        "/looks/search",
        Action::Search(Looks),
        "id title description content_favorite_id folder_id user_id view_count deleted:b query_id curate:b \
         last_viewed_at fields page:n per_page:n limit:n offset:n sorts filter_or:b",
    ),
    get("/looks/:look_id", Action::One(Looks), "fields"),
    get("/folders", Action::All(Folders), "fields"),
    get(
        "/folders/search",
        Action::Search(Folders),
        "fields page:n per_page:n limit:n offset:n sorts name id parent_id creator_id filter_or:b is_shared_root:b \
         is_users_root:b",
    ),
    get("/folders/:folder_id", Action::One(Folders), "fields"),
    get("/folders/:folder_id/looks", Action::Of(Looks, Folders), "fields"),
    get("/folders/:folder_id/dashboards", Action::Of(Dashboards, Folders), "fields"),
    get(
        "/folders/:folder_id/children",
        Action::Of(Folders, Folders),
        "fields page:n per_page:n limit:n offset:n sorts",
    ),
    get("/boards", Action::All(Boards), "fields"),
    get(
        "/boards/search",
        Action::Search(Boards),
        "title created_at first_name last_name fields favorited:b creator_id sorts page:n per_page:n offset:n limit:n \
         filter_or:b permission",
    ),
    get("/boards/:board_id", Action::One(Boards), "fields"),
    get("/users", Action::All(Users), "fields page:n per_page:n limit:n offset:n sorts ids"),
    get(
        "/users/search",
        Action::Search(Users),
        "fields page:n per_page:n limit:n offset:n sorts id first_name last_name full_name verified_looker_employee:b \
         embed_user:b email is_disabled:b filter_or:b content_metadata_id group_id can_manage_api3_creds:b \
         is_service_account:b",
    ),
    get("/users/:user_id", Action::One(Users), "fields"),
    get(
        "/groups",
        Action::All(Groups),
        "fields page:n per_page:n limit:n offset:n sorts ids content_metadata_id can_add_to_content_metadata:b",
    ),
    get(
        "/groups/search",
        Action::Search(Groups),
        "fields limit:n offset:n sorts filter_or:b id name external_group_id externally_managed:b \
         externally_orphaned:b",
    ),
    get("/groups/:group_id", Action::One(Groups), "fields"),
    get("/groups/:group_id/users", Action::Of(Users, Groups), "fields page:n per_page:n limit:n offset:n sorts"),
    get("/groups/:group_id/groups", Action::Of(Groups, Groups), "fields"),
    get("/roles", Action::All(Roles), "fields ids get_all_support_roles:b"),
    get(
        "/roles/search",
        Action::Search(Roles),
        "fields limit:n offset:n sorts id model_set_ids permission_set_ids name built_in:b filter_or:b",
    ),
    get("/roles/:role_id", Action::One(Roles), ""),
    get("/roles/:role_id/groups", Action::Of(Groups, Roles), "fields"),
    get("/roles/:role_id/users", Action::Of(Users, Roles), "fields direct_association_only:b"),
    get("/permission_sets", Action::All(PermissionSets), "fields"),
    get(
        "/permission_sets/search",
        Action::Search(PermissionSets),
        "fields limit:n offset:n sorts id name all_access:b built_in:b filter_or:b permissions",
    ),
    get("/permission_sets/:permission_set_id", Action::One(PermissionSets), "fields"),
    get("/model_sets", Action::All(ModelSets), "fields"),
    get(
        "/model_sets/search",
        Action::Search(ModelSets),
        "fields limit:n offset:n sorts id name all_access:b built_in:b filter_or:b models",
    ),
    get("/model_sets/:model_set_id", Action::One(ModelSets), "fields"),
    get(
        "/lookml_models",
        Action::All(LookmlModels),
        "fields limit:n offset:n exclude_empty:b exclude_hidden:b include_internal:b include_self_service:b",
    ),
    get("/lookml_models/:lookml_model_name", Action::One(LookmlModels), "fields"),
    get("/lookml_models/:lookml_model_name/explores/:explore_name", Action::Explore, "fields add_drills_metadata:b"),
    query("/scheduled_plans", Action::All(ScheduledPlans), "user_id fields all_users:b"),
    query("/scheduled_plans/:scheduled_plan_id", Action::One(ScheduledPlans), "fields"),
    query("/scheduled_plans/look/:look_id", Action::Of(ScheduledPlans, Looks), "user_id fields all_users:b"),
    query(
        "/scheduled_plans/dashboard/:dashboard_id",
        Action::Of(ScheduledPlans, Dashboards),
        "user_id fields all_users:b",
    ),
    get(
        "/alerts/search",
        Action::Search(Alerts),
        "limit:n offset:n group_by fields disabled:b frequency condition_met:b last_run_start last_run_end \
         all_owners:b",
    ),
    get("/alerts/:alert_id", Action::One(Alerts), ""),
    get("/content_metadata", Action::OfParameter(ContentMetadata, ContentMetadata, "parent_id"), "parent_id fields"),
    get("/content_metadata/:content_metadata_id", Action::One(ContentMetadata), "fields"),
    get(
        "/content_metadata_access",
        Action::OfParameter(ContentAccess, ContentMetadata, "content_metadata_id"),
        "content_metadata_id fields",
    ),
    get("/themes", Action::All(Themes), "fields"),
    get(
        "/themes/search",
        Action::Search(Themes),
        "id name begin_at end_at limit:n offset:n sorts fields filter_or:b theme_type",
    ),
    get("/themes/:theme_id", Action::One(Themes), "fields"),
    get("/connections", Action::All(Connections), "fields"),
    get("/connections/:connection_name", Action::One(Connections), "fields"),
    get("/projects", Action::All(Projects), "fields"),
    get("/projects/:project_id", Action::One(Projects), "fields"),
    get("/datagroups", Action::All(Datagroups), ""),
    get("/datagroups/:datagroup_id", Action::One(Datagroups), ""),
    get("/user_attributes", Action::All(UserAttributes), "fields sorts"),
    get("/user_attributes/:user_attribute_id", Action::One(UserAttributes), "fields"),
    query("/queries/:query_id", Action::One(Queries), "fields"),
    query("/queries/slug/:slug", Action::One(Queries), "fields"),
    query("/merge_queries/:merge_query_id", Action::One(MergeQueries), "fields"),
];
