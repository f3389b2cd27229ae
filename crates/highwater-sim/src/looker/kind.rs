//! The types of content, by the names that a mirror files them under.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookerType {
    Dashboards,
    LookmlDashboards,
    Looks,
    Folders,
    Boards,
    Users,
    Groups,
    Roles,
    PermissionSets,
    ModelSets,
    LookmlModels,
    Explores,
    ScheduledPlans,
    Alerts,
    ContentMetadata,
    ContentAccess,
    Themes,
    Connections,
    Projects,
    Datagroups,
    UserAttributes,
    Queries,
    MergeQueries,
}

/// What becomes of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bin {
    /// It is kept with `deleted` and `deleted_at`.
    Trash,
    /// It is kept with `deleted_at` and shown to whoever asks for it alone.
    Dated,
    /// It is gone.
    None,
}

impl LookerType {
    pub const ALL: [LookerType; 23] = [
        LookerType::Dashboards,
        LookerType::LookmlDashboards,
        LookerType::Looks,
        LookerType::Folders,
        LookerType::Boards,
        LookerType::Users,
        LookerType::Groups,
        LookerType::Roles,
        LookerType::PermissionSets,
        LookerType::ModelSets,
        LookerType::LookmlModels,
        LookerType::Explores,
        LookerType::ScheduledPlans,
        LookerType::Alerts,
        LookerType::ContentMetadata,
        LookerType::ContentAccess,
        LookerType::Themes,
        LookerType::Connections,
        LookerType::Projects,
        LookerType::Datagroups,
        LookerType::UserAttributes,
        LookerType::Queries,
        LookerType::MergeQueries,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            LookerType::Dashboards => "dashboards",
            LookerType::LookmlDashboards => "lookml_dashboards",
            LookerType::Looks => "looks",
            LookerType::Folders => "folders",
            LookerType::Boards => "boards",
            LookerType::Users => "users",
            LookerType::Groups => "groups",
            LookerType::Roles => "roles",
            LookerType::PermissionSets => "permission_sets",
            LookerType::ModelSets => "model_sets",
            LookerType::LookmlModels => "lookml_models",
            LookerType::Explores => "explores",
            LookerType::ScheduledPlans => "scheduled_plans",
            LookerType::Alerts => "alerts",
            LookerType::ContentMetadata => "content_metadata",
            LookerType::ContentAccess => "content_access",
            LookerType::Themes => "themes",
            LookerType::Connections => "connections",
            LookerType::Projects => "projects",
            LookerType::Datagroups => "datagroups",
            LookerType::UserAttributes => "user_attributes",
            LookerType::Queries => "queries",
            LookerType::MergeQueries => "merge_queries",
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    pub(super) const fn bin(self) -> Bin {
        match self {
            LookerType::Dashboards | LookerType::Looks => Bin::Trash,
            LookerType::Boards => Bin::Dated,
            _ => Bin::None,
        }
    }

    /// The member that an edit changes; what nobody can edit has none.
    pub(super) const fn edited(self) -> Option<&'static str> {
        Some(match self {
            LookerType::Dashboards | LookerType::LookmlDashboards | LookerType::Looks | LookerType::Boards => "title",
            LookerType::Users => "last_name",
            LookerType::LookmlModels | LookerType::UserAttributes => "label",
            LookerType::Explores => "description",
            LookerType::Alerts => "custom_title",
            LookerType::ContentMetadata => "inherits",
            LookerType::ContentAccess => "permission_type",
            LookerType::Connections => "database",
            LookerType::Projects => "git_remote_url",
            LookerType::Queries | LookerType::MergeQueries => return None,
            _ => "name",
        })
    }
}

impl fmt::Display for LookerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown type `{0}`, expected one of {list}", list = LookerType::ALL.map(|kind| format!("`{kind}`")).join(", "))]
pub struct UnknownLookerType(String);

impl FromStr for LookerType {
    type Err = UnknownLookerType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = LookerType::ALL.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| UnknownLookerType(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for LookerType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for LookerType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
