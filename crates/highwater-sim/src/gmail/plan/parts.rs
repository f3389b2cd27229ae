//! The sections of a plan and their defaults.

use std::num::NonZeroU32;

use serde::Deserialize;

use crate::gmail::fault::GmailStep;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailboxPlan {
    pub address: String,
    pub years: u32,
    /// Unix time of the newest message.
    pub newest: i64,
    pub user_labels: u8,
}

impl Default for MailboxPlan {
    fn default() -> Self {
        // 1 November 2025: a fixed day, so that a seed means the same mailbox at any time.
        MailboxPlan { address: "ann@example.com".to_owned(), years: 12, newest: 1_761_955_200, user_labels: 12 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SharesPlan {
    pub sent: f64,
    pub drafts: f64,
    pub spam: f64,
    pub trash: f64,
    pub chats: f64,
    pub odd: f64,
    pub unlisted_label: f64,
}

impl Default for SharesPlan {
    fn default() -> Self {
        SharesPlan { sent: 0.18, drafts: 0.005, spam: 0.02, trash: 0.02, chats: 0.01, odd: 0.0, unlisted_label: 0.0 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SizePlan {
    /// What every message weighs that is not odd; without it sizes vary.
    pub size_kb: Option<NonZeroU32>,
    /// Share of such messages with an attachment on top, and what that weighs.
    pub attachments: f64,
    pub attachment_kb: u32,
    pub large: f64,
    pub large_max: u32,
}

impl Default for SizePlan {
    fn default() -> Self {
        SizePlan { size_kb: None, attachments: 0.0, attachment_kb: 50, large: 0.0, large_max: 3_000_000 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GmailBody {
    pub gzip: bool,
    pub padded: bool,
    /// The ids of attachments change with every answer; this is how long an old one stays good.
    pub attachment_id_s: Option<u32>,
    pub slow_chunk: NonZeroU32,
    pub slow_gap_ms: u32,
}

impl Default for GmailBody {
    fn default() -> Self {
        const CHUNK: NonZeroU32 = NonZeroU32::new(256).expect("256 is not zero");
        GmailBody { gzip: true, padded: false, attachment_id_s: None, slow_chunk: CHUNK, slow_gap_ms: 50 }
    }
}

/// What a call costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostTable {
    /// Projects from May 2026 on.
    #[default]
    New,
    Old,
}

/// What a refusal by the quota looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Throttle {
    /// 403 `rateLimitExceeded` with the quota metric in its text.
    Modern,
    /// 403 `userRateLimitExceeded`.
    User,
    /// 403 `rateLimitExceeded`, "Rate Limit Exceeded".
    Project,
    /// 429 `RESOURCE_EXHAUSTED`.
    Backend,
    /// "Retry after" and a time.
    RetryAfter,
    /// 403 `quotaExceeded`, which other Google APIs send; no sample of Gmail's is known.
    Exceeded,
}

impl Throttle {
    pub const fn as_str(self) -> &'static str {
        match self {
            Throttle::Modern => "modern",
            Throttle::User => "user",
            Throttle::Project => "project",
            Throttle::Backend => "backend",
            Throttle::RetryAfter => "retry-after",
            Throttle::Exceeded => "exceeded",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GmailQuota {
    pub table: CostTable,
    pub per_minute: Option<NonZeroU32>,
    /// Of the whole project; here that is the same client.
    pub project_per_minute: Option<NonZeroU32>,
    pub concurrent: Option<NonZeroU32>,
    pub bytes_per_day: Option<u64>,
    pub shapes: Vec<Throttle>,
}

impl Default for GmailQuota {
    fn default() -> Self {
        GmailQuota {
            table: CostTable::New,
            per_minute: None,
            project_per_minute: None,
            concurrent: None,
            bytes_per_day: None,
            shapes: vec![Throttle::Modern],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PenaltyPlan {
    /// So many refusals within a minute lead into the penalty box.
    pub after: Option<NonZeroU32>,
    pub for_s: u32,
    pub extend_s: u32,
    pub status: u16,
}

impl Default for PenaltyPlan {
    fn default() -> Self {
        PenaltyPlan { after: None, for_s: 900, extend_s: 60, status: 429 }
    }
}

/// What a page token remembers: UNCONFIRMED by any document, so both exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenStyle {
    /// The last message shown: arrivals shift nothing.
    #[default]
    Key,
    /// How many were shown: arrivals repeat some, deletions skip some.
    Offset,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListPlan {
    pub tokens: TokenStyle,
    pub token_lifetime_s: Option<u32>,
    pub inversions: f64,
}

/// Whether `after:` includes its second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterBound {
    #[default]
    Inclusive,
    Exclusive,
}

/// Which date searches go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchDate {
    #[default]
    Internal,
    Header,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchPlan {
    pub after: AfterBound,
    pub date: SearchDate,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryPlan {
    pub expire_after_s: Option<u32>,
    /// At this time everything before it is forgotten.
    pub expire_at_s: Option<u32>,
    pub gap_max: NonZeroU32,
    pub bare: f64,
    /// Share of records that change places with the next one of their page.
    pub swapped: f64,
}

impl Default for HistoryPlan {
    fn default() -> Self {
        const GAP: NonZeroU32 = NonZeroU32::new(40).expect("40 is not zero");
        HistoryPlan { expire_after_s: None, expire_at_s: None, gap_max: GAP, bare: 0.0, swapped: 0.0 }
    }
}

/// What the user says when asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    #[default]
    Given,
    Denied,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientPlan {
    pub id: String,
    pub secret: String,
    pub consent: Consent,
    /// PEM, of the service account; without it every signature is believed.
    pub public_key: Option<String>,
}

impl Default for ClientPlan {
    fn default() -> Self {
        let (id, secret) = ("sim-client".to_owned(), "sim-secret".to_owned());
        ClientPlan { id, secret, consent: Consent::Given, public_key: None }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenPlan {
    pub lifetime_s: u32,
    /// What consent is given to; other scopes are left out of what is granted.
    pub scopes: Option<Vec<String>>,
    /// Refresh tokens from before die so long after the start.
    pub revoked_after_s: Option<u32>,
    /// Whose tokens they are, if not those of the mailbox's owner.
    pub account: Option<String>,
    /// Share of requests for a token that fail and may be repeated.
    pub failures: f64,
}

impl Default for TokenPlan {
    fn default() -> Self {
        TokenPlan { lifetime_s: 3_600, scopes: None, revoked_after_s: None, account: None, failures: 0.0 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GmailMutations {
    pub arrive_every_ms: Option<NonZeroU32>,
    pub delete_every_ms: Option<NonZeroU32>,
    pub label_every_ms: Option<NonZeroU32>,
    pub import_every_ms: Option<NonZeroU32>,
    pub draft_every_ms: Option<NonZeroU32>,
    pub stop_after_ms: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GmailScript {
    #[serde(default)]
    pub ids: Vec<String>,
    pub share: Option<f64>,
    #[serde(default)]
    pub replies: Vec<GmailStep>,
    #[serde(default)]
    pub then: GmailStep,
}

impl GmailScript {
    pub(in crate::gmail) fn ids(&self) -> impl Iterator<Item = u64> {
        self.ids.iter().filter_map(|id| u64::from_str_radix(id, 16).ok())
    }
}
