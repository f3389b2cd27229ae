//! The types of content: where each is listed, and where one object of it is.

use highwater_core::Key;

use crate::{Activity, Request};

/// A type of content, named as its endpoint is.
#[derive(Debug)]
pub struct Kind {
    pub(super) name: &'static str,
    pub(super) list: List,
    /// Before the id of an object, in its path.
    pub(super) one: &'static str,
    /// The member that names an object.
    pub(super) id: &'static str,
}

/// How a type is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Ids in one answer, bodies page by page.
    Pages {
        ids: &'static str,
        which: Which,
        pages: &'static str,
    },
    /// As `Pages`, with a trash that is read page by page.
    PagesAndTrash {
        ids: &'static str,
        which: Which,
        pages: &'static str,
    },
    /// Ids page by page, and bodies as well.
    Walked {
        pages: &'static str,
    },
    /// Everything in one answer, whole.
    Whole {
        path: &'static str,
    },
    /// Everything page by page, whole.
    WholePages {
        path: &'static str,
    },
    /// As `WholePages`, and who belongs to each.
    Groups {
        path: &'static str,
    },
    Looks,
    Explores,
    Metadata,
    Access,
    MergeQueries,
    Queries,
}

/// Which ids of a list are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that people made, or those that are written in LookML.
    Plain,
    Lookml,
}

impl Which {
    pub(super) fn admits(self, id: &str) -> bool {
        match self {
            Which::Plain => !id.contains("::"),
            Which::Lookml => id.contains("::"),
        }
    }
}

const fn kind(name: &'static str, list: List, one: &'static str) -> Kind {
    Kind { name, list, one, id: "id" }
}

const fn whole(name: &'static str, path: &'static str) -> Kind {
    kind(name, List::Whole { path }, name)
}

/// Without these words models made by people in the browser, and Looker's own, are left out.
pub(super) const MODELS: &str = "lookml_models?include_internal=true&include_self_service=true";

/// In the order in which they are mirrored: what others refer to comes before them.
pub(super) static KINDS: &[Kind] = &[
    whole("folders", "folders"),
    kind(
        "dashboards",
        List::PagesAndTrash { ids: "dashboards", which: Which::Plain, pages: "dashboards/search" },
        "dashboards",
    ),
    kind(
        "lookml_dashboards",
        List::Pages { ids: "dashboards", which: Which::Lookml, pages: "dashboards/lookml/search" },
        "dashboards",
    ),
    kind("looks", List::Looks, "looks"),
    whole("boards", "boards"),
    kind("users", List::Walked { pages: "users" }, "users"),
    kind("groups", List::Groups { path: "groups?sorts=id&" }, "groups"),
    whole("roles", "roles"),
    whole("permission_sets", "permission_sets"),
    whole("model_sets", "model_sets"),
    Kind { name: "lookml_models", list: List::Whole { path: MODELS }, one: "lookml_models", id: "name" },
    kind("explores", List::Explores, "lookml_models"),
    whole("scheduled_plans", "scheduled_plans?all_users=true"),
    kind("alerts", List::WholePages { path: "alerts/search?all_owners=true&" }, "alerts"),
    whole("themes", "themes"),
    Kind { name: "connections", list: List::Whole { path: "connections" }, one: "connections", id: "name" },
    whole("projects", "projects"),
    whole("datagroups", "datagroups"),
    whole("user_attributes", "user_attributes"),
    kind("content_metadata", List::Metadata, "content_metadata"),
    kind("content_metadata_access", List::Access, "content_metadata_access"),
    kind("merge_queries", List::MergeQueries, "merge_queries"),
    kind("queries", List::Queries, "queries"),
];

impl Kind {
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn find(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether an object that is called so is of this type.
    pub(super) fn admits(&self, key: &Key) -> bool {
        match self.list {
            List::Pages { which, .. } | List::PagesAndTrash { which, .. } => which.admits(&key.to_string()),
            _ => true,
        }
    }

    /// Listed nowhere: found by what refers to it.
    pub(super) fn is_referred_to(&self) -> bool {
        self.is_for_ever() || self.list == List::Access
    }

    /// Never changed by the remote, and never deleted.
    pub(super) fn is_for_ever(&self) -> bool {
        matches!(self.list, List::Queries | List::MergeQueries)
    }
}

/// The names of all types.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(Kind::name)
}

/// As the API's own description marks its operations.
pub(super) fn activity_of(request: &Request) -> Activity {
    const QUERIES: [&str; 4] = ["/scheduled_plans", "/queries/", "/merge_queries/", "/sql_queries/"];
    let is_query = QUERIES.iter().any(|part| request.path.contains(part));
    if is_query { Activity::Query } else { Activity::NonQuery }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_named_once_and_by_a_stream_name() {
        let mut names: Vec<_> = kind_names().collect();
        assert!(names.iter().all(|name| name.parse::<highwater_core::StreamName>().is_ok()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KINDS.len());
    }

    #[test]
    fn calls_count_as_the_api_says() {
        let of = |path: &str| activity_of(&Request::get(path));
        assert_eq!(of("/api/4.0/scheduled_plans?all_users=true"), Activity::Query);
        assert_eq!(of("/api/4.0/queries/abc"), Activity::Query);
        assert_eq!(of("/api/4.0/dashboards/search?deleted=true"), Activity::NonQuery);
    }
}
