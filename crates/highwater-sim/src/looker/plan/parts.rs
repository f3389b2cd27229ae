//! The sections of a plan and their defaults.

use std::num::NonZeroU32;

use serde::Deserialize;

use crate::looker::{fault::LookerStep, kind::LookerType};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InstancePlan {
    /// How many of everything but dashboards there are, compared with the usual.
    pub others: f64,
    pub trash: f64,
    /// Share of content that does not inherit its access.
    pub own_access: f64,
    pub body_bytes: u32,
    /// Whether models name an explore that cannot be had.
    pub broken_explores: bool,
    pub years: u32,
    /// Unix time of the newest content.
    pub newest: i64,
}

impl Default for InstancePlan {
    fn default() -> Self {
        InstancePlan {
            others: 1.0,
            trash: 0.06,
            own_access: 0.04,
            // What dashboards of real instances weigh on average.
            body_bytes: 3_400,
            broken_explores: false,
            years: 5,
            // 1 November 2025: a fixed day, so that a seed means the same instance at any time.
            newest: 1_761_955_200,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LookerBody {
    pub gzip: bool,
    pub slow_chunk: NonZeroU32,
    pub slow_gap_ms: u32,
    /// How long a 504 is waited for.
    pub gateway_timeout_ms: u32,
}

impl Default for LookerBody {
    fn default() -> Self {
        const CHUNK: NonZeroU32 = NonZeroU32::new(1_024).expect("1,024 is not zero");
        LookerBody { gzip: false, slow_chunk: CHUNK, slow_gap_ms: 20, gateway_timeout_ms: 1_000 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LookerQuota {
    pub per_second: Option<NonZeroU32>,
    pub per_minute: Option<NonZeroU32>,
    /// Share of refusals that carry `Retry-After`.
    pub retry_after: f64,
}

impl Default for LookerQuota {
    fn default() -> Self {
        LookerQuota { per_second: None, per_minute: None, retry_after: 0.5 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginPlan {
    pub client_id: String,
    pub client_secret: String,
    pub lifetime_s: u32,
    /// What wrong credentials are answered with: UNCONFIRMED by any document.
    pub refused_status: u16,
    /// Share of logins that fail and may be repeated.
    pub failures: f64,
    /// Every token ends after so many requests.
    pub revoke_every: Option<NonZeroU32>,
    /// A login beyond so many live tokens ends the oldest.
    pub tokens_max: Option<NonZeroU32>,
}

impl Default for LoginPlan {
    fn default() -> Self {
        LoginPlan {
            client_id: "sim-client".to_owned(),
            client_secret: "sim-secret".to_owned(),
            lifetime_s: 3_600,
            refused_status: 404,
            failures: 0.0,
            revoke_every: None,
            tokens_max: None,
        }
    }
}

/// In which order a list comes that nobody asked to sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsorted {
    /// In another with every request.
    #[default]
    Shuffled,
    ById,
}

/// How ids are compared: UNCONFIRMED by any document, so both exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdOrder {
    #[default]
    Number,
    Text,
}

/// When rows are left out that the caller may not see: UNCONFIRMED by any document, so both exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sieve {
    /// Before a page is cut.
    #[default]
    Before,
    /// From the page: it may be short, or empty, and not be the last.
    After,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListPlan {
    pub unsorted: Unsorted,
    pub ids: IdOrder,
    pub sieve: Sieve,
    /// `X-Total-Count` and `Link` where a limit is given.
    pub headers: bool,
    /// Whether `id=1,2,3` finds three: UNCONFIRMED by any document.
    pub id_lists: bool,
    /// No page is longer.
    pub limit_max: Option<NonZeroU32>,
}

/// How a type is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Denial {
    #[serde(rename = "403")]
    Forbidden,
    #[serde(rename = "404")]
    NotFound,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LookerMutations {
    pub every_ms: Option<NonZeroU32>,
    pub every_requests: Option<NonZeroU32>,
    pub edit: u32,
    pub insert: u32,
    pub trash: u32,
    pub purge: u32,
    pub types: Vec<LookerType>,
    pub stop_after_ms: Option<u32>,
    pub most: Option<u32>,
}

impl Default for LookerMutations {
    fn default() -> Self {
        LookerMutations {
            every_ms: None,
            every_requests: None,
            edit: 4,
            insert: 2,
            trash: 2,
            purge: 1,
            types: vec![
                LookerType::Dashboards,
                LookerType::Looks,
                LookerType::Folders,
                LookerType::Boards,
                LookerType::Users,
                LookerType::Groups,
                LookerType::ScheduledPlans,
                LookerType::Alerts,
                LookerType::Themes,
            ],
            stop_after_ms: None,
            most: None,
        }
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    Edit,
    Insert,
    Delete,
    Restore,
    Purge,
    Hide,
    Show,
    /// Of all tokens.
    Revoke,
}

/// A change that happens just before a certain request is answered, once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cue {
    /// Of the API, such as `/dashboards/search`.
    pub path: String,
    pub offset: Option<u64>,
    /// So many such requests come before it.
    #[serde(default)]
    pub after: u32,
    #[serde(rename = "do")]
    pub deed: Deed,
    #[serde(rename = "type")]
    pub kind: Option<LookerType>,
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookerScript {
    #[serde(rename = "type")]
    pub kind: Option<LookerType>,
    #[serde(default)]
    pub ids: Vec<String>,
    pub share: Option<f64>,
    /// Of the API, such as `/dashboards/search`, instead of objects.
    pub path: Option<String>,
    pub offset: Option<u64>,
    #[serde(default)]
    pub replies: Vec<LookerStep>,
    #[serde(default)]
    pub then: LookerStep,
    /// Whether what lasts also spoils every list that shows such an object whole.
    #[serde(default)]
    pub in_lists: bool,
}
